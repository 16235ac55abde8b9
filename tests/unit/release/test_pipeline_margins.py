"""Margins add up in whatever order a release file lists its keys."""

from itertools import permutations

import numpy as np
import pytest

from support.release_plans import release_plan
from undertow.mechanisms import SimulatedSource
from undertow.release.engine.job import Aggregates

ZONES, HOURS = ("A", "B", "C"), (0, 1)
TRUE = {"A": 10, "B": 200, "C": 3000}


def released(order, wishes):
    fine = {"by": ["zone", "hour"], "keys": {"zone": list(ZONES), "hour": "0..1"}}
    coarse = {"by": ["zone"], "keys": {"zone": list(order)}}
    plan = release_plan(
        {"granularity": "user", "epsilon": 1},
        [
            {"name": "fine", "select": "count", "consistent": wishes, **fine},
            {"name": "coarse", "select": "count", **coarse},
        ],
        bounds={"rows_per_unit": 1},
        output={"consistency": True},
    )
    cells = tuple((zone, hour) for zone in ZONES for hour in HOURS)
    numbers = [
        Aggregates(cells, {"rows": np.array([TRUE[z] // 2 for z, _ in cells])}),
        Aggregates(
            tuple((zone,) for zone in order),
            {"rows": np.array([TRUE[zone] for zone in order])},
        ),
    ]
    return plan.answer(numbers, source=SimulatedSource(1))


@pytest.mark.parametrize("wishes", [[], ["non-negative", "integer"]])
@pytest.mark.parametrize("order", list(permutations(ZONES)), ids="".join)
def test_margins_add_up_whatever_the_order_of_the_keys(order, wishes):
    fine, coarse = released(order, wishes)
    sums = dict.fromkeys(ZONES, 0.0)
    for zone, _, estimate, *_ in fine.rows:
        sums[zone] += estimate
    assert [row[0] for row in coarse.rows] == list(order)
    for zone, estimate, low, high in coarse.rows:
        assert estimate == pytest.approx(sums[zone], abs=1e-6)
        assert low - 60 < TRUE[zone] < high + 60  # of this zone, not of another
