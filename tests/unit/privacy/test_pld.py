"""Privacy-loss distributions against closed forms, brute force and dp_accounting."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from scipy.special import log_ndtr
from scipy.stats import binom

from undertow.errors import AssumptionError, MismatchError, SearchError
from undertow.privacy._pld_fourier import TiltedLaw, gather, grid_rows, smallest_epsilon
from undertow.privacy.gaussian import gdp_delta, gdp_epsilon
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.privacy.pld import PrivacyLossDistribution, compose_distributions
from undertow.privacy.tradeoff import PiecewiseLinearTradeOff

PLD = PrivacyLossDistribution
BELOW = -1e-13  # how far a double-precision reference itself may be off


def gauss_delta(mu, epsilon):
    a, b = log_ndtr(-epsilon / mu + mu / 2), log_ndtr(-epsilon / mu - mu / 2)
    return math.exp(a) * -math.expm1(epsilon + b - a)


def laplace_delta(scale_shift, epsilon):
    return max(0.0, -math.expm1((epsilon - scale_shift) / 2))


def response_delta(epsilon, n, at):
    """n randomized responses exactly: Kairouz, Oh, Viswanath (2015), in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        e, x = Decimal(epsilon), Decimal(at)
        odds = e.exp()
        p = odds / (1 + odds)
        term, total = (1 - p) ** n, Decimal(0)
        for j in range(n + 1):
            loss = (2 * j - n) * e
            if loss > x:
                total += term * (1 - (x - loss).exp())
            term = term * (n - j) / (j + 1) * odds
        return total


def relative_excess(value, reference):
    return float(Decimal(value) / Decimal(reference) - 1)


@pytest.mark.parametrize(
    ("mu", "epsilon", "expected"),
    [
        pytest.param(1, 0, 0.382924922548, id="T-10.5-0"),
        pytest.param(1, 1, 0.126936737507, id="T-10.5-1"),
        pytest.param(1, 3, 0.001537185369, id="T-10.5-3"),
        pytest.param("0.1", 0.5, 6.856582456e-9, id="T-10.5-small"),
        pytest.param("0.1", 3, 7.304806e-200, id="T-10.5-no-cancellation"),
    ],
)
def test_gaussian_delta_is_the_closed_form(mu, epsilon, expected):
    assert PLD.from_gaussian(mu).delta(epsilon) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("mu", "n", "delta", "expected"),
    [
        pytest.param(1, 1, "1e-5", 4.377178095681, id="T-10.6"),
        pytest.param("0.1", 100, "1e-5", 4.377178095681, id="T-10.10"),
        pytest.param(1, 10, "1e-5", 17.856586830108, id="T-10.12"),
        pytest.param("0.1", 24, "1e-6", 2.204119, id="T-10.13"),
    ],
)
def test_many_gaussians_are_one_gaussian(mu, n, delta, expected):
    got = PLD.from_gaussian(mu).self_compose(n).epsilon(delta)
    assert got == pytest.approx(expected, rel=3e-7)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 2.0, 14.0, 50.0])
@pytest.mark.parametrize("sigmas", [-1.0, 0.0, 1.0, 4.0, 9.0])
def test_gaussian_delta_is_above_and_near_the_reference(mu, sigmas):
    epsilon = max(0.0, mu * mu / 2 + sigmas * mu)
    reference = gauss_delta(mu, epsilon)
    excess = PLD.from_gaussian(mu).delta(epsilon) / reference - 1
    reference_error = 1e-14 * (1 + sigmas**2) / min(mu, 1)  # the difference cancels
    assert -reference_error <= excess <= 3e-6


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(0, 0.462117157260), (1, 0.337834712147), (1.5, 0.210288368980)],
)
def test_T_10_9_two_randomized_responses(epsilon, expected):
    got = PLD.from_pure(1).self_compose(2).delta(epsilon)
    assert got == pytest.approx(expected, abs=2e-12)


