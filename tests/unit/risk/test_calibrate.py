"""Calibration: routes, never unsafe, limits, steps, alternatives and tables."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import InfeasibleTarget, NotApplicable, SearchError
from undertow.mechanisms.local import (
    calibrate_grr,
    calibrate_subset,
    subset_breakpoints,
)
from undertow.privacy import Pure
from undertow.risk import calibration as calibrate_search
from undertow.risk import scalar
from undertow.risk.calibration import (
    RiskCalibration,
    _engine_values,
    _settled,
    calibrate,
    compare,
)
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families import (
    FAMILIES,
    blh,
    exponential,
    finite,
    gaussian,
    grr,
    laplace,
    olh,
    oue,
    she,
    ss,
    sue,
    the,
)
from undertow.risk.families.base import Curve
from undertow.risk.selector import best_bound
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

LOCAL = ["grr", "sue", "oue", "ss", "blh", "olh", "she", "the"]
UNLIKE = Threat(Prior.uniform(2))
SKEW = Prior(6, [0.4, 0.2, 0.15, 0.1, 0.1, 0.05])


def chosen(family, threat, target, **options):
    return calibrate(family, threat, advantage=target, alternatives=False, **options)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("knowledge", ["none", "full"])
@pytest.mark.parametrize("target", [1e-6, 0.02, 0.11])
def test_the_risk_at_the_answer_is_within_the_target_and_close(name, knowledge, target):
    make = Threat.membership if knowledge == "full" else Threat
    family, threat = FAMILIES[name](6), make(SKEW)
    found = chosen(family, threat, target)
    structure = None if not found.structure else next(iter(found.structure.values()))
    risk = family.risk(found.value, threat, structure=structure).value
    assert risk <= target
    above = family.risk(found.value * (1 + 1e-7), threat, structure=structure).value
    if structure is None:
        assert above > target
    else:  # or the structure steps just above
        step = family.risk(found.value * (1 + 1e-7), threat).value
        assert max(above, step) > target or _steps_above(family, found.value)


def _steps_above(family, level):
    below, above = (family.mechanism(level * (1 + s)) for s in (-1e-7, 1e-7))
    return getattr(below, family.structural) != getattr(above, family.structural)


def test_closed_inverses_agree_with_those_of_the_protocols():
    threat = Threat(SKEW)
    for target in (0.01, 0.2, 0.5):
        assert chosen(grr(6), threat, target).value == pytest.approx(
            calibrate_grr(6, target, prior=SKEW.pmf).value, rel=1e-9
        )
    for knowledge, make in (("none", Threat), ("full", Threat.membership)):
        for choose in ("safe", "largest"):
            for target in (0.03, 0.1, 0.25):
                mine = chosen(ss(40), make(Prior.uniform(40)), target, choose=choose)
                theirs = calibrate_subset(
                    40, target, knowledge=knowledge, choose=choose
                )
                assert mine.value == pytest.approx(theirs.value, rel=1e-9)
                assert mine.structure == {"subset": theirs.subset}


@pytest.mark.parametrize("make", [ss, olh])
@pytest.mark.parametrize("view", [Threat, Threat.membership])
@pytest.mark.parametrize("target", [0.02, 0.1, 0.14, 0.2, 0.25])
def test_a_safe_level_holds_at_every_smaller_level(make, view, target):
    family, threat = make(10), view(Prior.uniform(10))
    found = chosen(family, threat, target)
    below = np.linspace(1e-3, found.value, 3000)
    worst = family.curve(threat).values(below, None).max()
    assert worst <= target * (1 + 1e-9)
    largest = chosen(family, threat, target, choose="largest")
    assert largest.value >= found.value * (1 - 1e-8)
    assert largest.achieves.value <= target


@pytest.mark.parametrize("target", [0.02, 0.1, 0.15])
def test_a_skew_prior_is_scanned_between_the_breakpoints(target):
    prior = Prior(12, np.arange(1, 13) / 78)
    family, threat = ss(12), Threat(prior)
    found = chosen(family, threat, target)
    grid = np.concatenate([np.linspace(1e-3, 3, 4000), subset_breakpoints(12)[1:]])
    grid.sort()
    over = family.curve(threat).values(grid, None) > target
    first = grid[np.argmax(over)]
    assert found.value <= first * (1 + 1e-8)
    assert found.value >= grid[np.argmax(over) - 1] * (1 - 1e-8)


def test_a_breakpoint_is_stayed_below_and_its_size_is_returned():
    found = chosen(ss(1000), Threat(Prior.uniform(1000)), 0.1)
    assert found.structure == {"subset": 5}
    assert found.value < math.log(199)
    assert found.value == pytest.approx(math.log(199) * (1 - 1e-9), rel=1e-12)


def test_a_target_at_the_ceiling_never_binds():
    threat = Threat(Prior.uniform(10))
    for target in (0.9, 0.95, 3.0):
        found = chosen(grr(10), threat, target)
        assert found.value == math.inf
        assert not found.binding
        assert "any epsilon" in found.method
        assert found.shown == "any"
        assert ":" not in found.method
        assert found.achieves.value <= 0.9 * (1 + 1e-12)


def test_a_target_above_what_the_family_reaches_never_binds():
    found = chosen(oue(10), Threat(Prior.uniform(10)), 0.45)
    assert found.value == math.inf
    assert "as OUE has at most 0.45" in found.method
    assert ":" not in found.method
    assert chosen(the(10), Threat(Prior.uniform(10)), 0.6).value == math.inf
    assert chosen(the(10), Threat(Prior.uniform(10)), 0.59).value < math.inf
    noise = chosen(gaussian(range(10)), Threat(Prior.uniform(10)), 0.95)
    assert noise.value == 0.0
    assert not noise.binding


@pytest.mark.parametrize("target", [0.0, -0.1, math.nan])
def test_a_target_must_be_positive(target):
    with pytest.raises(ValueError, match="advantage must be positive"):
        chosen(grr(3), Threat(Prior.uniform(3)), target)


def test_other_targets_are_refused_in_one_sentence():
    threat = Threat(Prior.uniform(3))
    with pytest.raises(TypeError, match="must be a number"):
        calibrate(grr(3), threat, advantage="0.1")
    with pytest.raises(ValueError, match="list of numbers"):
        calibrate(grr(3), threat, advantage=[[0.1]])
    with pytest.raises(ValueError, match="choose must be one of"):
        chosen(grr(3), threat, 0.1, choose="any")


def test_delta_leaves_a_risk_that_no_epsilon_removes():
    family = gaussian(range(10), parameter="epsilon", delta=1e-2)
    threat = Threat(Prior.uniform(10))
    with pytest.raises(InfeasibleTarget, match="smallest epsilon") as refused:
        chosen(family, threat, 1e-4)
    assert refused.value.least == pytest.approx(0.001, rel=1e-3)
    assert chosen(family, threat, 0.0012).value > 0


def test_epsilon_of_a_gaussian_leads_back_to_the_noise():
    family = gaussian(range(10), parameter="epsilon", delta=1e-5)
    threat = Threat(Prior.uniform(10))
    targets = np.geomspace(1e-4, 0.8, 60)
    table = calibrate(family, threat, advantage=targets)
    for value, target in zip(table.values, targets, strict=True):
        risk = family.risk(float(value), threat).value
        assert target * (1 - 1e-7) <= risk <= target


def test_threats_without_a_closed_form_go_through_the_engine():
    prior = Prior(range(6), SKEW.pmf)
    threat = Threat(prior, Success.within("absolute", 1))
    for family in (oue(6), laplace(range(6)), gaussian(range(6)), grr(6)):
        found = chosen(family, threat, 0.05)
        assert found.exact
        assert found.achieves.value <= 0.05
        assert family.risk(found.value, threat).value <= 0.05
        more = found.value * (1.001 if family.rises else 0.999)
        assert family.risk(more, threat).value > 0.05


def test_what_has_no_exact_route_inverts_a_bound_and_warns():
    found = chosen(she(6), Threat(SKEW), 0.1)
    assert not found.exact
    assert any("bound was inverted" in warning for warning in found.warnings)
    labels = Threat(SKEW, knowledge=Knowledge.from_labels([0, 0, 0, 1, 1, 1]))
    for family in (blh(6), olh(6)):
        found = chosen(family, labels, 0.1)
        assert not found.exact
        assert found.achieves.value <= 0.1


def test_a_large_scan_over_a_skew_prior_is_refused_with_the_way_out():
    weights = np.arange(1.0, 10_001.0)
    threat = Threat(Prior(10_000, weights / weights.sum()))
    with pytest.raises(NotApplicable, match="use full knowledge"):
        chosen(ss(10_000), threat, 0.1, choose="largest")
    assert chosen(ss(10_000), threat, 0.1).achieves.value <= 0.1


def test_a_family_that_is_not_proved_monotone_is_scanned():
    def bump(epsilon):  # rises to epsilon 1, then falls
        gap = 0.8 * epsilon * math.exp(1 - epsilon)
        return Channel([[0.5 + gap / 2, 0.5 - gap / 2], [0.5 - gap / 2, 0.5 + gap / 2]])

    threat = Threat(Prior.uniform(2))
    found = chosen(finite(bump, 2), threat, 0.2)
    assert 0 < found.value < 1
    assert found.achieves.value <= 0.2
    assert any("not proved monotone" in warning for warning in found.warnings)
    late = chosen(finite(bump, 2), threat, 0.2, choose="largest")
    assert late.value > 1
    assert chosen(finite(bump, 2), threat, 1e-5).value < 1e-3


def test_the_exponential_mechanism_is_calibrated_by_its_exact_risk():
    scores = -np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
    threat = Threat(Prior.uniform(5))
    found = chosen(exponential(scores, sensitivity=4.0), threat, 0.1)
    assert 0.0999 < found.achieves.value <= 0.1
    assert found.utility.kind == "error"


@pytest.mark.parametrize("name", LOCAL)
def test_a_table_of_targets_equals_single_calls(name):
    family, threat = FAMILIES[name](30), Threat(Prior.uniform(30))
    targets = np.array([1e-5, 0.01, 0.2, 0.47, 0.97])
    table = calibrate(family, threat, advantage=targets)
    single = [chosen(family, threat, t) for t in targets]
    assert len(table) == 5
    assert table.values == pytest.approx([s.value for s in single], rel=1e-12)
    assert (table.achieved <= targets).all()
    assert table.binding.tolist() == [s.binding for s in single]
    assert table.to_dict()["values"][-1] == "inf"


@pytest.mark.parametrize("name", ["sue", "oue", "she", "the"])
@pytest.mark.parametrize("shape", ["uniform", "skew"])
def test_many_targets_share_a_table_and_end_where_single_calls_do(name, shape):
    weights = np.ones(40) if shape == "uniform" else np.arange(1.0, 41.0)
    threat = Threat(Prior(40, weights / weights.sum()))
    family = FAMILIES[name](40)
    targets = np.concatenate([[1e-10, 1e-7], np.linspace(0.004, 0.9, 60)])
    table = calibrate(family, threat, advantage=targets)
    bound = table.binding
    assert (table.achieved <= targets).all()
    assert (table.achieved[bound][2:] >= targets[bound][2:] * (1 - 2e-9)).all()
    for k in range(0, int(bound.sum()), 7):
        single = chosen(family, threat, targets[k]).value
        assert table.values[k] == pytest.approx(single, rel=1e-6)


def test_alternatives_name_what_other_routes_would_allow():
    found = calibrate(oue(1000), Threat(Prior.uniform(1000)), advantage=0.1)
    routes = {a.name: a.parameter for a in found.alternatives}
    assert routes["any mechanism, this threat"] == pytest.approx(4.720592, abs=1e-6)
    # Knowing more about the prior never allows less: 0.200873 would, unsharpened.
    assert routes["any mechanism, any knowledge"] == pytest.approx(
        4 * math.atanh(0.1), rel=1e-9
    )
    assert routes["any mechanism, any knowledge and prior"] == pytest.approx(
        4 * math.atanh(0.1), rel=1e-9
    )
    unreachable = calibrate(
        gaussian(range(3), parameter="epsilon", delta=0.1),
        Threat.membership(Prior.uniform(3)),
        advantage=0.1,
    )
    assert "not reachable" in unreachable.alternatives[-1].reason


def test_a_result_can_be_shown_and_read():
    found = calibrate(ss(20), Threat(Prior.uniform(20)), advantage=0.1)
    plain = found.to_dict()
    assert isinstance(found, RiskCalibration)
    assert plain["structure"] == {"subset": found.structure["subset"]}
    assert plain["utility"]["kind"] == "deviation"
    assert "subset" in found._repr_html_()
    assert "RiskCalibration" in found.__rich__()
    assert any("another threat" in warning for warning in found.warnings)
    assert float(found.shown) <= found.value
    noise = chosen(gaussian(range(10)), Threat(Prior.uniform(10)), 0.1)
    assert float(noise.shown) >= noise.value


def test_families_compare_at_equal_risk():
    table = compare(
        [grr(10), oue(10), sue(10), laplace(range(10))],
        Threat(Prior.uniform(10)),
        advantage=0.1,
        users=1000,
    )
    assert [row.family for row in table.rows] == ["grr", "oue", "sue", "laplace"]
    assert all(0.0999 < row.achieves.value <= 0.1 for row in table.rows)
    best = table.best("deviation")
    assert best.utility.value == min(r.utility.value for r in table.rows[:3])
    assert table.best("error").family == "laplace"
    with pytest.raises(ValueError, match="kind must be one"):
        table.best("regret")


def test_a_row_whose_target_never_binds_takes_part_by_its_limit():
    rows = [grr(10), oue(10), olh(10), laplace(range(10))]
    table = compare(rows, Threat(Prior.uniform(10)), advantage=0.46)
    assert [row.binding for row in table.rows] == [True, False, False, True]
    best = table.best("deviation")
    assert best.family == "oue"
    # A share s that is reported half the time has s (1/4) / (n/4) for its variance.
    assert best.utility.value == pytest.approx(math.sqrt(0.1 / 10_000), rel=1e-9)
    assert "in the limit as epsilon grows" in best.utility.summary
    assert table.rows[0].utility.value > best.utility.value
    assert table.rows[2].utility.value == pytest.approx(best.utility.value, rel=1e-6)
    for family in (laplace(range(10)), gaussian(range(10))):
        free = chosen(family, Threat(Prior.uniform(10)), 0.95)
        assert (free.utility.kind, free.utility.value) == ("error", 0.0)
        assert "in the limit" in free.utility.summary
    assert chosen(finite(lambda e: Channel(np.eye(2)), 2), UNLIKE, 1.0).utility is None


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_many_targets_share_the_runs_of_the_engine(noise, monkeypatch):
    size, count = (21, 60) if noise == "laplace" else (6, 12)
    weights = np.arange(1.0, size + 1.0)
    threat = Threat(
        Prior(range(size), weights / weights.sum()), Success.within("absolute", 2)
    )
    family = FAMILIES[noise](range(size))
    targets = np.geomspace(1e-3, 0.4, count)
    single = [chosen(family, threat, t).value for t in targets[::11]]
    batches = []

    def counted(sources, given):
        batches.append(len(sources))
        return _engine_values(sources, given)

    monkeypatch.setattr(calibrate_search, "_engine_values", counted)
    table = calibrate(family, threat, advantage=targets)
    assert len(batches) <= 40  # one target at a time needs some ten runs each
    assert max(batches) >= count
    assert table.values[::11] == pytest.approx(single, rel=1e-7)
    for value, target in zip(table.values, targets, strict=True):
        assert family.risk(float(value), threat).value <= target
    assert (table.achieved >= targets * (1 - 1e-7)).all()


def test_targets_outside_the_shared_table_are_bisected_alone():
    threat = Threat(Prior(3, [0.5, 0.3, 0.2]))

    def steps(epsilon):  # no risk below 1, then a jump, then flat
        gap = 0.0 if epsilon < 1 else 0.5
        return Channel(np.full((3, 3), (1 - gap) / 3) + gap * np.eye(3))

    targets = np.linspace(0.01, 0.6, 9)
    table = calibrate(finite(steps, 3, monotone=True), threat, advantage=targets)
    # With q the chance to report the truth alone, the risk is q times the ceiling.
    flat = 0.5 * threat.ceiling
    below = targets < flat
    assert table.values[below] == pytest.approx(1.0, rel=1e-9)
    assert (table.values[below] < 1.0).all()
    assert (table.values[~below & table.binding] > 1000).all()
    assert (table.achieved <= targets).all()


def test_a_batch_that_is_too_much_at_once_is_halved(monkeypatch):
    threat = Threat(Prior(range(3), [0.5, 0.3, 0.2]))
    family = laplace(range(3))
    sources = [family.source(level, threat) for level in (0.1, 1.0, 2.0, 5.0, 9.0)]
    one = [advantage(source, threat).value for source in sources]
    whole = scalar.advantage_curve

    def narrow(channels, given):
        if len(channels) > 2:
            raise NotApplicable("too many")
        return whole(channels, given)

    monkeypatch.setattr(scalar, "advantage_curve", narrow)
    assert _engine_values(sources, threat) == pytest.approx(one, rel=1e-12)


def test_a_risk_that_never_vanishes_makes_small_targets_infeasible():
    constant = finite(lambda e: Channel([[0.8, 0.2], [0.2, 0.8]]), 2, monotone=True)
    threat = Threat(Prior.uniform(2))
    with pytest.raises(InfeasibleTarget, match=r"greater than 0\.3") as refused:
        chosen(constant, threat, 0.1)
    assert refused.value.least == pytest.approx(0.3)
    # a target above it is met up to the largest level searched
    assert chosen(constant, threat, 0.4).value > 4000
    grid = finite(lambda e: Channel([[0.8, 0.2], [0.2, 0.8]]), 2)
    assert chosen(grid, threat, 0.4).value == pytest.approx(100.0)
    with pytest.raises(InfeasibleTarget):
        chosen(she(3), Threat(Prior.uniform(3)), 1e-13)
    with pytest.raises(InfeasibleTarget, match="laplace has at the smallest"):
        chosen(laplace(range(3)), Threat.membership(Prior.uniform(3)), 1e-13)
    with pytest.raises(InfeasibleTarget, match="gaussian has at the largest"):
        chosen(gaussian(range(3)), Threat.membership(Prior.uniform(3)), 1e-13)


def test_a_target_that_only_the_last_grid_level_meets_is_found_there():
    def late(epsilon):
        gap = 0.1 if epsilon > 99 else 0.8
        return Channel([[0.5 + gap / 2, 0.5 - gap / 2], [0.5 - gap / 2, 0.5 + gap / 2]])

    threat = Threat(Prior.uniform(2))
    found = chosen(finite(late, 2), threat, 0.2, choose="largest")
    assert found.value == pytest.approx(100.0)


def test_a_curve_that_never_fits_is_reported():
    curve = Curve(lambda x, _: np.full(x.shape, 0.5), 0.9, "none")
    with pytest.raises(SearchError, match="must settle below"):
        _settled(grr(3), curve, np.array([1.0]), np.array([0.1]), None)


def test_levels_are_lowered_until_they_fit():
    curve = Curve(lambda x, _: x / 10, 0.9, "line")
    levels, kept = _settled(grr(3), curve, np.array([1.01]), np.array([0.1]), None)
    assert levels[0] < 1.0
    assert kept[0] <= 0.1


@pytest.mark.parametrize("make", [grr, oue, ss, olh])
def test_large_problems_without_a_closed_form_are_bounded(make):
    size = 30
    labels = Knowledge.from_labels([k % 3 for k in range(size)])
    threat = Threat(Prior.uniform(size), knowledge=labels)
    family = make(size)
    found = chosen(family, threat, 0.1)
    assert found.achieves.value <= 0.1
    assert found.exact == (make is grr)
    structure = next(iter((found.structure or {}).values()), None)
    assert family.mechanism(found.value, structure=structure).categories == size
    assert family.risk(found.value, threat, structure=structure).value <= 0.1


def test_other_routes_never_state_a_level_for_another_adjacency():
    threat = Threat(Prior.uniform(10), adjacency="add-remove")
    found = calibrate(grr(10), threat, advantage=0.1)
    (route,) = found.alternatives
    assert route.name == "any mechanism, this threat"
    # Twice the level, as for replacing a record, must still keep the target.
    priced = best_bound(Pure(2 * route.parameter), Threat(Prior.uniform(10)))
    assert priced.value <= 0.1 * (1 + 1e-12)


def random_scores(seed: int) -> tuple[np.ndarray, Threat]:
    rng = np.random.default_rng(seed)
    records, candidates = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    scores = rng.integers(0, 3, (records, candidates)) / 2
    if seed % 4 == 0:  # the same for all records: nothing is disclosed
        scores[:] = scores[0]
    prior = Prior(records, rng.dirichlet(np.ones(records)))
    knowledge = Knowledge.full() if seed % 3 == 0 else Knowledge.none()
    return scores, Threat(prior, knowledge=knowledge)


def greatest_of_many(family, threat: Threat) -> float:
    """Return the largest risk over a fine grid of levels, the limit included."""
    levels = (*np.geomspace(1e-3, 3e3, 400).tolist(), 1e12)
    return max(advantage(family.source(x, threat), threat).value for x in levels)


@pytest.mark.parametrize("seed", range(12))
def test_an_exponential_mechanism_that_nothing_binds_says_so(seed):
    scores, threat = random_scores(seed)
    family = exponential(scores)
    most = greatest_of_many(family, threat)
    found = chosen(family, threat, 1.02 * most + 1e-3)
    assert not found.binding
    assert found.value == math.inf
    assert found.shown == "any"
    assert "never binds" in found.method
    assert found.achieves.value <= most + 1e-9
    if most > 1e-6:
        bound = chosen(family, threat, 0.9 * most)
        assert bound.binding
        assert bound.value < 100
        assert bound.achieves.value <= 0.9 * most


def test_scores_alike_for_all_records_need_no_noise():
    threat = Threat(Prior.uniform(2))
    found = chosen(exponential([[0, 1.0], [0, 1.0]]), threat, 0.2)
    assert (found.value, found.binding, found.achieves.value) == (math.inf, False, 0)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("choose", ["safe", "largest"])
def test_channels_unknown_past_the_levels_tried_are_not_promised_there(
    monotone, choose
):
    constant = finite(lambda _: Channel(np.full((2, 2), 0.5)), 2, monotone=monotone)
    found = chosen(constant, Threat(Prior.uniform(2)), 0.2, choose=choose)
    last = 10_000.0 if monotone else 100.0
    assert not found.binding
    assert found.value == last
    assert found.shown == f"any up to {last:g}"
    assert "nothing is said of larger ones" in found.method


def test_a_table_says_of_each_target_whether_it_binds():
    scores = [[0, 0.5, 1], [1, 0.5, 0], [0.5, 0.5, 0.5]]
    threat = Threat(Prior.uniform(3))
    table = calibrate(exponential(scores), threat, advantage=[0.1, 0.6, 0.66])
    assert table.binding.tolist() == [True, False, False]
    assert table.values[1:].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("noise", [laplace, gaussian])
def test_a_calibrated_noise_says_that_it_is_continuous(noise):
    threat = Threat(Prior.uniform(3))
    found = chosen(noise(range(3)), threat, 0.1)
    assert any("noise in whole numbers" in words for words in found.warnings)


def test_the_lattice_that_is_released_adds_no_more_than_is_said():
    threat = Threat(Prior.uniform(2))
    found = chosen(laplace([0, 0.3]), threat, 0.2)
    released = laplace([0, 0.3]).mechanism(found.value).released
    # Two values at most one step further apart, on the lattice.
    apart = math.ceil(Fraction(3, 10) / released.step) + 1
    q = math.exp(-float(released.step / released.scale))
    half = apart // 2
    tail = sum(2 * (q ** (half + k)) for k in range(apart % 2)) / 2
    gain = 1 - 2 * q ** (half + apart % 2) / (1 + q) - tail * (1 - q) / (1 + q)
    assert gain / 2 <= 0.2 + 2.0**-24


@pytest.mark.parametrize(
    ("family", "noise", "step"),
    [
        (laplace(range(5)), "laplace", None),
        (laplace(range(5), step=1), "laplace", 1),
        (gaussian(range(5)), "gaussian", None),
        (grr(5), None, None),
    ],
)
def test_a_calibration_names_the_noise_that_it_is_about(family, noise, step):
    record = calibrate(family, Threat(Prior.uniform(5)), advantage=0.1).to_dict()
    assert record["covers"]["family"] == record["family"] == family.name
    assert (record["covers"]["noise"], record["covers"]["step"]) == (noise, step)
    if step is not None:
        assert "multiples of 1" in record["covers"]["summary"]
