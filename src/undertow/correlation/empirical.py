"""Leakage measured from runs: lower bounds and estimates, never guarantees.

A black box gets a certified lower bound (:func:`estimate_leakage`); known noise gets
estimates from averaged likelihoods (:func:`estimate_laplace_leakage`); the kernel
densities of the master's thesis are kept to redraw its figures. All of them try a few
attackers: none known, all known, neighbours, and some at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, logsumexp, ndtri

from undertow._validate import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.model import Model
from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.correlation.result import Adversary, LeakageEstimate
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Floats

__all__ = [
    "BlackBox",
    "KernelSettings",
    "Trial",
    "Verdict",
    "estimate_laplace_leakage",
    "estimate_leakage",
    "estimate_tail_leakage",
    "kernel_leakage",
    "propose_trials",
    "verify_claim",
]


BlackBox = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]
"""From databases, one a row, to one output each."""

_THRESHOLDS = 33
_FEW_OUTPUTS = 64
# Quantiles beyond those, from both ends.
_TAILS = (0.001, 0.002, 0.005, 0.01, 0.02)


@dataclass(frozen=True, slots=True)
class _Event:
    """A set of outputs: one value, or a half-line."""

    kind: Literal["==", ">=", "<="]
    value: float

    def count(self, outputs: NDArray[Any]) -> int:
        if self.kind == "==":
            return int((outputs == self.value).sum())
        return int(
            (
                outputs >= self.value if self.kind == ">=" else outputs <= self.value
            ).sum()
        )

    @property
    def words(self) -> str:
        return f"output {self.kind} {self.value:.6g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether runs refute a claimed leakage.

    Parameters
    ----------
    status : {"violated", "not refuted"}
        A claim is never confirmed by runs.
    claimed : float
        The leakage claimed.
    estimate : LeakageEstimate
        What was measured, with the attacker who shows it.
    """

    status: Literal["violated", "not refuted"]
    claimed: float
    estimate: LeakageEstimate


