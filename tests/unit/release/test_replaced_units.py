"""What replacing all rows of a unit costs: by the engine, over all it can have."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pyarrow as pa
import pytest

from undertow.release.document.release_document import release_from_mapping
from undertow.release.engine.pipeline import run_jobs
from undertow.release.plan.planned_release import plan_release
from undertow.release.source.opening import open_source

CELLS = [(zone, x) for zone in ("a", "b") for x in (1, 4)]
KEYS = {"by": ["zone"], "keys": {"zone": ["a", "b"]}}
QUERIES = {
    "distinct": {"select": "count_distinct", **KEYS},
    "rows": {"select": "count", **KEYS},
    "total": {"select": "count"},
    "sum": {"select": "sum", "column": "x", "low": 0, "high": 4, **KEYS},
    "both signs": {"select": "sum", "column": "x", "low": -2, "high": 4, **KEYS},
    "mean": {"select": "mean", "column": "x", "low": 0, "high": 4, **KEYS},
    "bins": {"select": "histogram", "column": "x", "bins": [0, 2, 5], **KEYS},
}
BOUNDS = [
    {"rows_per_unit": 3},
    pytest.param({"rows_per_unit": 2, "rows_per_group": 1}, marks=pytest.mark.slow),
    {"rows_per_unit": 2, "groups_per_unit": 1},
]


def plan_of(query, bounds, promise):
    document = {
        "source": {"unit": "person"},
        "promise": {"granularity": "user", **promise},
        "bounds": bounds,
        "queries": [{"name": "q", **query}],
    }
    return plan_release(release_from_mapping(document, in_memory=True))


def units(most):
    """Yield a table for everything that one unit can have, beside another unit."""
    for size in range(most + 1):
        for rows in combinations_with_replacement(CELLS, size):
            yield pa.table(
                {
                    "person": ["other"] + ["one"] * size,
                    "zone": ["a", *(zone for zone, _ in rows)],
                    "x": [1, *(x for _, x in rows)],
                }
            )


def vectors(plans, most):
    """Return, for each plan, the numbers before noise that a unit can lead to."""
    found = [set() for _ in plans]
    jobs = [plan.tasks[0].job for plan in plans]
    for table in units(most):
        with open_source(table, threads=1) as source:
            answers = run_jobs(source, jobs, bounding=plans[0].bounding, key=bytes(16))
        for seen, plan, answer in zip(found, plans, answers, strict=True):
            numbers = plan.queries[0].encoding.vector(answer)
            seen.add(tuple(int(k) for k in numbers.ravel()))
    return found


def worst(plan, seen):
    """Return the largest loss of all replacements, in the currency of the noise."""
    noise = plan.queries[0].share.noise
    power, factor = (1, 1) if noise.law == "laplace" else (2, 2)
    farthest = max(
        sum(abs(a - b) ** power for a, b in zip(old, new, strict=True))
        for old, new in product(seen, repeat=2)
    )
    return Fraction(farthest) / (factor * noise.parameter)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_no_replaced_unit_costs_more_than_promised(bounds):
    pure, gaussian = (
        [plan_of(query, bounds, promise) for query in QUERIES.values()]
        for promise in ({"epsilon": "1"}, {"rho": "1"})
    )
    found = vectors(pure, bounds["rows_per_unit"])
    for plans in (pure, gaussian):
        costs = [worst(*pair) for pair in zip(plans, found, strict=True)]
        assert max(costs) <= 1
        # Distinct units and rows: no less noise would do.
        assert costs[:3] == [pytest.approx(1, rel=1e-6)] * 3