def test_T_10_9_delta_is_exactly_zero_at_the_sum_of_the_losses():
    assert PLD.from_pure(1).self_compose(2).delta(2) == 0.0


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        pytest.param(PLD.from_pure(1), 0.462117157260, id="T-10.14-pure"),
        pytest.param(PLD.from_approx(1, 0.1), 0.515905441534, id="T-10.14-approx"),
        pytest.param(
            PLD.from_gaussian(1).self_compose(10), 0.886153701993, id="T-10.14-ten"
        ),
    ],
)
def test_delta_at_zero_is_the_total_variation(distribution, expected):
    assert distribution.delta(0) == pytest.approx(expected, abs=2e-12)


def test_T_10_1_corners_of_an_approximate_guarantee_give_its_distribution():
    corner = 0.9 / (1 + math.e)
    curve = PLD.from_tradeoff([0, corner, 0.9, 1], [0.9, corner, 0, 0])
    for epsilon in (0.0, 0.4, 1.0, 3.0):
        expected = PLD.from_approx(1, 0.1).delta(epsilon)
        assert curve.delta(epsilon) == pytest.approx(expected, abs=1e-9)
    assert curve.delta(0.4) > 0.3


@pytest.mark.parametrize(
    ("epsilon", "n"),
    [(1e-6, 1), (1.0, 1), (0.5, 10), (0.1, 100), (3.0, 5), (2.0, 500), (0.01, 1000)],
)
@pytest.mark.parametrize("sigmas", [-0.5, 0.0, 2.0, 5.0, 15.0])
def test_repeated_pure_dp_matches_the_binomial_formula(epsilon, n, sigmas):
    mean = n * epsilon * math.tanh(epsilon / 2)
    spread = math.sqrt(n) * epsilon / math.cosh(epsilon / 2)
    at = min(max(mean + sigmas * spread, 0.1 * epsilon), 0.999 * n * epsilon)
    composed = PLD.from_pure(epsilon).self_compose(n)
    reference = response_delta(composed.parts[0][0].forward.losses[1], n, at)
    assert 0 <= relative_excess(composed.delta(at), reference) <= 1e-8


@pytest.mark.parametrize("delta", [1e-1, 1e-6, 1e-12, 1e-40])
def test_epsilon_of_repeated_pure_dp_is_enough_and_barely_so(delta):
    composed = PLD.from_pure(0.05).self_compose(400)
    epsilon = composed.epsilon(delta)
    assert response_delta(0.05, 400, epsilon) <= Decimal(delta)
    assert response_delta(0.05, 400, epsilon * (1 - 1e-6)) > Decimal(delta)


@pytest.mark.parametrize("shift", [1e-6, 0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.9, 0.999])
def test_single_laplace_matches_its_closed_form(shift, fraction):
    reference = laplace_delta(shift, fraction * shift)
    excess = PLD.from_laplace(shift).delta(fraction * shift) / reference - 1
    assert BELOW * 1e3 <= excess <= 1e-5


def test_composed_laplace_lies_between_rounding_down_and_rounding_up():
    shift, n, step = 0.5, 6, 0.5 / 1024
    edges = np.arange(-1024, 1025) * step
    cdf = np.exp((edges - shift) / 2) / 2
    cells = np.diff(cdf)
    low = np.concatenate([cells, [0.5]])
    low[0] += math.exp(-shift) / 2
    high = np.concatenate([[math.exp(-shift) / 2], cells])
    high[-1] += 0.5
    composed = PLD.from_laplace(shift).self_compose(n)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 2.7):
        bounds = []
        for law in (low, high):
            total = law
            for _ in range(n - 1):
                total = np.convolve(total, law)
            losses = n * edges[0] + step * np.arange(total.size)
            bounds.append(total @ -np.expm1(np.minimum(epsilon - losses, 0)))
        got = composed.delta(epsilon)
        assert bounds[0] <= got <= bounds[1]
        assert got - bounds[0] > 0.1 * (bounds[1] - bounds[0])


