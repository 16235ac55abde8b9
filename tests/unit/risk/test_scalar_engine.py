"""The scalar engine against quadrature, fine channels and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import mp
from scipy import integrate, optimize, stats

from undertow.errors import AssumptionError, MismatchError, ModelError, NotApplicable
from undertow.mechanisms import (
    ClampedMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TruncatedMechanism,
)
from undertow.risk.attacks import OptimalGuess
from undertow.risk.channel import Channel
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import Decision
from undertow.risk.number import ScalarLaw
from undertow.risk.scalar import (
    ScalarChannel,
    advantage_curve,
    as_scalar,
    gaussian_advantage,
    laplace_advantage,
    scalar_advantage,
    scalar_attack_risk,
    scalar_success_rate,
)
from undertow.risk.scalar import (
    engine as problem,
)
from undertow.risk.scalar.engine import Enclosure, enclose_known, fold_cells
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

TENS = tuple(range(0, 101, 10))
UNEVEN = Prior(TENS, np.random.default_rng(3).dirichlet(np.ones(11)))
WITH_ZEROS = Prior(TENS, [0.3, 0, 0.1, 0, 0, 0.2, 0, 0.15, 0, 0, 0.25])
HITS = np.eye(11, dtype=bool) | (np.random.default_rng(5).random((11, 11)) < 0.3)
PARITY = Knowledge.attributes(lambda record: record // 10 % 3)

THREATS = {
    "exact": Threat(UNEVEN),
    "within": Threat(UNEVEN, Success.within("absolute", 20)),
    "attribute": Threat(UNEVEN, Success.attribute(lambda record: record % 30)),
    "table": Threat(UNEVEN, Success.from_matrix(HITS)),
    "known": Threat.membership(UNEVEN),
    "known within": Threat(UNEVEN, Success.within("absolute", 60), Knowledge.full()),
    "part known": Threat(UNEVEN, Success.within("absolute", 20), PARITY),
    "declining": Threat(UNEVEN, Success.within("absolute", 40), PARITY, True),
    "zeros": Threat(WITH_ZEROS, Success.within("absolute", 20)),
    "zeros known": Threat(WITH_ZEROS, Success.exact(), PARITY),
}
MECHANISMS = {
    "laplace": LaplaceMechanism(25),
    "laplace clamped": ClampedMechanism(LaplaceMechanism(25), 30, 70),
    "laplace truncated": TruncatedMechanism(LaplaceMechanism(25), -5, 130),
    "gaussian": GaussianMechanism(25),
    "gaussian clamped": ClampedMechanism(GaussianMechanism(25), 15, 80),
    "gaussian truncated": TruncatedMechanism(GaussianMechanism(40), 0, 100),
}


def best_gains(laws, threat, *, centred):
    """Return the largest gain of a guess for each column, straight from the formula."""
    pmf, hits = threat.prior.pmf, threat.success.matrix(threat.support).astype(float)
    mean = pmf @ laws if centred else 0.0
    weights = pmf[:, None] * (laws - mean)
    total = np.zeros(laws.shape[1])
    for fibre in threat.fibres:
        top = (hits[:, fibre] @ weights[fibre]).max(axis=0)
        total += np.maximum(top, 0.0) if threat.abstain else top
    return total


def quadrature(mechanism, threat, *, centred=True, cells=30_000):
    """Integrate the best gain by midpoints on a fine grid that holds the answers."""
    answers = np.array(threat.support, dtype=float)
    bounded = hasattr(mechanism, "low")
    low = float(mechanism.low) if bounded else -1000.0
    high = float(mechanism.high) if bounded else 1100.0
    edges = np.linspace(low, high, cells + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    laws = np.exp([mechanism.log_density(middles, float(a)) for a in answers])
    value = best_gains(laws, threat, centred=centred).sum() * (edges[1] - edges[0])
    if isinstance(mechanism, ClampedMechanism):
        ends = np.array([low, high])
        atoms = np.exp([mechanism.log_density(ends, float(a)) for a in answers])
        value += best_gains(atoms, threat, centred=centred).sum()
    return value


@pytest.mark.parametrize("noise", MECHANISMS)
@pytest.mark.parametrize("name", THREATS)
def test_advantage_is_the_integral_of_the_best_gain(noise, name):
    mechanism, threat = MECHANISMS[noise], THREATS[name]
    risk = advantage(mechanism, threat)
    assert risk.value == pytest.approx(quadrature(mechanism, threat), abs=1e-6)
    assert risk.tight
    assert risk.witness.details["gap"] <= 1.1e-9


@pytest.mark.parametrize("noise", MECHANISMS)
@pytest.mark.parametrize("name", ["exact", "within", "part known", "zeros"])
def test_success_is_the_integral_of_the_best_posterior(noise, name):
    mechanism, threat = MECHANISMS[noise], THREATS[name]
    risk = success_rate(mechanism, threat)
    expected = quadrature(mechanism, threat, centred=False)
    assert risk.value == pytest.approx(expected, abs=1e-6)
    assert risk.baseline == pytest.approx(threat.informed_guess)
    assert risk.quantity == "success"


def test_advantage_agrees_with_adaptive_quadrature_between_true_breakpoints():
    prior = Prior([0.0, 0.7, 2.0], [0.5, 0.2, 0.3])
    threat, answers = Threat(prior), np.array([0.0, 0.7, 2.0])

    def gains(theta):
        laws = np.exp(-np.abs(theta - answers)) / 2
        return prior.pmf * (laws - prior.pmf @ laws)

    grid = np.linspace(-30, 32, 62_001)
    labels = np.array([gains(theta).argmax() for theta in grid])
    points = [0.0, 0.7, 2.0]
    for k in np.flatnonzero(np.diff(labels)):
        i, j = labels[k], labels[k + 1]
        root = optimize.brentq(
            lambda t, i=i, j=j: gains(t)[i] - gains(t)[j], grid[k], grid[k + 1]
        )
        points.append(root)
    edges = [-40.0, *sorted(points), 42.0]
    value = math.fsum(
        integrate.quad(lambda t: gains(t).max(), a, b, epsabs=1e-14)[0]
        for a, b in itertools.pairwise(edges)
    )
    risk = advantage(LaplaceMechanism(1), threat)
    assert risk.value == pytest.approx(value, abs=1e-11)
    assert risk.value >= value - 1e-14


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ["exact", "within", "part known"])
def test_a_fine_channel_is_below_and_near(noise, name):
    mechanism, threat, answers = MECHANISMS[noise], THREATS[name], np.array(TENS)
    edges = np.linspace(-300, 400, 14_001)
    law = stats.laplace if noise == "laplace" else stats.norm
    below = law(scale=25).cdf(edges - answers[:, None])
    laws = np.diff(below, prepend=0.0, append=1.0, axis=1)
    coarse = advantage(Channel(laws), threat).value
    exact = advantage(mechanism, threat).value
    assert coarse - 1e-11 <= exact <= coarse + 1e-5


def test_closed_forms_are_the_uniform_exact_case():
    line = np.array([0, 0.1, 0.5, 0.55, 1])
    threat = Threat(Prior.uniform(5))
    laplace = scalar_advantage(ScalarChannel(LaplaceMechanism("0.5"), line), threat)
    normal = scalar_advantage(ScalarChannel(GaussianMechanism("0.3"), line), threat)
    assert laplace.value == pytest.approx(laplace_advantage(line, 0.5), abs=1e-12)
    assert normal.value == pytest.approx(gaussian_advantage(line, 0.3), abs=2e-9)


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.4, 3.0, 1e3, 1e7])
def test_the_value_is_never_below_the_exact_one(scale):
    line = np.array([0.0, 0.125, 0.5, 0.5625, 1.0])
    threat, gaps = Threat(Prior.uniform(5)), [mp.mpf(g) for g in np.diff(line)]
    exact = sum(-mp.expm1(-g / (2 * mp.mpf(scale))) for g in gaps) / 5
    value = advantage(ScalarChannel(LaplaceMechanism(scale), line), threat).value
    assert exact <= value <= exact + 1e-12
    assert exact <= laplace_advantage(line, scale) <= exact * (1 + 2e-12)
    exact = sum(mp.erf(g / (2 * mp.sqrt(2) * mp.mpf(scale))) for g in gaps) / 5
    value = advantage(ScalarChannel(GaussianMechanism(scale), line), threat).value
    assert exact <= value <= exact + 1.1e-9
    assert exact <= gaussian_advantage(line, scale) <= exact * (1 + 2e-12)


def test_the_order_of_records_and_a_shift_of_answers_change_nothing():
    order = np.random.default_rng(1).permutation(11)
    shuffled = Prior([TENS[k] for k in order], UNEVEN.pmf[order])
    rule = Success.within("absolute", 20)
    for mechanism in (MECHANISMS["laplace"], MECHANISMS["gaussian"]):
        plain = advantage(mechanism, Threat(UNEVEN, rule)).value
        assert advantage(mechanism, Threat(shuffled, rule)).value == pytest.approx(
            plain, abs=2e-9
        )
        moved = ScalarChannel(mechanism, np.array(TENS) + 40_000)
        assert advantage(moved, Threat(UNEVEN, rule)).value == pytest.approx(
            plain, abs=2e-9
        )


def test_a_curve_is_its_points():
    threat = THREATS["within"]
    noise = [
        *(LaplaceMechanism(b) for b in (1, 10, 100)),
        GaussianMechanism(20),
        MECHANISMS["laplace clamped"],
        MECHANISMS["laplace truncated"],
        LaplaceMechanism(3),
    ]
    channels = [ScalarChannel(one, TENS) for one in noise]
    channels.append(ScalarChannel(LaplaceMechanism(3), np.array(TENS) / 7))
    curve = [risk.value for risk in advantage_curve(channels, threat)]
    points = [scalar_advantage(channel, threat).value for channel in channels]
    assert curve == pytest.approx(points, abs=1e-13)
    assert advantage_curve([], threat) == ()


def test_blocks_do_not_change_the_sum(monkeypatch):
    threat = THREATS["part known"]
    whole = [advantage(MECHANISMS[k], threat).value for k in list(MECHANISMS)[:3]]
    monkeypatch.setattr("undertow.risk.scalar.engine._LINE_ENTRIES", 33)
    cut = [advantage(MECHANISMS[k], threat).value for k in list(MECHANISMS)[:3]]
    assert cut == pytest.approx(whole, abs=1e-14)


def test_the_gaussian_tolerance_bounds_the_gap():
    channel = ScalarChannel(GaussianMechanism(25), TENS)
    rough = scalar_advantage(channel, THREATS["within"], tolerance=1e-4)
    fine = scalar_advantage(channel, THREATS["within"], tolerance=1e-11)
    assert rough.witness.details["gap"] <= 1.1e-4
    assert fine.witness.details["gap"] <= 2e-11
    low = rough.value - rough.witness.details["gap"]
    assert low <= fine.value - fine.witness.details["gap"] <= fine.value <= rough.value


def test_an_envelope_cut_short_still_bounds_from_above(monkeypatch):
    angles = np.linspace(0, math.pi / 2, 40)
    values = np.stack([np.cos(angles), np.sin(angles)])
    rows, widths = np.array([0]), np.array([3.0])
    exact, lost = fold_cells(values, rows, widths)
    assert lost[0] < 1e-14
    monkeypatch.setattr("undertow.risk.scalar.engine._SPLITS", 1)
    short, missing = fold_cells(values, rows, widths)
    assert short[0] < exact[0] <= short[0] + missing[0]


@pytest.mark.parametrize("family", [LaplaceMechanism, GaussianMechanism])
@pytest.mark.parametrize("scale", ["1e-4", "1e9", "1e-140", "1e140"])
@pytest.mark.parametrize(
    "answers",
    [[0, 1, 2, 3], [0, 0, 1, 1], [-1e12, 0, 1e12, 1e12 + 1], [-1e149, 0, 1, 1e149]],
)
def test_extremes_neither_overflow_nor_leave_their_range(family, scale, answers):
    threat = Threat(Prior(range(4), [0.4, 0, 0.35, 0.25]))
    for noise in (family(scale), ClampedMechanism(family(scale), 0.5, 2.5)):
        channel = ScalarChannel(noise, answers)
        risk = advantage(channel, threat)
        assert 0 <= risk.value <= risk.ceiling
        assert 0.4 - 1e-12 <= success_rate(channel, threat).value <= 1


def test_answers_and_intervals_too_close_for_floats_are_told_apart_or_refused():
    close = ScalarChannel(LaplaceMechanism("1e140"), [0, 5e-324, 1])
    assert 0 < advantage(close, Threat(Prior.uniform(3))).value < 1e-140
    cut = TruncatedMechanism(LaplaceMechanism("1e150"), 0, "1e-150")
    with pytest.raises(NotApplicable, match="interval of truncated noise"):
        ScalarChannel(cut, [0, 1e-150])


def test_no_noise_to_speak_of_gives_the_ceiling():
    prior = Prior(range(3), [0.5, 0.3, 0.2])
    for noise in (LaplaceMechanism("1e-4"), GaussianMechanism("1e-4")):
        assert advantage(noise, Threat(prior)).value == pytest.approx(0.62, abs=1e-9)


def test_equal_answers_and_a_single_record_have_no_risk():
    flat = ScalarChannel(GaussianMechanism(1), [5, 5, 5])
    assert advantage(flat, Threat(Prior.uniform(3))).value == 0
    for threat in (Threat(Prior([7], [1.0])), Threat.membership(Prior([7], [1.0]))):
        assert advantage(LaplaceMechanism(1), threat).value == 0
        assert advantage(GaussianMechanism(1), threat).value == 0
    assert success_rate(flat, Threat(Prior.uniform(3))).value == pytest.approx(1 / 3)


def test_a_certain_record_has_no_risk_beside_impossible_ones():
    prior = Prior([0, 1, 2], [0, 1, 0])
    assert advantage(LaplaceMechanism(1), Threat(prior)).value < 1e-12


def test_guesses_that_always_hit_gain_exactly_nothing():
    threat = Threat(Prior.uniform(range(101)), Success.within("absolute", 100))
    assert advantage(LaplaceMechanism(10), threat).value == 0
    assert advantage(GaussianMechanism(10), threat).value == 0


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (lambda: ScalarChannel(3, [1]), NotApplicable, "mechanism must be Laplace"),
        (
            lambda: ScalarChannel(LaplaceMechanism(1), [1, math.nan]),
            ModelError,
            "answers must be finite",
        ),
        (
            lambda: ScalarChannel(LaplaceMechanism(1), [1, 2], "abc"),
            MismatchError,
            "answers must be one for each of the 3 records, got 2",
        ),
        (
            lambda: ScalarChannel(MECHANISMS["gaussian truncated"], [1, 200]),
            AssumptionError,
            "answers must lie in the interval",
        ),
        (
            lambda: ScalarChannel(LaplaceMechanism("1e-200"), [1]),
            NotApplicable,
            "scale must be in",
        ),
        (
            lambda: advantage(LaplaceMechanism(1), Threat(Prior.uniform(list("ab")))),
            ModelError,
            "records must be finite numbers",
        ),
        (
            lambda: scalar_advantage(
                ScalarChannel(LaplaceMechanism(1), [1, 2]), Threat(Prior.uniform(3))
            ),
            MismatchError,
            "an answer for each of the 3 records, got 2",
        ),
        (
            lambda: scalar_success_rate(
                ScalarChannel(LaplaceMechanism(1), [1, 2], "ab"),
                Threat(Prior.uniform(list("ba"))),
            ),
            MismatchError,
            "on the records of the threat",
        ),
    ],
    ids=["kind", "nan", "count", "outside", "scale", "words", "size", "records"],
)
def test_bad_input_gets_one_sentence(act, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        act()
    assert str(caught.value).endswith(".")


def test_sizes_that_cannot_be_done_are_refused(monkeypatch):
    monkeypatch.setattr(problem, "WORK_LIMIT", 10.0)
    with pytest.raises(NotApplicable, match="total variation"):
        advantage(LaplaceMechanism(1), Threat(UNEVEN))
    monkeypatch.undo()
    monkeypatch.setattr("undertow.risk.scalar.engine._PRODUCTS", 10.0)
    with pytest.raises(NotApplicable, match="total variation"):
        advantage(GaussianMechanism(1), Threat(UNEVEN))


def test_other_sources_are_no_scalar_channels():
    assert as_scalar(Channel([[1.0], [1.0]]), range(2)) is None
    assert as_scalar(LaplaceMechanism(1, dimension=2), range(2)) is None
    assert "11 records" in repr(ScalarChannel(LaplaceMechanism(1), TENS))


@pytest.mark.statistical
@pytest.mark.parametrize("noise", MECHANISMS)
def test_samples_follow_the_law_that_is_stated(noise):
    # One seeded draw per mechanism; false alarm below 1e-6 each.
    channel = ScalarChannel(MECHANISMS[noise], TENS)
    draws = channel.sample(4, 20_000, rng=np.random.default_rng(11))
    places = np.array([20.0, 35.0, 50.0, 65.0])
    expected = np.asarray(channel.mechanism.cdf(places, 40.0))
    seen = (draws[:, None] <= places).mean(axis=0)
    assert np.abs(seen - expected).max() < 5 * 0.5 / math.sqrt(20_000)
    logs = channel.log_likelihood(draws[:3])
    assert logs.shape == (3, 11)
    assert logs[0, 4] == channel.mechanism.log_density(draws[0], 40.0)


KNOWN = {
    "spread": ([0, 0.4, 1.1, 3, 3.2, 9], [0.1, 0.3, 0.05, 0.25, 0.2, 0.1]),
    "ties": ([0, 0, 1, 1, 2], [0.3, 0.1, 0.2, 0.3, 0.1]),
    "one heavy": ([0, 1, 2], [1 - 2e-9, 1e-9, 1e-9]),
    "close": ([0, 1e-4, 2e-4], [0.5, 0.2, 0.3]),
    "far": ([0, 1, 1e6, 1e6 + 2], [0.1, 0.2, 0.3, 0.4]),
    "unreachable": ([0, 1e150], [0.5, 0.5]),
}


@pytest.mark.parametrize("kept", [None, (-0.5, 1.5), (0.2, 0.3)])
@pytest.mark.parametrize("name", KNOWN)
def test_known_records_have_the_value_of_the_general_enclosure(monkeypatch, name, kept):
    answers, pmf = KNOWN[name]
    noise = GaussianMechanism(1)
    channel = ScalarChannel(
        noise if kept is None else ClampedMechanism(noise, *kept), answers
    )
    threat = Threat.membership(Prior(len(pmf), pmf))
    quick = scalar_advantage(channel, threat)
    wide = Enclosure(0.0, 1.0)  # a gap that is never accepted
    monkeypatch.setattr(
        "undertow.risk.scalar.engine.enclose_known", lambda *given: wide
    )
    general = scalar_advantage(channel, threat)
    lowest = general.value - general.witness.details["gap"]
    assert lowest <= quick.value <= general.value + 1e-11
    assert quick.witness.details["gap"] <= general.witness.details["gap"] + 1e-10


def test_known_records_are_never_below_the_roots_of_many_digits():
    answers, pmf = KNOWN["spread"]
    weights = np.array(pmf)
    found = enclose_known(
        weights, weights, np.array(answers, float), ScalarLaw("gaussian", 1.0)
    )
    with mp.workdps(40):
        total = mp.mpf(0)
        for own, share in zip(answers, pmf, strict=True):

            def excess(place, own=own):
                mean = mp.fsum(
                    mp.mpf(p) * mp.npdf(place, mp.mpf(a))
                    for a, p in zip(answers, pmf, strict=True)
                )
                return mp.npdf(place, mp.mpf(own)) - mean

            ends = []
            for way in (-1, 1):
                inner, outer = mp.mpf(own), mp.mpf(own) + 12 * way
                for _ in range(120):
                    middle = (inner + outer) / 2
                    if excess(middle) > 0:
                        inner = middle
                    else:
                        outer = middle
                ends.append(inner)
            inside = mp.fsum(
                mp.mpf(p)
                * (mp.ncdf(ends[1] - mp.mpf(a)) - mp.ncdf(ends[0] - mp.mpf(a)))
                for a, p in zip(answers, pmf, strict=True)
            )
            own = mp.mpf(own)
            gain = mp.ncdf(ends[1] - own) - mp.ncdf(ends[0] - own) - inside
            total += mp.mpf(share) * gain
        assert found.lower - 1e-14 <= total <= found.upper
    assert found.upper - found.lower < 1e-11


def test_brackets_cut_short_still_bound_from_above(monkeypatch):
    answers, pmf = KNOWN["spread"]
    given = (np.array(pmf), np.array(pmf), np.array(answers, float))
    law = ScalarLaw("gaussian", 1.0)
    full = enclose_known(*given, law)
    monkeypatch.setattr("undertow.risk.scalar.engine._ROOT_ROUNDS", 2)
    short = enclose_known(*given, law)
    assert short.lower <= full.lower
    assert short.upper >= full.upper
    assert short.upper - short.lower > 1e-6


def test_a_thousand_known_records_under_gaussian_noise_have_a_narrow_gap():
    m = 1001
    prior = Prior(range(m), np.random.default_rng(1).dirichlet(np.ones(m)))
    channel = ScalarChannel(GaussianMechanism(100), range(m))
    risk = advantage(channel, Threat.membership(prior))
    assert success_rate(channel, Threat.membership(prior)).value == pytest.approx(1.0)
    assert risk.witness.details["gap"] < 1e-10
    assert risk.tight


@pytest.mark.parametrize("noise", MECHANISMS)
@pytest.mark.parametrize("name", THREATS)
def test_no_attack_on_intervals_beats_the_optimum_and_fine_ones_come_near(noise, name):
    mechanism, threat = MECHANISMS[noise], THREATS[name]
    best = advantage(mechanism, threat).value
    bounded = hasattr(mechanism, "low")
    low, high = (mechanism.low, mechanism.high) if bounded else (-150, 250)
    # The last cut lies just below the end, so that an atom there is a cell.
    cuts = np.linspace(float(low), np.nextafter(float(high), -math.inf), 400)
    attack = OptimalGuess(mechanism, threat)
    seen = np.concatenate([cuts[:1], (cuts[1:] + cuts[:-1]) / 2, [float(high)]])
    laws = [attack.guess_law(seen, z) for z in range(len(threat.fibres))]
    decision = Decision(np.stack(laws, axis=1))
    found = scalar_attack_risk(mechanism, threat, cuts=cuts, decision=decision)
    assert best - 2e-3 < found.advantage <= best
    assert found.advantage == pytest.approx(found.success - found.correction)
    assert found.success <= success_rate(mechanism, threat).value


def test_the_regions_of_the_best_guess_attain_the_optimum():
    prior = Prior(2, [0.7, 0.3])
    channel = ScalarChannel(GaussianMechanism(1), [0, 2])
    # Under exact success the first record gains while its density is the larger one.
    found = scalar_attack_risk(
        channel, Threat(prior), cuts=[1.0], decision=Decision([[0], [1]])
    )
    best = scalar_advantage(channel, Threat(prior))
    assert found.advantage == pytest.approx(best.value, abs=1e-9)
    assert found.advantage <= best.value
    backwards = scalar_attack_risk(
        channel, Threat(prior), cuts=[1.0], decision=Decision([[1], [0]])
    )
    assert backwards.advantage == pytest.approx(-found.advantage)


def test_an_attack_on_intervals_is_what_a_simulation_measures():
    mechanism, threat = ClampedMechanism(LaplaceMechanism(25), 30, 70), THREATS["table"]
    cuts = np.array([30.0, 45.0, 60.0, 70.0])
    decision = Decision([[1], [3], [4], [6], [0]])

    class Intervals:
        def guess(self, outputs, known, *, rng):
            return decision.table[np.searchsorted(cuts, outputs), known]

    exact = scalar_attack_risk(mechanism, threat, cuts=cuts, decision=decision)
    measured = estimate_attack(
        ScalarChannel(mechanism, TENS),
        Intervals(),
        threat,
        trials=20_000,
        confidence=1 - 1e-6,
        rng=np.random.default_rng(11),
    )
    assert measured.advantage.low < exact.advantage < measured.advantage.high
    assert measured.success.low < exact.success < measured.success.high


def test_cuts_must_ascend_and_fit_the_table():
    channel, threat = (
        ScalarChannel(LaplaceMechanism(1), [0, 1]),
        Threat(Prior.uniform(2)),
    )
    table = Decision([[0], [1]])
    for cuts in ([1.0, 0.0], [0.0, 0.0], [math.inf], [[0.0]]):
        with pytest.raises(ModelError, match="cuts must be"):
            scalar_attack_risk(channel, threat, cuts=cuts, decision=table)
    with pytest.raises(MismatchError, match="3 outputs"):
        scalar_attack_risk(channel, threat, cuts=[0.0, 1.0], decision=table)
    with pytest.raises(TypeError, match="use attack_risk"):
        scalar_attack_risk(Channel(np.eye(2)), threat, cuts=[0.0], decision=table)


PAIR = Threat(Prior.uniform(2))


def test_whole_numbers_that_round_to_one_are_no_tie():
    with pytest.raises(ModelError, match=r"exact as floats.*subtract"):
        advantage(LaplaceMechanism(1), Threat(Prior.uniform([2**53, 2**53 + 1])))
    with pytest.raises(ModelError, match="exact as floats"):
        ScalarChannel(LaplaceMechanism(1), [10**17, np.int64(10**17 + 1)])
    kept = advantage(LaplaceMechanism(1), Threat(Prior.uniform([2**53, 2**53 + 2])))
    assert kept.value == pytest.approx(laplace_advantage([0, 2], 1), rel=1e-9)


def test_text_is_no_number():
    with pytest.raises(ModelError, match="finite numbers"):
        advantage(LaplaceMechanism(1), Threat(Prior.uniform(["0", "1"])))


class _Zeros:
    """A generator that draws the least level there is."""

    def uniform(self, size):
        return np.zeros(size)


@pytest.mark.parametrize("noise", [LaplaceMechanism(1), GaussianMechanism(1)])
def test_the_least_level_is_a_finite_output(noise):
    drawn = ScalarChannel(noise, [0.0, 1.0]).sample(0, 3, rng=_Zeros())
    assert np.isfinite(drawn).all()
    assert (drawn < -8).all()


def test_truncation_can_tell_more_than_plain_noise():
    answers, threat = [0.0, 23.5, 1.2], Threat(Prior(3, [0.02, 0.89, 0.09]))
    plain, cut = LaplaceMechanism(1), TruncatedMechanism(LaplaceMechanism(1), 0, "23.5")
    more = advantage(ScalarChannel(cut, answers), threat).value
    assert more > advantage(ScalarChannel(plain, answers), threat).value + 1e-4


def test_a_sliver_of_gaussian_noise_is_bounded_but_not_called_tight():
    sliver = TruncatedMechanism(GaussianMechanism(1), 0, 1e-9)
    channel = ScalarChannel(sliver, [0.0, 1e-9])
    with mp.workdps(40):
        end = mp.mpf("1e-9")
        mass = mp.ncdf(end) - mp.mpf("0.5")
        exact = (mp.ncdf(end / 2) - mp.mpf("0.5")) / mass - mp.mpf("0.5")
    found = advantage(channel, PAIR)
    assert found.value >= exact
    assert not found.tight
    assert not success_rate(channel, PAIR).tight
    usual = advantage(ScalarChannel(GaussianMechanism(1), [0.0, 1.0]), PAIR)
    assert usual.tight
    assert usual.value >= float(mp.ncdf(0.5) - 0.5)


def test_answers_a_subnormal_share_of_the_scale_apart_keep_a_risk():
    channel = ScalarChannel(LaplaceMechanism("1e150"), [0.0, 1.3e-171])
    assert advantage(channel, PAIR).value >= 1.3e-321 / 4
    assert math.isfinite(advantage(channel, PAIR).value)
