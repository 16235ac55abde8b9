"""From a promise to noise: shares, conversions, and the engine's own check."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from undertow.errors import AssumptionError, InfeasibleTarget, PlanError
from undertow.privacy import GDP, ZCDP, Approx, Pure, convert
from undertow.privacy.conversion import zcdp_to_approx
from undertow.release.plan import _budget as budget
from undertow.release.plan._budget import (
    Need,
    calibrate_noise,
    calibrate_rho,
    composed_within,
    restate,
    round_up_long,
    settle_promise,
    share_weights,
)
from undertow.release.plan.noise import ClaimUnit, Contribution, Reach
from undertow.spaces import Identity, Stream, User

DOMAIN = Stream(10**9, 1)
BOTH = ClaimUnit(User(add_remove=True), User())
CELLS = Contribution(5, None, None, 24).row_reach()
TOTAL = Contribution(5, None, None, 1).row_reach()


def stated(**given):
    names = ("epsilon", "delta", "rho", "mu", "advantage")
    exact = {n: None if given.get(n) is None else Fraction(given[n]) for n in names}
    return SimpleNamespace(**exact, confidence=Fraction("0.95"))


def need(name, reach=CELLS, weight="1/2", keys=False):
    return Need(name, reach, Fraction(weight), (Identity(),), keys)


def noise_of(promise, *needs, unit=BOTH):
    return calibrate_noise(needs, domain=DOMAIN, unit=unit, promise=promise)


@pytest.mark.slow
def test_promises_at_the_last_bit_of_their_conversion_are_kept():
    for level in range(1, 1001, 8):
        asked = stated(epsilon=Fraction(level, 100), delta="1e-7")
        promise = settle_promise(asked, granularity=User())
        found = noise_of(promise, need("a", TOTAL, "1"))
        assert sum(noise.loss.rho for noise in found) > 0


@pytest.mark.parametrize("total", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-7"}])
def test_noise_that_does_not_keep_the_promise_is_refused(monkeypatch, total):
    promise = settle_promise(stated(**total), granularity=User())
    monkeypatch.setattr(budget, "composed_within", lambda *_, **__: False)
    with pytest.raises(AssumptionError, match="noise must keep the promise, got"):
        noise_of(promise, need("a", TOTAL, "1"))


def test_shares_that_are_given_are_kept_in_proportion():
    weights = share_weights(
        [Fraction(1), Fraction(3)], [(CELLS, 24), (TOTAL, 1)], law="laplace"
    )
    assert weights == [Fraction(1, 4), Fraction(3, 4)]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_shares_that_are_omitted_give_equal_noise_per_expected_count(law):
    sizes = [(CELLS, 24), (TOTAL, 1), (Reach(3, 9, 3), 168)]
    weights = share_weights([None] * 3, sizes, law=law)
    assert sum(weights) == 1
    pairs = list(zip(sizes, weights, strict=True))
    if law == "laplace":  # the noise over a cell's part of what units add
        relative = {r.pure_scale(w) * cells / r.total for (r, cells), w in pairs}
    else:
        relative = {
            r.gaussian_variance(w) * Fraction(cells, r.total) ** 2
            for (r, cells), w in pairs
        }
    assert len(relative) == 1


def test_where_some_shares_are_omitted_they_divide_one_each():
    sizes = [(CELLS, 24), (TOTAL, 1), (TOTAL, 3)]
    weights = share_weights([Fraction(2), None, None], sizes, law="laplace")
    assert weights[0] == Fraction(1, 2)
    assert weights[2] == 3 * weights[1]


def test_discovered_keys_make_omitted_shares_equal():
    weights = share_weights(
        [None, None], [(CELLS, 24), (TOTAL, 1)], law="gaussian", discovers=True
    )
    assert weights == [Fraction(1, 2)] * 2


def test_a_pure_promise_is_spent_to_the_last_bit():
    promise = settle_promise(stated(epsilon="1"), granularity=User(add_remove=True))
    first, second = noise_of(promise, need("a"), need("b", TOTAL))
    assert first.noise.parameter == 10
    assert second.loss == Pure("1/2")


def test_replacing_costs_a_single_number_once_and_a_histogram_twice():
    promise = settle_promise(stated(epsilon="1"), granularity=User())
    assert noise_of(promise, need("a", TOTAL, "1"))[0].noise.parameter == 5
    assert noise_of(promise, need("a", CELLS, "1"))[0].noise.parameter == 10
    plain = ClaimUnit(User(add_remove=True))
    assert noise_of(promise, need("a", TOTAL, "1"), unit=plain)[0].noise.parameter == 10


def test_gaussian_noise_for_replacing_has_half_the_variance_of_two_steps():
    promise = settle_promise(stated(rho="1/2"), granularity=User())
    plain = ClaimUnit(User(add_remove=True))
    both, steps = (
        noise_of(promise, need("a", CELLS, "1"), unit=unit)[0].noise.parameter
        for unit in (BOTH, plain)
    )
    assert steps == 2 * both == 100


@pytest.mark.parametrize("epsilon", [f"1e{k}" for k in range(-5, 5)])
@pytest.mark.parametrize("delta", ["1e-3", "1e-9", "1e-30"])
def test_rho_is_the_inverse_of_the_conversion_over_ten_decades(epsilon, delta):
    rho = calibrate_rho(Fraction(epsilon), Fraction(delta))
    back = zcdp_to_approx(ZCDP(rho), delta=delta, method="optimal")
    assert back.within(Approx(epsilon, delta))
    assert back.epsilon >= float(epsilon) * (1 - 1e-9)


@pytest.mark.parametrize("mu", ["1e-4", "0.1", "1", "7"])
def test_a_gaussian_dp_promise_is_spent_by_laplace_noise(mu):
    promise = settle_promise(stated(mu=mu), granularity=User(add_remove=True))
    shares = noise_of(promise, need("a"), need("b", TOTAL))
    assert all(share.noise.law == "laplace" for share in shares)
    spent = GDP(0)
    for share in shares:
        spent = spent + convert(share.loss, GDP)
    assert spent.within(GDP(mu))
    assert spent.mu >= float(mu) * (1 - 1e-5)


def test_keys_take_half_of_delta_and_their_share_of_epsilon():
    promise = settle_promise(
        stated(epsilon="1", delta="1e-6"),
        granularity=User(add_remove=True),
        discovers=True,
    )
    keys, values = noise_of(
        promise,
        need("k", weight="1/4", keys=True),
        need("v", weight="3/4"),
        unit=ClaimUnit(User(add_remove=True)),
    )
    assert keys.loss.within(Approx("1/4", "5e-7"))
    assert keys.delta > Fraction("4.9e-7")
    assert values.noise.law == "gaussian"
    assert restate(values.loss, Fraction("5e-7")).epsilon == pytest.approx(0.75)


def test_less_noise_than_calibrated_breaks_the_promise():
    from dataclasses import replace

    promise = settle_promise(stated(epsilon="1"), granularity=User())
    (share,) = noise_of(promise, need("a", weight="1"))
    less = replace(share.noise, parameter=share.noise.parameter * Fraction(999, 1000))
    worse = replace(share, noise=less, loss=less.loss(share.need.reach))
    check = {"domain": DOMAIN, "unit": BOTH, "promise": promise}
    assert composed_within([share], **check)
    assert not composed_within([worse], **check)


def test_long_fractions_are_rounded_up_and_short_ones_kept():
    long = Fraction(10**40 + 1, 3**60)
    assert round_up_long(Fraction(7, 3)) == Fraction(7, 3)
    assert 0 <= round_up_long(long) - long <= long / 2**40
    assert round_up_long(long).numerator.bit_length() <= 64


def test_the_currencies_of_a_promise():
    target = User()
    cases = [
        (stated(epsilon="1"), Pure(1), "laplace"),
        (stated(rho="0.5"), ZCDP("0.5"), "gaussian"),
        (stated(mu="0.5"), GDP("0.5"), "laplace"),
        (stated(epsilon="1", delta="1e-6"), Approx(1, "1e-6"), "gaussian"),
    ]
    for file, total, law in cases:
        promise = settle_promise(file, granularity=target)
        assert promise.total == total
        assert promise.law == law
    assert promise.conversion_delta == Fraction("1e-6")
    assert promise.beta <= 0.05


def test_promises_that_mean_nothing_are_refused():
    with pytest.raises(PlanError, match="must state epsilon"):
        settle_promise(stated(), granularity=User())
    with pytest.raises(PlanError, match="threat must be given"):
        settle_promise(stated(advantage="0.1"), granularity=User())
    with pytest.raises(AssumptionError, match=r"promise\.delta must be given"):
        settle_promise(stated(epsilon="1"), granularity=User(), discovers=True)


def test_a_leakage_promise_takes_epsilon_alone():
    from undertow.correlation import Blocks

    model = Blocks.of_size(4, groups=1)
    promise = settle_promise(stated(epsilon="2"), granularity=User(), model=model)
    assert promise.total == Pure("1/2")
    with pytest.raises(AssumptionError, match="epsilon alone"):
        settle_promise(stated(rho="2"), granularity=User(), model=model)


def test_an_advantage_above_total_disclosure_is_refused():
    from undertow.risk import Prior, Threat

    with pytest.raises(PlanError, match="total disclosure"):
        settle_promise(
            stated(advantage="0.95"),
            granularity=User(),
            threat=Threat(Prior.uniform(2)),
        )


def test_the_best_conversion_allows_more_than_the_simple_one():
    rho = calibrate_rho(Fraction(1), Fraction(1, 10**6))
    assert convert(ZCDP(rho), Approx, delta="1e-6").epsilon > 1.15


def test_a_level_without_a_rho_is_refused():
    with pytest.raises(InfeasibleTarget, match="positive rho"):
        calibrate_rho(Fraction(1, 10**200), Fraction(1, 10**6))