@pytest.mark.parametrize(
    "distribution", [PLD.from_laplace(0.7), PLD.from_laplace(0.01), PLD.from_pure(0.7)]
)
@pytest.mark.parametrize("step", [2.0**-3, 3 * 2.0**-7, 2.0**-12])
def test_connected_dots_keep_both_masses_and_touch_the_curve(distribution, step):
    (rows,) = grid_rows(gather(distribution.parts, reverse=False), step, budget=1 << 16)
    losses = rows.nodes * step
    assert rows.masses.min() >= 0
    assert rows.masses.sum() == pytest.approx(1, abs=1e-13)
    assert rows.masses @ np.exp(-losses) == pytest.approx(1, abs=1e-13)
    epsilon = distribution.max_loss
    laplace = "Laplace" in repr(distribution)
    for node in losses[np.abs(losses) < epsilon]:
        got = rows.masses @ -np.expm1(np.minimum(node - losses, 0))
        curve = (
            laplace_delta(epsilon, node)
            if laplace
            else -math.expm1(node - epsilon) / (1 + math.exp(-epsilon))
        )
        assert got == pytest.approx(max(curve, -math.expm1(node)), abs=1e-12)


def test_gaussians_with_responses_match_the_binomial_mixture():
    mu, epsilon, n = 0.4, 0.3, 25
    composed = compose_distributions(
        [PLD.from_pure(epsilon)] * n + [PLD.from_gaussian(mu / 2)] * 4
    )
    j = np.arange(n + 1)
    weights = binom.pmf(j, n, 1 / (1 + math.exp(-epsilon)))
    for at in (0.0, 1.0, 3.0, 6.0):
        gaps = at - (2 * j - n) * epsilon
        reference = float(
            sum(w * gauss_delta(mu, gap) for w, gap in zip(weights, gaps, strict=True))
        )
        assert -1e-11 <= composed.delta(at) / reference - 1 <= 1e-9


def inverted_transform_delta(laplace, mus, pures, *, epsilon, tilt):
    """delta by the inverse Laplace transform of the exact cumulants, on Re z = tilt.

    The payoff (1 - e^{-x})_+ has the transform 1 / (z (z + 1)); the trapezoidal rule
    converges geometrically because the Gaussian parts damp the integrand.
    """
    z = tilt + 1j * np.arange(-60, 60, 0.005)
    k = z + 0.5
    exponent = (z + z * z) * sum(mu * mu for mu in mus) / 2 - z * epsilon
    for e in laplace:
        exponent += np.log(np.cosh(k * e) + np.sinh(k * e) / (2 * k)) - e / 2
    for e in pures:
        exponent += np.log(np.cosh(k * e) / np.cosh(e / 2))
    return float((np.exp(exponent) / (z * (z + 1))).real.sum() * 0.005 / (2 * np.pi))


@pytest.mark.parametrize(
    ("epsilon", "tilt"), [(1.0, 2.0), (3.0, 4.0), (6.0, 9.0), (9.0, 14.0)]
)
def test_300_different_parts_match_an_inverted_laplace_transform(epsilon, tilt):
    values = np.random.default_rng(3).uniform(0.01, 0.1, size=(3, 100))
    composed = compose_distributions(
        [PLD.from_laplace(e) for e in values[0]]
        + [PLD.from_gaussian(mu) for mu in values[1]]
        + [PLD.from_pure(e) for e in values[2]],
        tolerance=1e-4,
    )
    truth = inverted_transform_delta(*values, epsilon=epsilon, tilt=tilt)
    assert 1e-25 < truth < 0.3
    assert -1e-10 <= composed.delta(epsilon) / truth - 1 <= 5e-3
    needed = composed.epsilon(truth)
    assert epsilon * (1 - 1e-10) <= needed <= epsilon * (1 + 2e-4)


