"""Estimates that use the known noise law: an average of likelihoods, and tails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri

from undertow._validate import check_count, check_positive, check_probability
from undertow.correlation.empirical.attackers import Trial, propose_trials
from undertow.correlation.model import Model
from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.correlation.result import LeakageEstimate
from undertow.errors import NotApplicable

__all__ = ["estimate_laplace_leakage", "estimate_tail_leakage", "query_answers"]

Floats = NDArray[np.float64]
_GRID = 201


def estimate_laplace_leakage(
    model: Model,
    epsilon: float,
    *,
    query: Query,
    samples: int = 20_000,
    trials: Sequence[Trial] | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> LeakageEstimate:
    r"""Estimate the leakage of Laplace noise by averaging its known density.

    .. math:: \hat p(y \mid x_K, x) = \frac1N \sum_j \frac{1}{2b} e^{-|y - f(D_j)|/b}

    Parameters
    ----------
    model : Model
        Draws the unknown records.
    epsilon : float
        DP level; the noise scale is the query's sensitivity over it.
    query : CountQuery or LinearQuery
        What is released.
    samples : int
        Draws of the unknown records for each secret, in each half.
    trials, pairs, confidence, seed
        As in :func:`estimate_leakage`.

    Returns
    -------
    LeakageEstimate
        Its interval is asymptotic (delta method at the output chosen on the training
        half), so not certified: use :func:`estimate_leakage` for that.

    Notes
    -----
    Rao-Blackwell: only the unknown records are drawn, not the noise. Kernel density
    estimates of the outputs, used in the master's thesis, overshoot where one of the
    densities is small.
    """
    epsilon = check_positive(epsilon, "epsilon")
    samples = check_count(samples, "samples", minimum=100)
    confidence = check_probability(confidence, "confidence", open_interval=True)
    rngs = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)]
    listed = (
        list(trials)
        if trials is not None
        else propose_trials(model, pairs=pairs, rng=rngs[0])
    )
    scale = query.sensitivity(model) / epsilon
    best, place = _peak(model, query, listed, samples, scale=scale, rng=rngs[1])
    logs = [_answers(model, query, best, x, samples, rng=rngs[2]) for x in best.pair]
    terms = [-np.abs(place - f) / scale for f in logs]
    value = _log_mean(terms[0]) - _log_mean(terms[1])
    error = math.hypot(*(_relative_error(term) for term in terms))
    reach = float(ndtri((1 + confidence) / 2)) * error
    pair = best.pair if value >= 0 else best.pair[::-1]
    return LeakageEstimate(
        abs(value),
        max(0.0, abs(value) - reach),
        abs(value) + reach,
        confidence,
        samples,
        seed,
        "average of known likelihoods",
        adversary=best.adversary,
        pair=(pair[0], pair[1]),
        event=f"output near {place:.6g}",
        tried=len(listed),
    )


def estimate_tail_leakage(
    model: Model,
    epsilon: float,
    *,
    query: Query,
    trial: Trial,
    samples: int = 100_000,
    seed: int = 0,
) -> float:
    r"""Estimate the leakage of Laplace noise at outputs far out, for one attacker.

    .. math:: \Bigl|\ln \overline{e^{\pm f(D_j)/b}}
       - \ln \overline{e^{\pm f(D_j')/b}}\Bigr|

    Notes
    -----
    The limit of the density ratio at plus and minus infinity. It is the supremum for
    two-state chains that keep their state more often than not, and only a lower bound
    in general: an interior output may leak more.
    """
    scale = query.sensitivity(model) / check_positive(epsilon, "epsilon")
    rng = np.random.default_rng(seed)
    first, second = (
        _answers(model, query, trial, x, samples, rng=rng) for x in trial.pair
    )
    sides = (
        _log_mean(sign * first / scale) - _log_mean(sign * second / scale)
        for sign in (1, -1)
    )
    return max(abs(side) for side in sides)


def query_answers(model: Model, query: Query, databases: NDArray[Any]) -> Floats:
    """Return the exact answer of a query on each drawn database."""
    if isinstance(query, CountQuery):
        counted = np.isin(databases, sorted(query.states)).sum(axis=1)
        return np.asarray(counted, dtype=float)
    if isinstance(query, LinearQuery):
        values = _numbers(model, databases)
        if query.clip is not None:
            values = np.clip(values, *query.clip)
        return np.asarray(values @ np.array(query.weights_for(values.shape[1])))
    raise NotApplicable(
        f"an estimate from likelihoods needs a count or a linear query, got "
        f"{query.name!r}; use estimate_leakage for a black box."
    )


def _numbers(model: Model, databases: NDArray[Any]) -> Floats:
    """Return records as numbers; models of states draw indices of states."""
    values = getattr(model, "values", None)
    if values is None or not np.issubdtype(databases.dtype, np.integer):
        return databases.astype(float)
    if isinstance(values, tuple):  # one list of values for each record
        columns = [np.asarray(v)[databases[:, j]] for j, v in enumerate(values)]
        return np.column_stack(columns).astype(float)
    return np.asarray(np.asarray(values)[databases], dtype=float)


def _peak(
    model: Model,
    query: Query,
    trials: Sequence[Trial],
    samples: int,
    *,
    scale: float,
    rng: np.random.Generator,
) -> tuple[Trial, float]:
    found: tuple[float, Trial, float] | None = None
    for trial in trials:
        first, second = (
            _answers(model, query, trial, x, samples, rng=rng) for x in trial.pair
        )
        places = np.unique(np.concatenate([first, second]))
        if len(places) > _GRID:
            places = np.linspace(places[0], places[-1], _GRID)
        ratio = _log_density(places, first, scale) - _log_density(places, second, scale)
        peak = int(np.abs(ratio).argmax())
        if found is None or abs(ratio[peak]) > found[0]:
            found = (float(abs(ratio[peak])), trial, float(places[peak]))
    if found is None:
        raise ValueError("trials must not be empty.")
    return found[1], found[2]


def _answers(
    model: Model,
    query: Query,
    trial: Trial,
    secret: Any,
    samples: int,
    *,
    rng: np.random.Generator,
) -> Floats:
    drawn = model.sample_given(trial.evidence(secret), samples, rng=rng)
    return query_answers(model, query, drawn)


def _log_density(places: Floats, answers: Floats, scale: float) -> Floats:
    centres, counts = np.unique(answers, return_counts=True)
    exponent = -np.abs(places[:, None] - centres[None, :]) / scale
    total = logsumexp(exponent, b=counts[None, :], axis=1)
    return np.asarray(total - math.log(len(answers)))


def _log_mean(exponents: Floats) -> float:
    return float(logsumexp(exponents)) - math.log(len(exponents))


def _relative_error(exponents: Floats) -> float:
    """Return the standard error of a mean of exponentials over the mean."""
    terms = np.exp(exponents - exponents.max())
    return float(terms.std(ddof=1) / (terms.mean() * math.sqrt(len(terms))))
