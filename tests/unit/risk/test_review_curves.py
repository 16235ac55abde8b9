"""Trade-off functions of channels and accountants: never above, never endless."""

import itertools
import math

import numpy as np
import pytest

from undertow.errors import NotApplicable
from undertow.privacy import tradeoff_from_pmfs
from undertow.risk.bounds import tradeoff_from_channel, tradeoff_from_pld
from undertow.risk.bounds.tradeoff import AccountedTradeOff

GRID = np.concatenate([[0.0], 10.0 ** np.linspace(-18, 0, 200), np.linspace(0, 1, 201)])


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 2), (4, 6), (3, 900)])
def test_a_channel_has_a_function_below_that_of_every_pair(inputs, outputs):
    rng = np.random.default_rng(outputs)
    laws = rng.dirichlet(np.full(outputs, 0.4), inputs)
    laws[rng.random(laws.shape) < 0.2] = 0.0
    laws[:, 0] += 0.01
    laws /= laws.sum(axis=1, keepdims=True)
    f = tradeoff_from_channel(laws)
    pairs = [tradeoff_from_pmfs(p, q) for p, q in itertools.permutations(laws, 2)]
    assert (f(GRID) <= np.min([g(GRID) for g in pairs], axis=0)).all()
    for epsilon in (0.0, 0.3, 2.0, 20.0):
        worst = max(g.delta(epsilon) for g in pairs)
        assert worst <= f.delta(epsilon) <= worst + 1e-11


def test_the_rounding_of_many_outputs_is_taken_off():
    outputs = 1 << 17
    laws = np.stack([np.full(outputs, 1.0), np.linspace(0.999, 1.001, outputs)])
    laws /= laws.sum(axis=1, keepdims=True)
    f = tradeoff_from_channel(laws)
    exact = math.fsum(np.maximum(0.0, laws[1] - laws[0]).tolist())
    # All that adding up that many chances one by one may lose.
    assert f.total_variation() - exact >= 2 * outputs * 2.0**-53


def test_a_channel_too_large_is_refused_at_once():
    with pytest.raises(NotApplicable, match=r"outputs of ordered pairs.*merge"):
        tradeoff_from_channel(np.full((1001, 200), 1 / 200))


@pytest.mark.parametrize(
    "laws",
    [[[np.nan, 1.0], [0.0, 1.0]], [[0.5, 0.4], [0.5, 0.5]], [[-0.5, 1.5], [0.5, 0.5]]],
    ids=["nan", "short", "negative"],
)
def test_rows_that_are_no_laws_are_refused(laws):
    with pytest.raises(ValueError, match="row-stochastic"):
        tradeoff_from_channel(laws)


class _Accountant:
    """Deltas as a convolution leaves them: some a little below 0."""

    class _Law:
        _pessimistic_estimate = True

    _pmf_remove = _pmf_add = _Law()

    def get_delta_for_epsilon(self, levels):
        return np.maximum(0.3 - 0.1 * np.asarray(levels), -1e-18)


def test_a_delta_rounded_below_zero_is_read_as_zero():
    f = tradeoff_from_pld(_Accountant())
    assert isinstance(f, AccountedTradeOff)
    assert f.total_variation() >= 0.3
    assert f.delta(4.0) <= 1e-11
