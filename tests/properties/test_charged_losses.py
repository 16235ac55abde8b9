"""What a budget takes for a mechanism is at least what its draws can tell.

The law of a draw is enumerated: masses are worked out here, from the definition of each
law, and not taken from the mechanism.
"""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import undertow as ut
from undertow.composition import plan_from_document, plan_to_document
from undertow.correlation import CoveredMechanisms
from undertow.errors import AssumptionError, NotApplicable
from undertow.ledger import BudgetLedger
from undertow.mechanisms import (
    ClampedMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    NoisyMax,
    RandomizedResponse,
    TruncatedMechanism,
)
from undertow.mechanisms.noise.lattice import lattice_round
from undertow.privacy import PrivacyLossDistribution, group
from undertow.privacy.gaussian import gdp_delta
from undertow.spaces.metric import AbsoluteDifference, DiscreteMetric, LpNorm

UNIT = AbsoluteDifference()
CITY = ut.Table(("N", "S"))
ORDERS = (1.5, 2.0, 8.0, 40.0)
SIZES = st.fractions(Fraction(1, 4), 6, max_denominator=32)
EPSILONS = st.fractions(Fraction(1, 20), 3, max_denominator=20)


def taken(loss: ut.Loss) -> bool:
    """Tell whether a budget as large as the loss takes it."""
    ledger = ut.WindowLedger(1, loss)
    try:
        ledger.spend(loss)
    except AssumptionError:
        return False
    assert ledger.loss() == loss
    return True


def lattice_law(family: str, size: Fraction, shift: int, reach: int = 400):
    """Return the masses of shift + noise on the whole numbers from -reach to reach."""
    k = np.arange(-reach, reach + 1, dtype=float) - shift
    logs = -np.abs(k) / float(size)
    if family == "gaussian":
        logs = -(k**2) / (2 * float(size) ** 2)
    masses = np.exp(logs)
    return masses / math.fsum(masses)


def within_pure(loss: ut.Pure, p, q) -> bool:
    seen = (p > 1e-290) & (q > 1e-290)
    gaps = np.abs(np.log(p[seen]) - np.log(q[seen]))
    return float(gaps.max(initial=0)) <= loss.epsilon * (1 + 1e-9) + 1e-12


def within_zcdp(loss: ut.ZCDP, p, q) -> bool:
    seen = (p > 1e-290) & (q > 1e-290)
    logs = np.log(p[seen]), np.log(q[seen])
    for order in ORDERS:
        whole = float(logsumexp(order * logs[0] + (1 - order) * logs[1]))
        if whole / (order - 1) > order * loss.rho * (1 + 1e-12) + 1e-9:
            return False
    return True


def law_is_within(loss: ut.Loss, p, q) -> bool:
    check = within_pure if isinstance(loss, ut.Pure) else within_zcdp
    return all(check(loss, *pair) for pair in ((p, q), (q, p)))


@given(st.sampled_from(("laplace", "gaussian")), SIZES, st.integers(1, 4))
def test_noise_is_charged_at_least_what_its_draws_tell(family, size, apart):
    # The law drawn on whole numbers; a finer lattice tells no more at whole numbers.
    laplace = family == "laplace"
    whole = (DiscreteLaplaceMechanism if laplace else DiscreteGaussianMechanism)(size)
    ideal = (LaplaceMechanism if laplace else GaussianMechanism)(size)
    p, q = lattice_law(family, size, 0), lattice_law(family, size, apart)
    some = False
    for mechanism in (whole, ideal, ClampedMechanism(ideal, -3, 9), ideal.released):
        loss = mechanism.loss(UNIT)
        if taken(loss):
            some = True
            assert law_is_within(group(loss, apart), p, q)
    assert some


@given(st.sampled_from(("laplace", "gaussian")), SIZES, st.integers(1, 7))
def test_clamped_and_truncated_noise_is_charged_at_least_what_it_tells(
    family, size, width
):
    laplace = family == "laplace"
    whole = (DiscreteLaplaceMechanism if laplace else DiscreteGaussianMechanism)(size)
    ideal = (LaplaceMechanism if laplace else GaussianMechanism)(size)
    laws = [lattice_law(family, size, shift) for shift in (0, 1)]
    low, high = 400, 400 + width
    cut = [law[low : high + 1] / law[low : high + 1].sum() for law in laws]
    assert taken(TruncatedMechanism(whole, 0, width).loss(UNIT))
    for base in (whole, ideal):
        truncated = TruncatedMechanism(base, 0, width)
        for loss in (truncated.loss(UNIT), truncated.worst_loss(1)):
            if taken(loss):
                assert law_is_within(loss, *cut)
    clamped = [
        np.array([law[: low + 1].sum(), *law[low + 1 : high], law[high:].sum()])
        for law in laws
    ]
    for base in (whole, ideal):
        bounded = ClampedMechanism(base, 0, width)
        for loss in (bounded.pure_loss(UNIT), bounded.pair_loss(0, 1)):
            if taken(loss):
                assert law_is_within(loss, *clamped)