def estimate_leakage(
    model: Model,
    mechanism: BlackBox,
    *,
    samples: int = 100_000,
    trials: Sequence[Trial] | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> LeakageEstimate:
    """Return a lower bound on the leakage of a black box, with stated confidence.

    Parameters
    ----------
    model : Model
        The law of the records; it draws the unknown ones given the known.
    mechanism : callable
        Takes databases (one a row) and a generator, returns one number a row.
    samples : int
        Runs for each secret, in the test and, all trials together, in training.
    trials : sequence of Trial, optional
        Attackers and pairs; by default a heuristic list.
    pairs : sequence of pairs, optional
        Secrets to tell apart, for the heuristic list.
    confidence : float
        Chance that the leakage is at least ``low``.
    seed : int
        Reproduces everything.

    Returns
    -------
    LeakageEstimate
        Its `low` is the certified bound; `high` is infinite, because no number of runs
        bounds a leakage from above.

    Notes
    -----
    One-sided Clopper-Pearson limits on the probability of the chosen event under each
    secret, the error shared. Never a guarantee of privacy.

    Examples
    --------
    >>> from undertow.correlation import JointTable
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> def noisy_sum(rows, rng):
    ...     return rows.sum(axis=1) + rng.laplace(size=len(rows))
    >>> found = estimate_leakage(flatmates, noisy_sum, samples=40_000, seed=1)
    >>> 1.6 < found.low < 1.7762
    True
    """
    samples = check_count(samples, "samples", minimum=100)
    confidence = check_probability(confidence, "confidence", open_interval=True)
    search, train, test = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    listed = (
        list(trials)
        if trials is not None
        else propose_trials(model, pairs=pairs, rng=search)
    )
    if not listed:
        raise ValueError("trials must not be empty.")
    runs = max(100, samples // len(listed))
    error = (1 - confidence) / 2
    best, event, flip = _train(model, mechanism, listed, runs, error=error, rng=train)
    counts = _counts(model, mechanism, best, event, samples, rng=test)
    hits, misses = counts[::-1] if flip else counts
    low = max(0.0, _lower_log_ratio(hits, misses, samples, error=error))
    point = math.log((hits + 0.5) / (misses + 0.5))
    pair = best.pair[::-1] if flip else best.pair
    return LeakageEstimate(
        max(point, low),
        low,
        math.inf,
        confidence,
        samples,
        seed,
        "Clopper-Pearson on a held-out half",
        adversary=best.adversary,
        pair=(pair[0], pair[1]),
        event=event.words,
        tried=len(listed),
    )


def verify_claim(
    model: Model, mechanism: BlackBox, claimed: float, **options: Any
) -> Verdict:
    """Try to refute a claimed leakage; options as in :func:`estimate_leakage`.

    Returns
    -------
    Verdict
        ``"violated"`` if the certified lower bound passes the claim.
    """
    claimed = check_non_negative(claimed, "claimed")
    found = estimate_leakage(model, mechanism, **options)
    status: Literal["violated", "not refuted"]
    status = "violated" if found.low > claimed else "not refuted"
    return Verdict(status, claimed, found)


def _train(
    model: Model,
    mechanism: BlackBox,
    trials: Sequence[Trial],
    runs: int,
    *,
    error: float,
    rng: np.random.Generator,
) -> tuple[Trial, _Event, bool]:
    best: tuple[float, Trial, _Event, bool] | None = None
    for trial in trials:
        first, second = (
            _outputs(model, mechanism, trial.evidence(x), runs, rng=rng)
            for x in trial.pair
        )
        for event in _events(np.concatenate([first, second])):
            hits, misses = event.count(first), event.count(second)
            for flip, (a, b) in enumerate(((hits, misses), (misses, hits))):
                value = _lower_log_ratio(a, b, runs, error=error)
                if best is None or value > best[0]:
                    best = (value, trial, event, bool(flip))
    assert best is not None
    return best[1:]


def _counts(
    model: Model,
    mechanism: BlackBox,
    trial: Trial,
    event: _Event,
    runs: int,
    *,
    rng: np.random.Generator,
) -> tuple[int, int]:
    first, second = (
        event.count(_outputs(model, mechanism, trial.evidence(x), runs, rng=rng))
        for x in trial.pair
    )
    return first, second


def _outputs(
    model: Model,
    mechanism: BlackBox,
    evidence: dict[int, Any],
    runs: int,
    *,
    rng: np.random.Generator,
) -> NDArray[Any]:
    outputs = np.asarray(mechanism(model.sample_given(evidence, runs, rng=rng), rng))
    if outputs.shape != (runs,) or not np.issubdtype(outputs.dtype, np.number):
        raise ValueError(
            f"mechanism must return one number for each of the {runs} databases, "
            f"got an array of shape {outputs.shape}."
        )
    return outputs


def _events(pooled: NDArray[Any]) -> list[_Event]:
    values, counts = np.unique(pooled, return_counts=True)
    few = len(values) <= _FEW_OUTPUTS
    common = np.sort(np.argsort(-counts, kind="stable")[:_FEW_OUTPUTS])
    events = [_Event("==", float(values[k])) for k in common if few or counts[k] > 1]
    if not few:
        shares = [*np.linspace(0, 1, _THRESHOLDS)[1:-1], *_TAILS]
        shares += [1.0 - share for share in _TAILS]
        values = np.unique(np.quantile(pooled, shares))
    for value in values:
        events += [_Event(">=", float(value)), _Event("<=", float(value))]
    return events


def _lower_log_ratio(hits: int, misses: int, runs: int, *, error: float) -> float:
    """Return a lower limit of log(p/q) from counts of one event under two secrets."""
    if hits == 0:
        return -math.inf
    low = float(betaincinv(hits, runs - hits + 1, error))
    high = (
        1.0
        if misses == runs
        else float(betaincinv(misses + 1, runs - misses, 1 - error))
    )
    return math.log(low) - math.log(high) if low > 0 else -math.inf


# Estimates that use the known noise law: an average of likelihoods, and tails.

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


# The simulation of the master's thesis: kernel densities and a percentile.
#
# Kept to redraw its figures. The estimate is biased upwards where one density is small,
# so it is neither a lower nor an upper bound.

_BINS = 4096


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """Sizes of the simulation of the master's thesis, section 3.1.2.

    Parameters
    ----------
    attackers : int
        Attackers drawn at random.
    samples : int
        Outputs drawn for each secret.
    points : int
        Outputs at which the two densities are compared.
    quantiles : pair of float
        Outputs between these quantiles of the first sample are compared.
    percentile : float
        Of the attackers' estimates; the maximum is not repeatable.
    include_empty : bool
        Whether attackers who know nothing are drawn; the thesis leaves them out.
    """

    attackers: int = 1000
    samples: int = 100_000
    points: int = 1000
    quantiles: tuple[float, float] = (0.005, 0.995)
    percentile: float = 99.0
    include_empty: bool = False

    def __post_init__(self) -> None:
        check_count(self.attackers, "attackers")
        check_count(self.samples, "samples", minimum=100)
        check_count(self.points, "points", minimum=2)
        for quantile in self.quantiles:
            check_probability(quantile, "quantile")


def kernel_leakage(
    model: Model,
    mechanism: BlackBox,
    *,
    pairs: Sequence[tuple[Any, Any]],
    settings: KernelSettings | None = None,
    rng: np.random.Generator,
) -> float:
    """Return the percentile over random attackers of kernel-density log ratios.

    Notes
    -----
    Section 3.1.2 of M. Lange, *Utility of Semantic Privacy Notions for Correlated
    Data*, master's thesis, KIT, 2024, which calls it a lower bound; it is not one.
    """
    chosen = settings if settings is not None else KernelSettings()
    found = []
    for _ in range(chosen.attackers):
        trial = random_trial(
            model, pairs=pairs, include_empty=chosen.include_empty, rng=rng
        )
        outputs = [
            np.asarray(
                mechanism(
                    model.sample_given(trial.evidence(x), chosen.samples, rng=rng), rng
                ),
                dtype=float,
            )
            for x in trial.pair
        ]
        low, high = np.quantile(outputs[0], chosen.quantiles)
        places = rng.uniform(low, high, chosen.points)
        first, second = (kernel_density_estimate(sample, places) for sample in outputs)
        both = (first > 0) & (second > 0)
        ratios = np.abs(np.log(first[both] / second[both]))
        found.append(float(ratios.max()) if len(ratios) else 0.0)
    return float(np.percentile(found, chosen.percentile))


def kernel_density_estimate(sample: Floats, places: Floats) -> Floats:
    r"""Return the self-consistent kernel density estimate at some places.

    .. math:: \hat\phi(t) = \frac{N}{2(N-1)}\,\Delta(t)
       \Bigl(1 + \sqrt{1 - \tfrac{4(N-1)}{N^2 |\Delta(t)|^2}}\Bigr)

    with :math:`\Delta` the empirical characteristic function, on the frequencies
    around zero where the root is real.

    Notes
    -----
    A. Bernacchia and S. Pigolotti, *Self-consistent method for density estimation*,
    2011. Outputs are put on a grid first, so the cost is that of one Fourier transform.
    """
    n = len(sample)
    low, high = float(sample.min()), float(sample.max())
    room = max(high - low, 1e-12)
    start, width = low - room / 2, 2 * room / _BINS
    counts, _ = np.histogram(sample, bins=_BINS, range=(start, start + 2 * room))
    transform = np.fft.rfft(counts) / n
    power = np.abs(transform) ** 2
    kept = power >= 4 * (n - 1) / n**2
    last = int(np.argmin(kept)) if not kept.all() else len(kept)
    root = np.sqrt(np.clip(1 - 4 * (n - 1) / (n**2 * power[:last]), 0, None))
    smooth = np.zeros_like(transform)
    smooth[:last] = n / (2 * (n - 1)) * transform[:last] * (1 + root)
    density = np.fft.irfft(smooth, _BINS) / width
    centres = start + (np.arange(_BINS) + 0.5) * width
    found = np.interp(places, centres, density, left=0.0, right=0.0)
    return np.asarray(np.where(found > math.ulp(0.0), found, 0.0))


# Attackers worth trying: none known, all known, neighbours, and some at random.

_ATTEMPTS = 1000
_NONE_POSSIBLE = (
    "some attacker must hold both secrets of a pair possible, got none that does; "
    "name other pairs, or give the trials."
)


@dataclass(frozen=True, slots=True)
class Trial:
    """An attacker with known values, and two secrets to tell apart."""

    adversary: Adversary
    pair: tuple[Any, Any]

    def evidence(self, secret: Any) -> dict[int, Any]:
        """Return what the law of the database is conditioned on."""
        return {**self.adversary.values, self.adversary.target: secret}


def propose_trials(
    model: Model,
    *,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    count: int = 16,
    rng: np.random.Generator,
) -> list[Trial]:
    """Return attackers and pairs to try, those most often worst first.

    Parameters
    ----------
    model : Model
        With a number of records; known values are drawn from it.
    pairs : sequence of pairs, optional
        Secrets to tell apart; by default all pairs of states that occur, which a model
        of real values does not have.
    count : int
        Number of attackers.
    rng : numpy.random.Generator
        Draws known values, targets and known sets.

    Raises
    ------
    ModelError
        If no attacker found holds both secrets of a pair possible.

    Notes
    -----
    A heuristic: an attacker left out may be worse, which is why what comes of it is a
    lower bound. Those for whom one of the secrets is impossible are left out.
    """
    count = check_count(count, "count")
    size = model.require_size("an empirical estimate")
    secrets = list(pairs) if pairs is not None else _state_pairs(model, rng)
    trials = []
    for target, known in _shapes(size, count, rng):
        row = model.sample(1, rng=rng)[0]
        values = {j: row[j].item() for j in known}
        for pair in secrets:
            trials.append(Trial(Adversary(target, known, values), pair))
    found = [trial for trial in trials if _is_possible(model, trial)]
    if not found:
        raise ModelError(_NONE_POSSIBLE)
    return found


def random_trial(
    model: Model,
    *,
    pairs: Sequence[tuple[Any, Any]],
    include_empty: bool,
    rng: np.random.Generator,
) -> Trial:
    """Draw a target, a number of known records, which ones, and their values.

    Drawn again if one of the secrets is impossible for the attacker.
    """
    for _ in range(_ATTEMPTS):
        trial = _draw_trial(model, pairs=pairs, include_empty=include_empty, rng=rng)
        if _is_possible(model, trial):
            return trial
    raise ModelError(_NONE_POSSIBLE)


def _draw_trial(
    model: Model,
    *,
    pairs: Sequence[tuple[Any, Any]],
    include_empty: bool,
    rng: np.random.Generator,
) -> Trial:
    size = model.require_size("an empirical estimate")
    target = int(rng.integers(size))
    least = 0 if include_empty or size == 1 else 1
    known = int(rng.integers(least, size))
    others = [j for j in range(size) if j != target]
    chosen = rng.choice(others, size=known, replace=False).tolist() if known else []
    row = model.sample(1, rng=rng)[0]
    pair = pairs[int(rng.integers(len(pairs)))]
    values = {j: row[j].item() for j in chosen}
    return Trial(Adversary(target, chosen, values), pair)


def _is_possible(model: Model, trial: Trial) -> bool:
    """Return whether the attacker holds both secrets possible."""
    try:
        for secret in trial.pair:
            model.sample_given(trial.evidence(secret), 1, rng=np.random.default_rng(0))
    except ModelError:
        return False
    return True


def _state_pairs(model: Model, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    drawn = model.sample(256, rng=rng)
    states = np.unique(drawn)
    if not np.issubdtype(drawn.dtype, np.integer) or len(states) > 32:
        raise ModelError(
            "pairs must be given for records of real values, got none; "
            "name the secrets to tell apart."
        )
    listed = states.tolist()
    return [(a, b) for a in listed for b in listed if a != b]


def _shapes(
    size: int, count: int, rng: np.random.Generator
) -> Iterator[tuple[int, list[int]]]:
    """Yield targets and known sets, systematic ones before random ones."""
    middle = size // 2
    wanted: list[tuple[int, list[int]]] = [
        (middle, []),
        (middle, [j for j in range(size) if j != middle]),
        (0, []),
        (size - 1, []),
    ]
    for distance in (1, 2, 3, 5, 8):
        ends = [middle - distance, middle + distance]
        wanted.append((middle, [j for j in ends if 0 <= j < size]))
    while len(wanted) < count:
        target = int(rng.integers(size))
        others = [j for j in range(size) if j != target]
        known = int(rng.integers(0, size))
        wanted.append((target, rng.choice(others, known, replace=False).tolist()))
    yield from wanted[:count]