def test_discrete_laplace_matches_its_law():
    epsilon, shift = 1.2, 3
    x = np.arange(-200, 204)
    rate = epsilon / shift
    p, q = np.exp(-rate * np.abs(x)), np.exp(-rate * np.abs(x - shift))
    p, q = p / p.sum(), q / q.sum()
    composed = PLD.from_discrete_laplace(epsilon, sensitivity=shift)
    for at in (0.0, 0.3, 0.5, 1.0):
        reference = np.maximum(p - math.exp(at) * q, 0).sum()
        assert composed.delta(at) == pytest.approx(reference, abs=1e-9)
    assert composed.delta(1.2) == 0.0


def test_discrete_laplace_of_sensitivity_one_is_randomized_response():
    left = PLD.from_discrete_laplace(0.7).self_compose(9)
    right = PLD.from_pure(0.7).self_compose(9)
    assert left.delta(2) == pytest.approx(right.delta(2), rel=1e-9)


def test_approximate_guarantees_lose_their_delta_for_sure():
    composed = PLD.from_approx(1, 0.01).self_compose(3)
    lost = 1 - 0.99**3
    pure = float(response_delta(1, 3, 2))
    assert composed.delta(2) == pytest.approx(lost + 0.99**3 * pure, rel=1e-9)
    assert composed.delta(2) >= lost + 0.99**3 * pure
    assert composed.epsilon(lost * 0.999) == math.inf
    assert composed.delta(math.inf) == pytest.approx(lost, rel=1e-12)


@pytest.mark.parametrize("delta", ["1e-5", 1e-5, 0.3])
def test_one_approximate_guarantee_gives_its_epsilon_back(delta):
    assert PLD.from_approx("0.3", delta).loss(delta).within(Approx(0.30000001, delta))


def test_asymmetric_pairs_report_the_worse_order():
    p, q = [0.9, 0.1, 0.0], [0.5, 0.3, 0.2]
    forward = max(0.0, 0.9 - math.e * 0.5)
    backward = (0.3 - math.e * 0.1) + 0.2
    assert PLD.from_pmfs(p, q).delta(1) == pytest.approx(max(forward, backward))
    assert PLD.from_pmfs(p, q).delta(1) == PLD.from_pmfs(q, p).delta(1)
    assert backward > forward


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-9])
@pytest.mark.slow
def test_a_mixture_agrees_with_dp_accounting_within_its_error(delta):
    rng = np.random.default_rng(11)
    ours, highs, lows = [], [], []
    for index in range(24):
        value = float(rng.uniform(0.05, 0.4))
        if index % 3 == 0:
            ours.append(PLD.from_laplace(value))
            theirs, options = peer.from_laplace_mechanism, {"parameter": 1 / value}
        elif index % 3 == 1:
            ours.append(PLD.from_gaussian(value))
            theirs = peer.from_gaussian_mechanism
            options = {"standard_deviation": 1 / value}
        else:
            ours.append(PLD.from_discrete_laplace(value))
            theirs, options = (
                peer.from_discrete_laplace_mechanism,
                {"parameter": value, "sensitivity": 1},
            )
        options["use_connect_dots"] = False
        highs.append(theirs(**options, pessimistic_estimate=True))
        lows.append(theirs(**options, pessimistic_estimate=False))
    high, low = (reduce(lambda a, b: a.compose(b), side) for side in (highs, lows))
    got = compose_distributions(ours, tolerance=1e-4).epsilon(delta)
    assert low.get_epsilon_for_delta(delta) <= got
    assert got <= high.get_epsilon_for_delta(delta)
    assert got <= low.get_epsilon_for_delta(delta) * 1.003


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_a_million_laplace_runs_stay_near_their_gaussian_limit(n):
    epsilon = 1 / math.sqrt(n)
    got = PLD.from_laplace(epsilon).self_compose(n).epsilon(1e-6)
    # L has variance eps^2 (1 + O(eps)); the limit is 1-GDP, whose epsilon is 4.8866.
    assert 4.8 < got < 4.8866 * 1.002


