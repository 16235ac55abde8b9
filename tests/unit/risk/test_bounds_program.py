"""The linear program against an independent program, and its certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from undertow.errors import NotApplicable
from undertow.privacy import Pure
from undertow.risk.bounds import (
    exact_guess_bound,
    pairwise_variation_bound,
    prior_free_bound,
    program_bound,
    uniform_guess_bound,
    variation_bound,
)
from undertow.risk.bounds.baselines import _certified, _gains, _patterns


def guess_program(epsilon, prior, hits):
    """Maximise the advantage over channels whose outputs are the guesses."""
    m, e = len(prior), math.exp(-epsilon)
    weight = prior * (hits - (hits @ prior)[:, None])  # [guess, truth]
    rows = []
    for g in range(m):
        for x in range(m):
            for y in range(m):
                if x != y:
                    row = np.zeros((m, m))
                    row[g, x], row[g, y] = e, -1.0
                    rows.append(row.ravel())
    whole = np.array(
        [(np.arange(m) == x)[None, :].repeat(m, 0).ravel() for x in range(m)]
    )
    done = optimize.linprog(
        -weight.ravel(),
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=whole.astype(float),
        b_eq=np.ones(m),
        bounds=(0, 1),
    )
    return -done.fun


@pytest.mark.parametrize("seed", range(8))
def test_the_program_equals_the_program_over_guesses(seed):
    rng = np.random.default_rng(seed)
    m, epsilon = int(rng.integers(2, 6)), rng.uniform(0.1, 4)
    prior = rng.dirichlet(np.ones(m))
    hits = np.eye(m, dtype=bool) | (rng.random((m, m)) < 0.3)
    bound = program_bound(epsilon, prior, hits=hits)
    assert bound.value == pytest.approx(guess_program(epsilon, prior, hits), abs=1e-7)


def test_the_witness_is_a_pure_dp_channel_that_attains_the_value():
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    for labels in (None, [0, 0, 1, 1], [0, 1, 2, 3]):
        bound = program_bound(1.0, prior, labels=labels)
        channel = bound.witness.details["channel"]
        assert channel.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-9)
        assert np.log(channel.max(axis=0) / channel.min(axis=0)).max() <= 1 + 1e-9
        gain = prior[:, None] * (channel - prior @ channel)
        known = np.zeros(4) if labels is None else np.array(labels)
        best = 0.0
        for z in set(known.tolist()):
            fibre = known == z
            floor = -np.inf if fibre.all() else 0.0  # a guess outside hits nothing
            best += np.maximum(gain[fibre].max(axis=0), floor).sum()
        assert bound.value == pytest.approx(best, abs=1e-7)


def test_the_certificate_holds_for_any_dual():
    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.ones(4))
    columns = _patterns(4, 1.5)
    gains = _gains(
        columns,
        prior,
        hits=np.eye(4, dtype=bool),
        labels=np.zeros(4, int),
        abstain=False,
    )
    best = program_bound(1.5, prior).value
    for _ in range(50):
        assert _certified(columns, gains, rng.normal(size=4)) >= best - 1e-9


def test_a_failed_solver_still_gives_a_bound(monkeypatch):
    class Failed:
        x = None

    monkeypatch.setattr(optimize, "linprog", lambda *args, **options: Failed())
    value = program_bound(1.0, [0.5, 0.5]).value
    assert value >= math.tanh(0.5) / 2


def test_declining_helps_only_where_every_guess_hits_likely_records():
    prior, hits = [0.5, 0.3, 0.2], np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    forced = program_bound(1.0, prior, hits=hits).value
    free = program_bound(1.0, prior, hits=hits, abstain=True).value
    assert free >= forced - 1e-12
    exact = program_bound(1.0, prior).value
    assert program_bound(1.0, prior, abstain=True).value == pytest.approx(exact)


def test_limits_and_order():
    prior = [0.4, 0.3, 0.2, 0.1]
    assert program_bound(0.0, prior).value == pytest.approx(0, abs=1e-12)
    assert program_bound(math.inf, prior).value == pytest.approx(0.7, abs=1e-9)
    uniform = program_bound(1.0, [0.25] * 4).value
    assert uniform == pytest.approx(uniform_guess_bound(Pure(1), 4).value, abs=1e-9)
    known = program_bound(2.0, prior, labels=range(4)).value
    assert program_bound(2.0, prior).value <= known
    assert known <= prior_free_bound(2.0).value + 1e-9
    assert known <= variation_bound(Pure(2), collision=0.3, sharpen=False).value
    assert program_bound(2.0, prior).value < exact_guess_bound(Pure(2), prior).value


@pytest.mark.parametrize(
    ("options", "message"),
    [({"hits": np.eye(3)}, "hits"), ({"labels": [0, 1, 2]}, "labels")],
)
def test_bad_shapes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        program_bound(1.0, [0.5, 0.5], **options)


def test_a_large_prior_is_refused_with_the_bound_that_can():
    with pytest.raises(NotApplicable, match="exact_guess_bound"):
        program_bound(1.0, np.full(17, 1 / 17))


def test_a_failed_solver_is_not_called_tight(monkeypatch):

    def failed(columns, gains):
        return np.zeros(len(columns)), np.zeros(columns.shape[1])

    assert program_bound(1.0, [0.5, 0.3, 0.2]).tight is True
    monkeypatch.setattr("undertow.risk.bounds.baselines._solve", failed)
    bound = program_bound(1.0, [0.5, 0.3, 0.2])
    assert bound.tight is None
    assert bound.value >= 0.2


def test_a_prior_that_is_short_of_one_is_scaled_in_the_bounds():
    short = np.array([0.5, 0.3, 0.2]) * (1 - 9e-10)
    for bound in (
        lambda prior: exact_guess_bound(Pure(1), prior),
        lambda prior: program_bound(1.0, prior),
        lambda prior: pairwise_variation_bound(np.full((3, 3), 0.4), prior),
    ):
        full = bound([0.5, 0.3, 0.2]).value
        assert bound(short).value == pytest.approx(full, rel=1e-13)
