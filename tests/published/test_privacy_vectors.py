"""Published and derived reference values of the privacy notions, by vector id.

Sources: P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
Correlated Data*, PhD thesis, KIT, 2026; P. Guerra-Balboa, À. Miranda-Pascual,
J. Parra-Arnau and T. Strufe, *Composition in Differential Privacy for General
Granularity Notions*. Values have twelve digits unless fewer are printed.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from undertow.numeric.exact import ext_l2, ext_scale, ext_sum
from undertow.privacy.conversion import gdp_to_approx, pure_to_gdp, zcdp_to_approx
from undertow.privacy.divergence import (
    exact_loss_matrix,
    renyi_divergence,
    tightest_epsilon,
)
from undertow.privacy.gaussian import gaussian_sigma, gdp_delta, gdp_epsilon, gdp_mu
from undertow.privacy.group import (
    bracket,
    chain_approx,
    group,
    group_approx,
    group_delta,
    max_group_size,
)
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.privacy.tradeoff import (
    ApproxTradeOff,
    GaussianTradeOff,
    PureTradeOff,
    attack_epsilon_bound,
    attack_mu_bound,
    refutes,
    tradeoff_from_pmfs,
)
from undertow.privacy.variation import (
    advantage_bound,
    attribute_advantage,
    reconstruction_bound,
    total_variation,
    total_variation_power,
)

KEEP = math.e / (1 + math.e)  # randomized response with epsilon = 1
RESPONSE = [[KEEP, 1 - KEEP], [1 - KEEP, KEEP]]


def digits(value, *, relative=2e-12):
    return pytest.approx(value, rel=relative, abs=6e-13)


def test_T_1_1_extended_arithmetic():
    assert ext_scale(0, math.inf) == math.inf
    assert ext_scale(math.inf, 0) == 0
    assert ext_scale(0, 3) == 0
    assert ext_sum([1, math.inf]) == math.inf
    assert ext_l2([3, 4]) == 5
    assert ext_l2([1e200, 1e200]) == pytest.approx(1.41421356237e200, rel=1e-11)


def test_T_3_1_randomized_response_has_loss_one():
    assert digits(0.731058578630) == KEEP
    assert exact_loss_matrix(RESPONSE)[0, 1] == digits(1.0)


def test_T_3_2_publishing_the_size_is_free_within_and_infinite_across():
    # Paper, Example II.9: multisets of at most three of two symbols.
    databases = [(a, b) for a in range(4) for b in range(4) if a + b <= 3]
    pmf = np.array([[float(sum(d) == size) for size in range(4)] for d in databases])
    pairs = list(itertools.combinations(range(len(databases)), 2))

    def distance(i, j):
        return np.abs(np.subtract(databases[i], databases[j]))

    bounded = [
        (i, j)
        for i, j in pairs
        if distance(i, j).tolist() == [1, 1] and sum(databases[i]) == sum(databases[j])
    ]
    unbounded = [(i, j) for i, j in pairs if distance(i, j).sum() == 1]
    loss = exact_loss_matrix(pmf)
    for i, j in pairs:
        same = sum(databases[i]) == sum(databases[j])
        assert loss[i, j] == (0 if same else math.inf)
    assert tightest_epsilon(pmf, bounded) == 0
    assert tightest_epsilon(pmf, unbounded) == math.inf


def test_T_3_4_unbounded_to_bounded():
    assert group(Pure(1), 2) == Pure(2)
    approx = group(Approx(1, "1e-5"), 2)
    assert approx.exact_parameters()[0] == 2
    assert approx.delta == digits(3.718281828459e-5, relative=1e-12)
    assert group(ZCDP("0.5"), 2) == ZCDP(2)
    assert group(GDP(1), 2) == GDP(2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        pytest.param(1, 1e-5, 3.73063163482, id="T-4.7-a"),
        pytest.param(0.5, 1e-5, 7.03182667558, id="T-4.7-b"),
        pytest.param(1, 1e-6, 4.22467888933, id="T-4.7-c"),
        pytest.param(2, 1e-5, 1.99381244564, id="T-4.7-d"),
        pytest.param(3, 1e-5, 1.39059345667, id="T-4.7-e"),
    ],
)
def test_T_4_7_least_gaussian_sigma(epsilon, delta, sigma):
    value = gaussian_sigma(1, epsilon, delta=delta)
    assert value == pytest.approx(sigma, abs=6e-12)
    assert gdp_delta(1 / value, epsilon) <= delta


def test_T_8_1_group_of_twelve_and_thirteen():
    assert group_delta(1, 1e-5, n=12) == digits(0.947189155605)
    assert group_delta(1, 1e-5, n=13) == digits(2.574737069795)
    assert max_group_size(1, 1e-5) == 12
    assert group_approx(1, 1e-5, n=13).no_guarantee


@pytest.mark.parametrize(
    ("distance", "epsilon", "value"),
    [
        pytest.param(2, 1, 3.718281828459, id="T-8.2-a"),
        pytest.param(3, 0.5, 5.367003099159, id="T-8.2-b"),
        pytest.param(2, 0.1, 2.105170918076, id="T-8.2-c"),
        pytest.param(5, 0, 5, id="T-8.2-d"),
    ],
)
def test_T_8_2_bracket(distance, epsilon, value):
    assert bracket(distance, epsilon) == digits(value)


def test_T_8_4_chains_depend_on_their_order():
    first, second = Approx("0.5", "1e-6"), Approx("1.0", "2e-6")
    there, back = chain_approx([first, second]), chain_approx([second, first])
    assert there.exact_parameters()[0] == back.exact_parameters()[0] == Fraction(3, 2)
    assert there.delta == pytest.approx(4.297442541400e-6, rel=1e-12)
    assert back.delta == pytest.approx(4.718281828459e-6, rel=1e-12)


def test_T_9_1_zcdp_groups_square_and_roots_add():
    assert group(ZCDP("0.5"), 3) == ZCDP("4.5")
    # Roots 0.3 and 0.7 along a chain: the whole is distance 10/3 of the first root.
    assert group(ZCDP("0.09"), "10/3") == ZCDP(1)
    assert ZCDP("0.09") + ZCDP("0.49") == ZCDP("0.58")


def test_T_9_2_shifted_gaussians_and_their_conversions():
    points = np.linspace(-12, 16, 20_001)
    p, q = (stats.norm.pdf(points, loc=m) for m in (1.0, 0.0))
    p, q = p / p.sum(), q / q.sum()
    for alpha in (1.5, 2.0, 4.0):
        assert renyi_divergence(p, q, alpha=alpha) == pytest.approx(alpha / 2, rel=1e-6)
    external = zcdp_to_approx(ZCDP("0.5"), delta="1e-5").epsilon
    assert external == digits(5.298525912188)
    assert gdp_to_approx(GDP(1), delta="1e-5").epsilon == digits(4.377178095681)


def test_T_10_1_approximate_trade_off_function():
    f = ApproxTradeOff(1.0, 0.1)
    expected = [0.9, 0.764085908577, 0.356343634308, 0.147151776469, 0]
    assert f([0, 0.05, 0.2, 0.5, 0.9]) == digits(np.array(expected))
    fixed_point = 0.9 / (1 + math.e)
    assert fixed_point == digits(0.242047279233)
    assert float(f(fixed_point)) == digits(fixed_point)


def test_T_10_2_randomized_response_is_the_pure_function():
    f = tradeoff_from_pmfs(*RESPONSE)
    expected = np.array([1, 0.728171817154, 0.183939720586, 0])
    assert f([0, 0.1, 0.5, 1]) == digits(expected)
    grid = np.linspace(0, 1, 1001)
    assert f(grid) == digits(PureTradeOff(1.0)(grid))


def test_T_10_3_attack_points_refute_and_bound():
    f = GaussianTradeOff(1.0)
    assert refutes(f, tpr=0.5, fpr=0.1)
    assert 1 - float(f(0.1)) == digits(0.389143691645)
    assert not refutes(f, tpr=0.389, fpr=0.1)
    quantiles = stats.norm.ppf(0.5) - stats.norm.ppf(0.1)
    assert attack_mu_bound(tpr=0.5, fpr=0.1) == digits(quantiles)
    assert attack_epsilon_bound(tpr=0.5, fpr=0.1, delta=0.1) == digits(math.log(4))


@pytest.mark.parametrize(
    ("mu", "alpha", "value"),
    [
        (1, 0.01, 0.907637751926),
        (1, 0.05, 0.740488977159),
        (1, 0.1, 0.610856308355),
        (1, 0.25, 0.372397463219),
        (1, 0.5, 0.158655253931),
        (0.5, 0.1, 0.782760919573),
        (2, 0.1, 0.236240415894),
        (3, 0.1, 0.042857426173),
    ],
)
def test_T_10_4_gaussian_trade_off_function(mu, alpha, value):
    assert float(GaussianTradeOff(mu)(alpha)) == digits(value)


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta", "relative"),
    [
        (1, 0, 0.382924922548, 2e-12),
        (1, 0.5, 0.238421708135, 2e-12),
        (1, 1, 0.126936737507, 4e-12),
        (1, 2, 0.020923635821, 3e-11),
        (1, 3, 0.001537185369, 4e-10),
        (0.1, 0.5, 6.856582456e-9, 2e-10),
        (0.1, 3, 7.304806e-200, 1e-7),
    ],
)
def test_T_10_5_gaussian_delta(mu, epsilon, delta, relative):
    assert gdp_delta(mu, epsilon) == pytest.approx(delta, rel=relative, abs=0)


@pytest.mark.parametrize(
    ("mu", "delta", "epsilon"),
    [
        (0.1, 1e-5, 0.340669364684),
        (0.5, 1e-5, 1.993091404415),
        (1, 1e-5, 4.377178095681),
        (math.sqrt(2), 1e-5, 6.572970067030),
        (2, 1e-5, 9.997256146434),
        (3, 1e-5, 16.675494402828),
        (math.sqrt(10), 1e-5, 17.856586830108),
        (1, 1e-6, 4.886554117462),
    ],
)
def test_T_10_6_gaussian_epsilon(mu, delta, epsilon):
    assert gdp_epsilon(mu, delta) == digits(epsilon)


def test_T_10_7_gaussian_mu():
    assert gdp_mu(1, 1e-5) == digits(0.268051123211)


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [
        (0.1, 0.125309012212),
        (0.5, 0.623892592099),
        (1, 1.232035385345),
        (2, 2.357961485647),
    ],
)
def test_T_10_8_pure_to_gdp(epsilon, mu):
    assert pure_to_gdp(Pure(epsilon)).mu == digits(mu)


@pytest.mark.parametrize("route", ["binomial", "tensor", "pmfs"])
def test_T_10_9_two_randomized_responses(route):
    one = tradeoff_from_pmfs(*RESPONSE)
    two = {
        "binomial": PureTradeOff(1.0).power(2),
        "tensor": PureTradeOff(1.0).tensor(PureTradeOff(1.0)),
        "pmfs": one.tensor(one),
    }[route]
    alphas = [0.05, 0.1, 0.25, 0.5]
    expected = [0.630547195053, 0.437882842740, 0.287882842740, 0.067667641618]
    assert two(alphas) == digits(np.array(expected))
    pure = [0.630547195053, 0.261094390107, 0.101501462427, 0.067667641618]
    assert PureTradeOff(2.0)(alphas) == digits(np.array(pure))
    deltas = [two.delta(epsilon) for epsilon in (0, 1, 1.5, 2)]
    assert deltas == digits([0.462117157260, 0.337834712147, 0.210288368980, 0])


def test_T_10_10_gaussians_add_in_squares_over_releases_and_linearly_along_chains():
    hundred = GaussianTradeOff(0.1).power(100)
    grid = np.linspace(0, 1, 101)
    assert hundred(grid) == digits(GaussianTradeOff(1.0)(grid))
    total = sum((GDP("0.1") for _ in range(100)), GDP.zero())
    assert total == GDP(1)
    first, second = GaussianTradeOff(0.3), GaussianTradeOff(0.7)
    assert second(1 - first(grid)) == digits(GaussianTradeOff(1.0)(grid))


def test_T_10_14_total_variation():
    assert total_variation(Pure(1)) == digits(0.462117157260)
    assert total_variation(Approx(1, "1e-5")) == digits(0.462122536088)
    assert total_variation(Approx(1, "0.1")) == digits(0.515905441534)
    assert total_variation(GDP(1)) == digits(0.382924922548)
    generic = [
        total_variation_power(loss, n, method="generic")
        for loss, n in ((GDP(1), 10), (Pure(1), 2))
    ]
    exact = [total_variation_power(loss, n) for loss, n in ((GDP(1), 10), (Pure(1), 2))]
    assert generic == digits([0.991994654799, 0.710682047486])
    assert exact == digits([0.886153701993, 0.462117157260])


def test_T_12_1_advantage_bound():
    values = [advantage_bound(Pure(e)) for e in ("0.1", "0.5", 1, 2, 3)]
    expected = [
        0.049958374958,
        0.244918662404,
        0.462117157260,
        0.761594155956,
        0.905148253645,
    ]
    assert values == digits(expected, relative=1e-11)


def test_T_12_2_attribute_advantage_attains_the_bound():
    advantage = attribute_advantage([0.5, 0.5], RESPONSE, attack=[0, 1])
    assert advantage == digits(0.231058578630)
    assert advantage / 0.5 == digits(0.462117157260)


def test_T_12_3_reconstruction_bounds():
    sharp = [reconstruction_bound(Pure(1), baseline=k) for k in (0.1, 0.3, 0.5)]
    ratio = [
        reconstruction_bound(Pure(1), baseline=k, method="ratio")
        for k in (0.1, 0.3, 0.5)
    ]
    assert sharp == digits([0.271828182846, 0.742484391180, 0.816060279414])
    assert ratio == digits([0.271828182846, 0.815484548538, 1.0])
    assert reconstruction_bound(GDP(1), baseline=0.1) == digits(0.389143691645)