def test_a_finer_tolerance_lowers_epsilon_to_a_limit():
    composed = PLD.from_laplace(0.003).self_compose(10**5)
    coarse = replace(composed, tolerance=0.1).epsilon(1e-6)
    fine = replace(composed, tolerance=1e-5).epsilon(1e-6)
    assert fine <= composed.epsilon(1e-6) <= coarse
    assert composed.epsilon(1e-6) <= fine * 1.001
    assert fine * 1.002 < coarse < fine * 1.1


def test_a_coarse_step_is_honoured_and_stays_safe():
    composed = PLD.from_laplace(0.3).self_compose(50)
    exact, rough = composed.epsilon(1e-6), replace(composed, step=1.0).epsilon(1e-6)
    assert exact * 1.01 < rough < exact * 2


def test_equal_parts_are_counted_once():
    composed = compose_distributions(
        [PLD.from_pure("0.1"), PLD.from_laplace(1), PLD.from_pure("1/10")]
    )
    assert [count for _, count in composed.parts] == [2, 1]
    assert composed.count == 3


def test_composing_in_steps_equals_composing_at_once():
    parts = [PLD.from_pure(0.3), PLD.from_laplace(0.2), PLD.from_gaussian(0.1)]
    stepwise = parts[0].compose(parts[1]).compose(parts[2])
    assert stepwise.epsilon(1e-4) == compose_distributions(parts).epsilon(1e-4)


def test_no_run_at_all_costs_nothing():
    for nothing in (
        PLD.identity(),
        PLD.from_laplace(3).self_compose(0),
        PLD.from_gaussian(0),
        PLD.from_laplace(0),
        PLD.from_pure(0),
        PLD.from_discrete_laplace(0),
        PLD.from_pmfs([0.5, 0.5], [0.5, 0.5]),
    ):
        assert (nothing.delta(0), nothing.epsilon(0), nothing.count) == (0, 0, 0)


def test_delta_zero_asks_for_the_largest_loss():
    assert PLD.from_pure("0.5").self_compose(4).epsilon(0) == 2.0
    assert PLD.from_gaussian(1).epsilon(0) == math.inf
    assert PLD.from_laplace(2).max_loss == 2.0


def test_delta_is_zero_at_the_sum_of_the_losses_as_they_were_written():
    composed = PLD.from_pure("0.1").compose(PLD.from_laplace(0.1), PLD.from_pure(0.1))
    assert composed.delta(0.3) == 0.0
    assert composed.delta(0.2999) > 0.0


def test_delta_one_is_free():
    assert PLD.from_gaussian(5).epsilon(1) == 0.0


def test_disjoint_supports_promise_nothing():
    told_apart = PLD.from_pmfs([1, 0], [0, 1]).compose(PLD.from_laplace(1))
    assert told_apart.delta(100) == 1.0
    assert told_apart.epsilon(0.5) == math.inf
    assert PLD.from_approx(0, 1).delta(5) == 1.0


@pytest.mark.parametrize(
    ("loss", "same"),
    [
        (Pure("0.3"), PLD.from_pure("0.3")),
        (Approx(1, "1e-6"), PLD.from_approx(1, "1e-6")),
        (GDP(2), PLD.from_gaussian(2)),
    ],
)
def test_a_loss_becomes_its_dominating_pair(loss, same):
    assert PLD.from_loss(loss) == same