@given(EPSILONS, st.integers(2, 6))
def test_choices_are_charged_at_least_what_they_tell(epsilon, size):
    response = RandomizedResponse(size, epsilon)
    loss = response.loss(DiscreteMetric())
    assert taken(loss)
    rows = [np.asarray(response.pmf(label)) for label in response.candidates]
    assert all(law_is_within(loss, p, q) for p in rows for q in rows)
    scores = np.eye(size)
    for noise in (ExponentialMechanism, NoisyMax):
        mechanism = noise(size, epsilon=epsilon)
        loss = mechanism.loss(LpNorm("inf"))
        assert taken(loss)
        rows = [np.asarray(mechanism.pmf(row)) for row in scores]
        assert all(law_is_within(loss, p, q) for p in rows for q in rows)


@given(st.fractions(Fraction(1, 3), 3, max_denominator=16))
def test_draws_tell_more_than_the_gaussian_curve_somewhere(sigma):
    mechanism = GaussianMechanism(sigma)
    assert not taken(mechanism.loss(UNIT))
    assert not taken(mechanism.pair_loss(0, 1))
    p, q = (lattice_law("gaussian", sigma, shift) for shift in (0, 1))
    mu = mechanism.loss(UNIT).mu
    drawn = [
        (e, float(np.maximum(p - math.exp(e) * q, 0).sum()))
        for e in np.linspace(0, 6 * mu, 60)
    ]
    assert any(delta > gdp_delta(mu, e) * (1 + 1e-6) for e, delta in drawn)


@given(SIZES, st.floats(0.05, 4))
def test_the_exact_curve_of_a_draw_is_taken_and_that_of_ideal_noise_is_not(
    sigma, epsilon
):
    mechanism = GaussianMechanism(sigma)
    budget = ut.Approx(100, 1)
    ledger = ut.Ledger(CITY, {ut.Unbounded(): budget})

    def release(loss: ut.Loss) -> ut.Release:
        unit, view = ut.Unbounded(), ut.Select("N", statistic="count")
        return ut.Release("n", loss, unit=unit, view=view, setting="common")

    with pytest.raises(AssumptionError, match="continuous noise"):
        ledger.spend(release(mechanism.approx_loss(epsilon)))
    assert ledger.releases == ()
    ledger.spend(release(mechanism.released.approx_loss(epsilon)))
    whole = DiscreteGaussianMechanism(sigma).approx_loss(epsilon)
    p, q = (lattice_law("gaussian", sigma, shift) for shift in (0, 1))
    exact = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    assert whole.delta >= exact * (1 - 1e-9) - 1e-15


BUDGETS = {
    "pure": ut.Pure(99),
    "zcdp": ut.ZCDP(99),
    "gdp": ut.GDP(99),
    "approx": ut.Approx(99, "0.5"),
}
IDEAL = GaussianMechanism(1).loss(UNIT)
DERIVED = {
    "itself": IDEAL,
    "a sum": ut.GDP(1) + IDEAL,
    "a group": group(IDEAL, 3),
    "in zcdp": ut.convert(IDEAL, ut.ZCDP),
    "a point": ut.convert(IDEAL, ut.Approx, delta="1e-5"),
    "a pure loss as gdp": ut.convert(
        TruncatedMechanism(GaussianMechanism(1), 0, 3).loss(UNIT), ut.GDP
    ),
    "a distribution": PrivacyLossDistribution.from_loss(IDEAL)
    .self_compose(2)
    .compose(PrivacyLossDistribution.from_pure(1))
    .loss("1e-5"),
    "pickled": pickle.loads(pickle.dumps(IDEAL)),
    "copied": copy.deepcopy(IDEAL),
    "clamped": ClampedMechanism(GaussianMechanism(1), 0, 9).loss(UNIT),
    "clamped, pure": ClampedMechanism(GaussianMechanism(1), 0, 9).pure_loss(UNIT),
    "clamped, of a pair": ClampedMechanism(GaussianMechanism(1), 0, 9).pair_loss(1, 2),
    "truncated": TruncatedMechanism(GaussianMechanism(1), 0, 9).loss(UNIT),
    "truncated, of a pair": TruncatedMechanism(GaussianMechanism(1), 0, 9).worst_loss(
        1
    ),
    "of a plan": ut.Plan(CITY, [ut.count_release("n", GaussianMechanism(1), cells="N")])
    .loss(ut.Bounded())
    .loss,
    "of one release of a plan": ut.Plan(
        CITY, [ut.count_release("n", GaussianMechanism(1), cells="N")]
    )
    .loss(ut.Bounded())
    .contributions["n"],
    "of a move": ut.Plan(
        CITY, [ut.count_release("n", GaussianMechanism(1), cells="N")]
    ).move_cost("N", "S"),
}


