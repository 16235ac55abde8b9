"""Trade-off functions against linear programs, quadrature and their closed forms."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

from undertow.privacy._finite_pair import atoms_of_curve, convex_floor, thinned
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.tradeoff import (
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    PiecewiseLinearTradeOff,
    PureTradeOff,
    TradeOff,
    attack_epsilon_bound,
    attack_mu_bound,
    is_tradeoff,
    refutes,
    tradeoff_from_pmfs,
)

GRID = np.unique(np.concatenate([np.linspace(0, 1, 1001), np.geomspace(1e-14, 1, 200)]))
# Rounding of values near 1; far below what separates two guarantees.
ROUNDING = 1e-14

FAMILY = [
    PureTradeOff(0.0),
    PureTradeOff(0.3),
    PureTradeOff(5.0),
    ApproxTradeOff(1.0, 0.1),
    ApproxTradeOff(0.0, 0.5),
    GaussianTradeOff(0.0),
    GaussianTradeOff(0.05),
    GaussianTradeOff(1.0),
    GaussianTradeOff(6.0),
    LaplaceTradeOff(0.0),
    LaplaceTradeOff(0.2),
    LaplaceTradeOff(3.0),
    tradeoff_from_pmfs([0.5, 0.3, 0.2, 0.0], [0.1, 0.3, 0.5, 0.1]),
]


class NoClosedForm(TradeOff):
    """A function that knows only what every trade-off function must know."""

    def __init__(self, inside):
        self.inside = inside

    def __call__(self, alpha):
        return self.inside(alpha)

    def delta(self, epsilon):
        return self.inside.delta(epsilon)

    def inverse(self):
        return NoClosedForm(self.inside.inverse())


@st.composite
def pmf_pairs(draw, most=6):
    size = draw(st.integers(2, most))
    weights = st.lists(st.integers(0, 20), min_size=size, max_size=size).filter(any)
    p, q = (np.array(draw(weights), dtype=float) for _ in range(2))
    return p / p.sum(), q / q.sum()


def least_type_two_error(p, q, alpha):
    """Solve for the best randomised test at level alpha as a linear program."""
    solved = linprog(-q, A_ub=[p], b_ub=[alpha], bounds=[(0, 1)] * len(p))
    return 1 + solved.fun


@pytest.mark.parametrize("f", FAMILY, ids=repr)
def test_every_member_is_a_trade_off_function(f):
    assert is_tradeoff(f, np.linspace(0, 1, 2001))


@pytest.mark.parametrize("f", FAMILY, ids=repr)
def test_delta_is_the_convex_conjugate_rounded_up(f):
    fine = [np.linspace(0, 1, 200_001), np.geomspace(1e-9, 1, 20_001)]
    alpha = np.unique(np.concatenate([*fine, f.piecewise(knots=64).alphas]))
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        reached = (1 - f(alpha) - math.exp(epsilon) * alpha).max()
        assert reached - 1e-13 <= f.delta(epsilon) <= reached + 2e-8
    assert f.total_variation() == f.delta(0.0)


@given(pmf_pairs(), st.floats(0, 1))
def test_the_function_of_two_pmfs_is_the_optimum_of_a_linear_program(pair, alpha):
    f = tradeoff_from_pmfs(*pair)
    assert float(f(alpha)) == pytest.approx(
        least_type_two_error(*pair, alpha), abs=1e-9
    )


@given(pmf_pairs(), st.floats(0, 4))
def test_delta_of_two_pmfs_is_the_hockey_stick_sum_rounded_up(pair, epsilon):
    p, q = pair
    truth = np.maximum(q - math.exp(epsilon) * p, 0).sum()
    value = tradeoff_from_pmfs(p, q).delta(epsilon)
    assert truth - 1e-16 <= value <= truth * (1 + 1e-11) + 1e-15


@given(pmf_pairs(), st.floats(0, 1))
def test_the_inverse_is_the_function_of_the_swapped_pair(pair, alpha):
    p, q = pair
    inverse = tradeoff_from_pmfs(p, q).inverse()
    assert float(inverse(alpha)) == pytest.approx(
        float(tradeoff_from_pmfs(q, p)(alpha)), abs=1e-12
    )


@given(pmf_pairs())
def test_the_inverse_is_the_generalised_inverse(pair):
    f = tradeoff_from_pmfs(*pair)
    inverse, fine = f.inverse(), np.linspace(0, 1, 20_001)
    for alpha in (0.0, 0.1, 0.37, 0.8):
        below = fine[f(fine) <= alpha + 1e-12]
        assert float(inverse(alpha)) == pytest.approx(below[0], abs=1.1e-4)


@given(pmf_pairs(4), pmf_pairs(4), st.floats(0, 1))
def test_the_tensor_product_is_the_function_of_the_product_pair(first, second, alpha):
    p, q = (np.multiply.outer(a, b).ravel() for a, b in zip(first, second, strict=True))
    tensor = tradeoff_from_pmfs(*first).tensor(tradeoff_from_pmfs(*second))
    assert float(tensor(alpha)) == pytest.approx(
        least_type_two_error(p, q, alpha), abs=1e-9
    )


@given(pmf_pairs(3), pmf_pairs(3), pmf_pairs(3))
def test_the_tensor_product_commutes_and_associates(a, b, c):
    f, g, h = (tradeoff_from_pmfs(*pair) for pair in (a, b, c))
    assert f.tensor(g)(GRID) == pytest.approx(g.tensor(f)(GRID), abs=1e-12)
    left, right = f.tensor(g).tensor(h), f.tensor(g.tensor(h))
    assert left(GRID) == pytest.approx(right(GRID), abs=1e-12)


@given(pmf_pairs(), st.integers(2, 40))
def test_dropping_pieces_never_raises_the_function(pair, knots):
    f = tradeoff_from_pmfs(*pair).tensor(tradeoff_from_pmfs(*pair[::-1]))
    fewer = PiecewiseLinearTradeOff.from_atoms(thinned(f.atoms, max(2, knots // 8)))
    assert np.all(fewer(GRID) <= f(GRID) + ROUNDING)
    assert fewer.atoms.p.sum() == pytest.approx(1, abs=1e-12)
    assert fewer.atoms.q.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("f", FAMILY, ids=repr)
@pytest.mark.parametrize("knots", [2, 16, 300])
def test_the_piecewise_function_is_never_above_and_keeps_its_masses(f, knots):
    lower = NoClosedForm(f).piecewise(knots=knots)
    assert np.all(lower(GRID) <= f(GRID) + ROUNDING)
    assert lower.total_variation() >= f.total_variation()
    assert lower.total_variation() == pytest.approx(f.total_variation(), rel=1e-11)
    assert lower.atoms.p.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("f", FAMILY, ids=repr)
def test_more_pieces_bring_the_piecewise_function_to_the_exact_one(f):
    gaps = [
        (f(GRID) - NoClosedForm(f).piecewise(knots=k)(GRID)).max() for k in (16, 512)
    ]
    assert gaps[1] <= max(gaps[0] / 20, 1e-11) or gaps[1] < 5e-4


@pytest.mark.parametrize(
    ("mu", "nu"), [(1.0, 1.0), (0.3, 0.4), (3.0, 0.01), (5.0, 4.0)]
)
def test_the_numerical_tensor_of_gaussians_is_below_and_near_the_closed_form(mu, nu):
    exact = GaussianTradeOff(mu).tensor(GaussianTradeOff(nu))
    assert isinstance(exact, GaussianTradeOff)
    numerical = NoClosedForm(GaussianTradeOff(mu)).tensor(
        GaussianTradeOff(nu), knots=300
    )
    assert np.all(numerical(GRID) <= exact(GRID) + ROUNDING)
    assert (exact(GRID) - numerical(GRID)).max() < 4e-3
    for epsilon in (0.0, 0.5, 2.0, 8.0):
        assert numerical.delta(epsilon) >= exact.delta(epsilon)


@pytest.mark.parametrize("n", [3, 10, 50])
def test_the_numerical_power_of_gaussians_is_below_and_near_the_closed_form(n):
    mu = 1 / math.sqrt(n)
    numerical = NoClosedForm(GaussianTradeOff(mu)).power(n, knots=300)
    exact = GaussianTradeOff(mu).power(n)
    assert np.all(numerical(GRID) <= exact(GRID) + ROUNDING)
    assert (exact(GRID) - numerical(GRID)).max() < 5e-3
    assert 1 <= numerical.delta(3.0) / gdp_delta(mu * math.sqrt(n), 3.0) < 1.1


def test_the_numerical_tensor_of_laplace_laws_is_below_the_truth():
    f = LaplaceTradeOff(1.0).tensor(LaplaceTradeOff(1.0), knots=200)
    # The ratio is constant outside [0, 1]; cells inside know less than the laws.
    edges = np.concatenate([[-math.inf], np.linspace(0, 1, 401), [math.inf]])
    p, q = (np.diff(stats.laplace.cdf(edges, loc=shift)) for shift in (0.0, 1.0))
    cells = tradeoff_from_pmfs(p, q)
    above = cells.tensor(cells, knots=10**6)
    assert np.all(f(GRID) <= above(GRID) + ROUNDING)
    assert (above(GRID) - f(GRID)).max() < 5e-3


@given(st.floats(0.05, 3), st.floats(0, 0.3), st.integers(1, 6))
def test_the_binomial_power_equals_repeated_tensor_products(epsilon, delta, n):
    f = ApproxTradeOff(epsilon, delta)
    repeated = TradeOff.power(f, n)
    assert f.power(n)(GRID) == pytest.approx(repeated(GRID), abs=1e-12)
    assert f.power(n).delta(0.5) == pytest.approx(repeated.delta(0.5), abs=1e-12)


def test_a_thousand_randomized_responses_keep_their_exact_tail():
    epsilon, n = 0.1, 1000
    keep = 1 / (1 + math.exp(-epsilon))
    k = np.arange(n + 1)
    losses = (2 * k - n) * epsilon
    mass = stats.binom.pmf(k, n, keep)
    for target in (5.0, 15.0, 30.0):
        truth = (mass * np.maximum(-np.expm1(target - losses), 0)).sum()
        value = PureTradeOff(epsilon).power(n).delta(target)
        assert value == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("f", FAMILY, ids=repr)
def test_powers_and_groups_at_zero_and_one(f):
    none = 1 - GRID
    assert f.power(0)(GRID) == pytest.approx(none)
    assert f.group(0)(GRID) == pytest.approx(none)
    assert f.power(1)(GRID) == pytest.approx(f(GRID))
    assert f.group(1)(GRID) == pytest.approx(f(GRID))


@pytest.mark.parametrize("f", FAMILY, ids=repr)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_groups_are_compositions_of_one_minus_the_function(f, n):
    # Levels that 1 - f can hold without losing its digits.
    grid = np.linspace(0, 1, 1001)
    alpha = grid
    for _ in range(n):
        alpha = np.clip(1 - f(alpha), 0, 1)
    assert f.group(n)(grid) == pytest.approx(1 - alpha, abs=1e-11)


@pytest.mark.parametrize("f", [GaussianTradeOff(0.8), LaplaceTradeOff(0.8)], ids=repr)
def test_numerical_groups_are_below_and_near_the_closed_form(f):
    numerical, exact = NoClosedForm(f).group(3, knots=300), f.group(3)
    assert np.all(numerical(GRID) <= exact(GRID) + ROUNDING)
    assert (exact(GRID) - numerical(GRID)).max() < 2e-3


def test_a_group_keeps_the_promise_of_a_chain_of_databases():
    rng = np.random.default_rng(5)
    for _ in range(30):
        rows = rng.dirichlet(np.ones(5), size=3)
        steps = [tradeoff_from_pmfs(rows[i], rows[i + 1]) for i in range(2)]
        both = _floor_of_minimum(steps)
        whole = tradeoff_from_pmfs(rows[0], rows[2])
        assert np.all(both.group(2)(GRID) <= whole(GRID) + 1e-12)


def _floor_of_minimum(functions):
    alphas = np.unique(np.concatenate([*[f.alphas[:-1] for f in functions], [1.0]]))
    values = np.min([f(alphas) for f in functions], axis=0)
    return PiecewiseLinearTradeOff(*convex_floor(alphas, values))


@given(pmf_pairs())
def test_the_symmetrised_function_is_the_greatest_symmetric_one_below(pair):
    f = tradeoff_from_pmfs(*pair)
    s = f.symmetrised()
    assert s(GRID) == pytest.approx(s.inverse()(GRID), abs=1e-9)
    assert np.all(s(GRID) <= np.minimum(f(GRID), f.inverse()(GRID)) + 1e-12)
    assert s.total_variation() == pytest.approx(f.total_variation(), abs=1e-9)
    corners = np.minimum(f(s.alphas), f.inverse()(s.alphas))
    assert s.betas == pytest.approx(corners, abs=1e-9)


@pytest.mark.parametrize("f", [f for f in FAMILY[:12]], ids=repr)
def test_symmetric_functions_are_their_own_inverse(f):
    assert f.inverse() is f
    assert f.symmetrised() is f
    for alpha in (0.01, 0.2, 0.45):
        beta = float(f(alpha))
        if 0 < beta < 1 - alpha:
            assert float(f(beta)) == pytest.approx(alpha, abs=1e-9)


def test_a_function_without_closed_form_is_symmetrised_from_below():
    f = NoClosedForm(tradeoff_from_pmfs([0.5, 0.3, 0.2, 0.0], [0.1, 0.3, 0.5, 0.1]))
    s = f.symmetrised(knots=100)
    assert np.all(s(GRID) <= f.inside.symmetrised()(GRID) + ROUNDING)


def test_the_laplace_function_is_that_of_the_likelihood_ratio_test():
    for mu in (0.2, 1.0, 4.0):
        alpha = np.linspace(0.001, 0.999, 500)
        direct = stats.laplace.cdf(stats.laplace.isf(alpha) - mu)
        assert LaplaceTradeOff(mu)(alpha) == pytest.approx(direct, abs=1e-14)


def test_laplace_noise_promises_more_than_its_epsilon_alone():
    laplace, pure = LaplaceTradeOff(1.0)(GRID), PureTradeOff(1.0)(GRID)
    assert np.all(laplace >= pure - ROUNDING)
    assert (laplace - pure).max() > 0.03


@pytest.mark.parametrize(
    "f",
    [
        GaussianTradeOff(math.inf),
        LaplaceTradeOff(math.inf),
        PureTradeOff(math.inf),
        ApproxTradeOff(math.inf, 0.1),
        ApproxTradeOff(0.0, 1.0),
    ],
    ids=repr,
)
def test_an_infinite_loss_promises_nothing_even_at_zero(f):
    assert np.all(f(GRID) == 0)
    assert f.delta(50.0) == f.total_variation() == 1.0
    assert np.all(f.piecewise()(GRID) == 0)
    assert f.tensor(PureTradeOff(1.0)).total_variation() == 1.0
    assert f.power(3).total_variation() == 1.0


def test_values_at_the_two_ends_of_the_level():
    assert GaussianTradeOff(3.0)([0.0, 1.0]).tolist() == [1.0, 0.0]
    assert ApproxTradeOff(2.0, 0.25)([0.0, 1.0]).tolist() == [0.75, 0.0]
    assert LaplaceTradeOff(2.0)([0.0, 1.0]).tolist() == [1.0, 0.0]
    assert PureTradeOff(1000.0)([0.0, 1e-300, 1.0]).tolist() == [1.0, 0.0, 0.0]


@given(st.floats(0.01, 6), st.floats(1.01, 3))
def test_functions_fall_as_the_loss_grows(loss, factor):
    for family in (PureTradeOff, GaussianTradeOff, LaplaceTradeOff):
        assert np.all(family(loss * factor)(GRID) <= family(loss)(GRID) + ROUNDING)


@given(st.floats(0.05, 5), st.floats(0.001, 0.999))
def test_the_optimal_test_is_not_refuted_and_a_better_one_is(mu, fpr):
    for f in (GaussianTradeOff(mu), PureTradeOff(mu), LaplaceTradeOff(mu)):
        best = 1 - float(f(fpr))
        assert not refutes(f, tpr=best, fpr=fpr)
        if best < 0.999:
            assert refutes(f, tpr=best + 1e-6, fpr=fpr)


@given(st.floats(0.05, 4), st.floats(0.001, 0.9))
def test_bounds_from_the_optimal_attack_attain_the_loss_and_never_pass_it(loss, fpr):
    mu = attack_mu_bound(tpr=1 - float(GaussianTradeOff(loss)(fpr)), fpr=fpr)
    assert loss - 1e-6 <= mu <= loss * (1 + 1e-9)
    found = attack_epsilon_bound(tpr=1 - float(PureTradeOff(loss)(fpr)), fpr=fpr)
    assert loss - 1e-9 <= found <= loss + 1e-9


def test_bounds_from_useless_and_perfect_attacks():
    assert attack_mu_bound(tpr=0.2, fpr=0.3) == 0
    assert attack_mu_bound(tpr=0.5, fpr=0.0) == math.inf
    assert attack_mu_bound(tpr=1.0, fpr=0.5) == math.inf
    assert attack_mu_bound(tpr=1.0, fpr=1.0) == 0
    assert attack_epsilon_bound(tpr=0.1, fpr=0.1) == 0
    assert attack_epsilon_bound(tpr=0.1, fpr=0.0) == math.inf
    assert attack_epsilon_bound(tpr=0.1, fpr=0.0, delta=0.1) == 0
    assert attack_epsilon_bound(tpr=0.95, fpr=0.5) == pytest.approx(math.log(10))


def test_a_function_that_is_no_trade_off_function_is_recognised():
    class Wrong(PureTradeOff):
        def __init__(self, values):
            super().__init__(0.0)
            self.values = values

        def __call__(self, alpha):
            return self.values(np.asarray(alpha))

    grid = np.linspace(0, 1, 101)
    assert is_tradeoff(Wrong(lambda a: 1 - a), grid)
    assert not is_tradeoff(Wrong(lambda a: 1 - a**2), grid)
    assert not is_tradeoff(Wrong(lambda a: np.minimum(1 - a, 0.5)), grid)
    assert not is_tradeoff(Wrong(lambda a: (1 - a) * a), grid)
    assert not is_tradeoff(Wrong(lambda a: -a), grid)


@pytest.mark.parametrize(
    "call",
    [
        lambda: PureTradeOff(1.0)(1.1),
        lambda: GaussianTradeOff(1.0)([-0.1, 0.2]),
        lambda: GaussianTradeOff(-1.0),
        lambda: ApproxTradeOff(1.0, 1.5),
        lambda: GaussianTradeOff(1.0).power(-1),
        lambda: LaplaceTradeOff(1.0).group(1.5),
        lambda: GaussianTradeOff(1.0).piecewise(knots=1),
        lambda: PureTradeOff(1.0).delta(-1.0),
        lambda: tradeoff_from_pmfs([0.5, 0.5], [1.0]),
        lambda: tradeoff_from_pmfs([0.5, 0.6], [0.5, 0.5]),
        lambda: tradeoff_from_pmfs([1.5, -0.5], [0.5, 0.5]),
        lambda: PiecewiseLinearTradeOff([0, 1], [1, 0.5]),
        lambda: PiecewiseLinearTradeOff([0, 0.5, 1], [1, 0.6, 0]),
        lambda: PiecewiseLinearTradeOff([0, 0.5, 1], [0.5, 0.4, 0]),
        lambda: PiecewiseLinearTradeOff([0.1, 1], [0.9, 0]),
        lambda: PiecewiseLinearTradeOff([0, 1, 2], [1, 0]),
    ],
)
def test_what_is_no_trade_off_function_or_level_is_refused(call):
    with pytest.raises(ValueError, match="must"):
        call()


def test_closed_forms_compare_by_their_parameters():
    assert GaussianTradeOff(1) == GaussianTradeOff(1.0) != GaussianTradeOff(2)
    assert PureTradeOff(1.0) != GaussianTradeOff(1.0)
    assert hash(LaplaceTradeOff(1)) == hash(LaplaceTradeOff(1.0))
    assert repr(ApproxTradeOff(1, 0.5)) == "ApproxTradeOff(epsilon=1.0, delta=0.5)"
    assert "corners" in repr(FAMILY[-1])


def test_tangents_to_a_curve_that_starts_at_zero_are_flat():
    atoms = atoms_of_curve(lambda _: 0.0, lambda _: 0.0, knots=8)
    f = PiecewiseLinearTradeOff.from_atoms(atoms)
    assert f(GRID) == pytest.approx(1 - GRID)


def test_at_an_infinite_epsilon_only_the_open_mass_is_left():
    assert FAMILY[-1].delta(math.inf) == pytest.approx(0.1, rel=1e-12)
    assert GaussianTradeOff(2.0).piecewise(knots=8).delta(math.inf) < 1e-14


def test_thinning_keeps_pieces_even_where_no_loss_carries_mass():
    p = np.array([1e-20, 2e-20, 3e-20, 1.0 - 6e-20, 0.0])
    q = np.array([1e-18, 1e-19, 3e-21, 0.0, 1.0 - 1.1e-18])
    f = tradeoff_from_pmfs(p, q)
    fewer = PiecewiseLinearTradeOff.from_atoms(thinned(f.atoms, 2))
    assert len(fewer.atoms) < len(f.atoms)
    assert np.all(fewer(GRID) <= f(GRID) + ROUNDING)


@pytest.mark.parametrize("epsilon", [2.0, 10.0, 17.3, 20.0, 25.0, 30.0])
@pytest.mark.parametrize("n", [2, 3])
def test_groups_of_steep_functions_stay_at_the_exact_composition(epsilon, n):
    f = PureTradeOff(epsilon).group(n)
    with localcontext(prec=100):
        growth = Decimal(epsilon).exp()
        for alpha in np.geomspace(1e-30, 1, 200).tolist():
            beta = 1 - Decimal(alpha)
            for _ in range(n):
                level = 1 - beta
                beta = max(1 - growth * level, (1 - level) / growth)
            assert abs(Decimal(float(f(alpha))) - beta) < Decimal("4e-15")


@pytest.mark.parametrize("below", [1e-3, 1e-6, 1e-9, 1e-12])
def test_delta_just_below_the_largest_loss_is_not_rounded_down(below):
    masses = [0.7310585786300049, 0.2689414213699951]
    p, q = (Fraction(mass) for mass in masses)
    f = tradeoff_from_pmfs(masses, masses[::-1])
    epsilon = math.log(masses[0] / masses[1]) - below
    growth = Fraction(Decimal(epsilon).exp())  # 28 digits
    assert Fraction(f.delta(epsilon)) >= p - growth * q