def test_zero_concentrated_loss_is_refused():
    with pytest.raises(AssumptionError, match="dominating pair"):
        PLD.from_loss(ZCDP(1))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PLD.from_laplace(-1), "epsilon must be non-negative"),
        (lambda: PLD.from_laplace("inf"), "epsilon must be finite"),
        (lambda: PLD.from_gaussian(math.nan), "mu must be a number"),
        (lambda: PLD.from_approx(1, 2), "delta must be at most 1"),
        (lambda: PLD.from_pure(1).delta(-1), "epsilon must be non-negative"),
        (lambda: PLD.from_pure(1).epsilon(-1), "delta must be non-negative"),
        (lambda: PLD.from_pure(1).self_compose(-1), "at least 0, got -1"),
        (
            lambda: PLD.from_pmfs([0.5, 0.6], [0.5, 0.5]),
            "p must be non-negative and sum",
        ),
        (
            lambda: PLD.from_pmfs([0.5, 0.5], [1.5, -0.5]),
            "q must be non-negative and sum",
        ),
        (lambda: PLD.from_pmfs([1.0], [0.5, 0.5]), "one shape"),
        (lambda: PLD.from_tradeoff([0, 0.5, 1], [1, 0.6, 0]), "not a convex curve"),
        (lambda: PLD.from_tradeoff([0, 1], [1, 0.1]), "not beta decreasing"),
        (lambda: PLD.from_tradeoff([0.1, 1], [0.5, 0]), "not alpha increasing"),
        (lambda: PLD.from_tradeoff([0, 1], [1, 0, 0]), "one length"),
        (lambda: compose_distributions([], tolerance=0), "tolerance must be in"),
        (lambda: compose_distributions([], step=-1.0), "step must be positive"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_shapes_that_differ_are_a_mismatch():
    with pytest.raises(MismatchError):
        PLD.from_pmfs([1.0], [0.5, 0.5])


def test_a_distribution_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        PLD.from_pure(1).tolerance = 0.1


def test_a_delta_below_the_certified_error_is_refused():
    law = TiltedLaw(
        mu=1.0,
        infinity=0.0,
        tilt=1.0,
        losses=np.zeros(1),
        weights=np.ones(1),
        log_mass=0.0,
        error=0.0,
        slack=0.0,
        below=0.0,
        above=1e-3,
    )
    with pytest.raises(SearchError, match="larger delta"):
        smallest_epsilon(law, 1e-4, guess=1.0, most=math.inf)


def test_mass_above_the_window_is_added_to_delta():
    law = TiltedLaw(
        mu=0.0,
        infinity=0.25,
        tilt=1.0,
        losses=np.zeros(1),
        weights=np.ones(1),
        log_mass=0.0,
        error=0.0,
        slack=0.0,
        below=0.0,
        above=0.125,
    )
    assert law.delta(1.0) == pytest.approx(0.375)


@pytest.mark.parametrize("epsilon", [k / 37 for k in range(1, 12)])
def test_a_reported_loss_is_not_below_its_certified_epsilon(epsilon):
    # The decimal form of a float may lie below the float itself.
    total = PrivacyLossDistribution.from_laplace(epsilon).self_compose(3)
    reported = total.loss(1e-3).exact_parameters()[0]
    assert reported == Fraction(total.epsilon(1e-3))


@pytest.mark.parametrize("mu", ["1e-160", "1e-170", "1e-300"])
def test_gaussian_parts_whose_squares_underflow_still_cost(mu):
    part = PrivacyLossDistribution.from_gaussian(mu)
    assert part.delta(0) >= 0.398942 * float(mu)
    four = part.self_compose(4)
    assert 2 * 0.398942 * float(mu) <= four.delta(0) <= 2 * 0.398943 * float(mu)


def test_gaussian_parts_alone_follow_the_closed_curve():
    part = PrivacyLossDistribution.from_gaussian("0.5").self_compose(4)
    assert part.delta(1) == pytest.approx(gdp_delta(1.0, 1.0), rel=1e-12)
    assert part.epsilon("1e-350") == pytest.approx(
        gdp_epsilon(1.0, log_delta=-350 * math.log(10)), rel=1e-12
    )


def test_deltas_below_the_floats_cost_everything_or_are_refused():
    pure = PrivacyLossDistribution.from_pure(1).self_compose(5)
    assert pure.epsilon("1e-350") == 5
    with pytest.raises(SearchError, match="Gaussian"):
        pure.compose(PrivacyLossDistribution.from_gaussian(1)).epsilon("1e-350")


def test_an_infinite_loss_next_to_certain_is_certain():
    nearly = PrivacyLossDistribution.from_approx(1, 1 - Fraction(1, 10**20))
    assert nearly.self_compose(2).delta(0) == 1


@pytest.mark.parametrize("build", ["from_pure", "from_laplace", "from_gaussian"])
def test_parameters_beyond_every_use_are_refused(build):
    with pytest.raises(ValueError, match="at most 1e\\+100"):
        getattr(PrivacyLossDistribution, build)("1e350")


def test_a_loss_so_large_that_its_other_mass_underflows_is_composed():
    huge = PrivacyLossDistribution.from_pure("1e5")
    assert huge.delta(5) == 1
    assert 99_999 < huge.epsilon("1e-5") <= 100_000


def test_only_distributions_are_composed():
    with pytest.raises(TypeError, match="got Pure; build it with from_loss"):
        compose_distributions([Pure(1)])
    with pytest.raises(ValueError, match="n must be a whole number"):
        PrivacyLossDistribution.from_pure(1).self_compose(2.0)
    with pytest.raises(ValueError, match="sensitivity must be at most"):
        PrivacyLossDistribution.from_discrete_laplace(1, sensitivity=10**8)


def test_all_constructors_compose_in_one_list():
    build = PrivacyLossDistribution
    parts = [
        build.from_gaussian("0.1"),
        build.from_laplace("0.2"),
        build.from_pure("0.1"),
        build.from_approx("0.1", "1e-7"),
        build.from_discrete_laplace("0.2", sensitivity=3),
        build.from_pmfs([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]),
        build.from_tradeoff([0, 0.25, 1], [0.9, 0.3, 0]),
        build.from_loss(GDP("0.1")),
        build.identity(),
    ]
    total = compose_distributions(parts)
    assert total.count == 8
    alone = max(part.delta("0.5") for part in parts)
    assert alone <= total.delta("0.5") <= 1


def test_too_many_repetitions_are_refused_without_a_wrong_number():
    part = PrivacyLossDistribution.from_pure("1e-6").self_compose(10**12)
    many = compose_distributions([part], step=1e-3)
    assert many.delta(4) >= 0.0001
    with pytest.raises(SearchError, match="rounding error"):
        many.epsilon("1e-6")


def test_a_minute_gaussian_part_beside_large_ones_does_not_overflow():
    """A small mu gives a large tilt; at positive gaps its factor passed the floats."""
    large = PrivacyLossDistribution.from_laplace(10**1.5).compose(
        PrivacyLossDistribution.from_laplace(1.0)
    )
    minute = PrivacyLossDistribution.from_gaussian(1e-5)
    alone, beside = large.epsilon(1e-7), large.compose(minute).epsilon(1e-7)
    assert alone * (1 - 2e-3) <= beside <= alone * (1 + 2e-3)


def test_steep_corners_with_rounded_slopes_are_read_as_by_a_trade_off_function():
    alpha, beta = [0, 1e-9, 2e-9, 1], [1, 0.8, 0.6, 0]
    slopes = np.diff(beta) / np.diff(alpha)
    assert -1.0 < slopes[1] - slopes[0] < -1e-12  # one line, bent by its rounding
    f, pair = PiecewiseLinearTradeOff(alpha, beta), PLD.from_tradeoff(alpha, beta)
    for epsilon in (0.0, 1.0, 5.0, 18.0):
        assert pair.delta(epsilon) >= f.delta(epsilon) * (1 - 1e-12)
        assert pair.delta(epsilon) == pytest.approx(f.delta(epsilon), rel=1e-3)