@pytest.mark.parametrize("loss", DERIVED.values(), ids=DERIVED)
def test_no_budget_takes_a_loss_of_continuous_noise_in_any_form(loss, tmp_path):
    unit, view = ut.Unbounded(), ut.Select("N", statistic="count")
    release = ut.Release("n", loss, unit=unit, view=view, setting="common")
    budgets = {ut.Unbounded(): BUDGETS[loss.notion]}
    plan = ut.Plan(CITY, [release])
    assert any("no computer draws" in text for text in plan.loss(unit).assumptions)
    (read,) = plan_from_document(plan_to_document(plan)).releases
    for asked in (release, read):
        memory = ut.Ledger(CITY, budgets)
        for act in (memory.quote, memory.spend):
            with pytest.raises(AssumptionError, match=r"\.released"):
                act(asked)
        assert memory.releases == ()
        with BudgetLedger.create(
            tmp_path / f"{id(asked)}.ledger",
            dataset="d",
            domain=CITY,
            budgets=budgets,
        ) as kept:
            with pytest.raises(AssumptionError, match="notion='zcdp'"):
                kept.charge([asked], key="n")
            assert kept.remaining(ut.Unbounded()) == budgets[ut.Unbounded()]
    if loss.notion != "approx":
        window = ut.WindowLedger(2, budgets[ut.Unbounded()])
        for act in (window.fits, window.spend):
            with pytest.raises(AssumptionError, match="continuous noise"):
                act(loss)


@pytest.mark.parametrize("way", ["released", "zcdp"])
def test_the_ways_out_are_taken(way):
    mechanism = GaussianMechanism(2)
    drawn = ut.count_release("n", mechanism.released, cells="N")
    if way == "zcdp":
        loss = mechanism.loss(UNIT, notion="zcdp")
        view = ut.Select("N", statistic="count")
        drawn = ut.Release("n", loss, unit=UNIT, view=view, setting="view")
    ledger = ut.Ledger(CITY, {ut.Unbounded(): ut.ZCDP("1/8")})
    ledger.spend(drawn)
    assert ledger.loss(ut.Unbounded()).loss == ut.ZCDP("1/8")
    assert not any("draws" in text for text in ledger.loss(ut.Bounded()).assumptions)


def test_a_promise_about_every_mechanism_is_not_kept_by_continuous_noise():
    covered = CoveredMechanisms(99.0, 1.0, 1.0, every=True)
    truncated = TruncatedMechanism(GaussianMechanism(1), 0, 3)
    covered.require(truncated.released.loss(UNIT))
    with pytest.raises(NotApplicable, match="continuous noise"):
        covered.require(truncated.loss(UNIT))


def test_a_claim_of_continuous_noise_beside_another_is_refused_as_well():
    view, unit = ut.Select("N", statistic="count"), ut.Unbounded()
    claims = (ut.Claim(ut.ZCDP(1), unit, "common"), ut.Claim(IDEAL, unit, "common"))
    release = ut.Release.with_claims("n", claims, view=view)
    with pytest.raises(AssumptionError, match="continuous noise"):
        ut.Ledger(CITY, {unit: ut.ZCDP(9)}).spend(release)


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(2**26),
        GaussianMechanism(2**26),
        ClampedMechanism(LaplaceMechanism(2**30), 0, 10),
        DiscreteLaplaceMechanism(8, exponent=1),
    ],
    ids=repr,
)
def test_whole_numbers_are_not_priced_on_a_lattice_that_does_not_hold_them(mechanism):
    base = mechanism.base if isinstance(mechanism, ClampedMechanism) else mechanism
    step = getattr(base, "released", base).step
    if hasattr(base, "released"):  # numbers one apart are rounded a step apart
        near = int(step / 2)
        first, second = lattice_round([near - 1, near], base.released.exponent)
        assert (second - first) * step > 1
    for build in (
        lambda: ut.count_release("n", mechanism, cells="N"),
        lambda: ut.degree_release("d", mechanism, vertex=0),
    ):
        with pytest.raises(AssumptionError, match="holds the whole numbers"):
            build()


def test_the_largest_noise_whose_lattice_holds_whole_numbers_is_priced():
    loss = ut.count_release("n", LaplaceMechanism(2**25 - 1), cells="N").loss
    assert loss == ut.Pure(Fraction(1, 2**25 - 1))
