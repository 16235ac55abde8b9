"""Faults of noise: sums, counts, choices and noisy thresholds.

Noise of the wrong scale, fixed, one-sided, missing or betrayed by floating-point
arithmetic; queries held against a threshold that is compared too often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_positive
from undertow.audit.claim import Claim
from undertow.audit.event import Score, lowest_bit
from undertow.audit.subject import MechanismSubject
from undertow.mechanisms import LaplaceMechanism
from undertow.numeric.array import Floats, Ints
from undertow_studies.faults.law import (
    Code,
    Fault,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    TraceLaw,
    binary_number,
    code_subject,
    geometric_masses,
    joint_masses,
)

# No float is a sum of 1 and a float of at most 1/2 in size and has a bit below this.
_GRID = 2.0**-24
_LOWEST = -53
_TOP = 100.0
_RECORDS = 10


def halved_noise(epsilon: float = 1.0) -> Fault:
    r"""Laplace noise of half the scale: :math:`\Delta/(2\varepsilon)`.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> halved_noise(0.5).epsilon
    1.0
    """
    level = check_positive(epsilon, "epsilon")
    answers = (0.0, 1.0)

    def code(scale: float, name: str) -> Code:
        subject = code_subject(_add_noise, answers, name=name, scale=scale)
        return Code(subject, LaplaceLaw(answers, (scale, scale)))

    return Fault(
        "halved-noise",
        "The scale of the Laplace noise is half of what the sensitivity asks for.",
        Claim.pure(level),
        code(0.5 / level, "halved_noise"),
        code(1.0 / level, "noise"),
        trials=6_000,
    )


def float_noise(epsilon: float = 1.0) -> Fault:
    r"""Textbook Laplace noise: minus the log of a float, with a random sign.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, at sensitivity 1; positive.

    Notes
    -----
    On the answer 1 every output is a multiple of :math:`2^{-53}`; on the answer 0 small
    outputs keep bits below that: proved on the page *Faults*. The lowest bit tells the
    answers apart [1]_. The repair draws integer noise on a lattice.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.

    Examples
    --------
    >>> float_noise().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    answers = (0.0, 1.0)
    subject = code_subject(
        _add_logarithm, answers, name="float_noise", scale=1.0 / level
    )
    lattice = MechanismSubject(LaplaceMechanism(1.0 / level), answers)
    return Fault(
        "float-noise",
        "The noise is the logarithm of a float, and the sum is rounded to a float.",
        Claim.pure(level),
        Code(subject, TraceLaw(_low_bit, clean=1)),
        Code(lattice, LaplaceLaw(answers, (1.0 / level, 1.0 / level))),
        trials=1_000,
        score="bits",
    )


def data_bounds(epsilon: float = 1.0) -> Fault:
    r"""Noisy mean whose clipping bounds are the least and largest value of the data.

    The scale of the noise then depends on the data: its tails tell them apart without
    bound. The repair clips to public bounds.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, for replacing one record; positive.

    Examples
    --------
    >>> data_bounds().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    rest = (0.0,) * (_RECORDS - 1)
    people = [(*rest, 1.0), (*rest, _TOP)]
    means = (1.0 / _RECORDS, _TOP / _RECORDS)

    def code(bounds: tuple[float, float] | None, name: str) -> Code:
        widths = [max(x) if bounds is None else bounds[1] - bounds[0] for x in people]
        scales = tuple(w / (_RECORDS * level) for w in widths)
        settings = {"bounds": bounds, "level": level}
        subject = code_subject(_clipped_mean, people, name=name, **settings)
        return Code(subject, LaplaceLaw(means, scales))

    return Fault(
        "data-bounds",
        "The clipping bounds, and with them the noise, are computed from the data.",
        Claim.pure(level),
        code(None, "data_bounds"),
        code((0.0, _TOP), "public_bounds"),
        trials=1_000,
    )


def variance_as_deviation(mu: float = 0.5) -> Fault:
    r"""Gaussian noise whose deviation is taken for a variance.

    .. math:: \sigma' = \sqrt\sigma, \qquad \mu' = \sqrt\mu

    Parameters
    ----------
    mu : float, optional
        What is claimed, at sensitivity 1; positive and below 1, as the bug adds noise
        otherwise.

    Examples
    --------
    >>> fault = variance_as_deviation()
    >>> round(fault.level, 6), fault.claim.level
    (0.707107, 0.5)
    """
    level = check_positive(mu, "mu")
    if level >= 1:
        raise ValueError(f"mu must be below 1, got {level}; the bug is harmless there.")
    answers = (0.0, 1.0)

    def code(sigma: float, name: str) -> Code:
        subject = code_subject(_add_gaussian, answers, name=name, sigma=sigma)
        return Code(subject, GaussianLaw(answers, sigma))

    return Fault(
        "variance-as-deviation",
        "The deviation of the Gaussian noise is read as a variance.",
        Claim.gaussian(level),
        code(math.sqrt(1.0 / level), "variance_as_deviation"),
        code(1.0 / level, "gaussian"),
        trials=24_000,
    )


def wrong_sensitivity(epsilon: float = 1.0) -> Fault:
    r"""Noisy sum of values in [0, 100] with the noise of a count.

    The true epsilon is a hundred times the claimed one.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, for replacing one record; positive.

    Examples
    --------
    >>> wrong_sensitivity().epsilon
    100.0
    """
    level = check_positive(epsilon, "epsilon")
    rest = (50.0,) * (_RECORDS - 1)
    people = [(*rest, 0.0), (*rest, _TOP)]
    sums = tuple(float(sum(person)) for person in people)

    def code(sensitivity: float, name: str) -> Code:
        scale = sensitivity / level
        subject = code_subject(_noisy_sum, people, name=name, scale=scale)
        return Code(subject, LaplaceLaw(sums, (scale, scale)))

    return Fault(
        "wrong-sensitivity",
        "A sum of values up to 100 gets the noise of a count.",
        Claim.pure(level),
        code(1.0, "sum_as_count"),
        code(_TOP, "noisy_sum"),
        trials=400,
    )


def _add_noise(values: Any, rng: np.random.Generator, *, scale: float) -> Floats:
    return _on_grid(np.asarray(values) + rng.laplace(scale=scale, size=len(values)))


def _on_grid(outputs: Any) -> Floats:
    """Return outputs without their last digits, which noise in floats leaves telling.

    Programs that are broken otherwise, and their repaired twins, have none of it.
    """
    return np.asarray(np.round(np.asarray(outputs) / _GRID) * _GRID)


def _add_gaussian(values: Any, rng: np.random.Generator, *, sigma: float) -> Floats:
    return _on_grid(np.asarray(values) + rng.normal(scale=sigma, size=len(values)))


def _add_logarithm(values: Any, rng: np.random.Generator, *, scale: float) -> Floats:
    uniform = 1.0 - rng.random(len(values))  # multiples of 2^-53 in (0, 1]
    sign = np.where(rng.random(len(values)) < 0.5, -1.0, 1.0)
    return np.asarray(np.asarray(values) - sign * scale * np.log(uniform))


def _low_bit(outputs: Any) -> NDArray[np.bool_]:
    """Return which outputs are no multiple of 2^-53."""
    return lowest_bit(outputs) < _LOWEST


def _clipped_mean(
    values: Any,
    rng: np.random.Generator,
    *,
    bounds: tuple[float, float] | None,
    level: float,
) -> Floats:
    people = np.asarray(values, dtype=float).reshape(-1, _RECORDS)
    if bounds is None:  # the bug
        low = people.min(axis=1, initial=np.inf)
        high = people.max(axis=1, initial=-np.inf)
    else:
        low, high = (np.full(len(people), bound) for bound in bounds)
    means = np.clip(people, low[:, None], high[:, None]).mean(axis=1)
    noise = rng.laplace(size=len(people))
    return _on_grid(means + noise * (high - low) / (_RECORDS * level))


def _noisy_sum(values: Any, rng: np.random.Generator, *, scale: float) -> Floats:
    noise = rng.laplace(scale=scale, size=len(values))
    return _on_grid(np.array([sum(person) for person in values]) + noise)


# Faults of counts and choices: noise that is fixed, one-sided, missing or small.


_SEED = 2026
# Columns of a law reach so far on both sides; an absent key has one more.
_REACH = 8
_ABSENT = 2 * _REACH + 1
_KEYS = "ab"
_CANDIDATES = 11


def fixed_noise(epsilon: float = 1.0) -> Fault:
    """Noise from a generator that starts from the same seed at every call.

    The noise is a constant, and whoever knows the count of one release knows all.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> fixed_noise().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    shift = _constant(level)

    def column(outputs: Any) -> Ints:
        count = np.asarray(outputs, dtype=np.int64) - shift
        return np.where((count == 0) | (count == 1), count, 2)

    return Fault(
        "fixed-noise",
        "The generator is seeded anew at every call, so the noise is a constant.",
        Claim.pure(level),
        Code(
            code_subject(_add_constant, (0, 1), name="fixed_noise", level=level),
            FiniteLaw(np.eye(2, 3), column),
        ),
        _two_sided(level),
        trials=400,
    )


def one_sided_noise(epsilon: float = 1.0) -> Fault:
    """Geometric noise on a count that is never negative.

    An output below a count rules that count out.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> one_sided_noise().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    rows = [
        geometric_masses(level, count, reach=_REACH, one_sided=True) for count in (0, 1)
    ]
    return Fault(
        "one-sided-noise",
        "The geometric noise is only ever added, never subtracted.",
        Claim.pure(level),
        Code(
            code_subject(_add_geometric, (0, 1), name="one_sided_noise", level=level),
            FiniteLaw(rows, _capped),
        ),
        _two_sided(level),
        trials=600,
    )


def observed_keys(epsilon: float = 1.0) -> Fault:
    """Noisy counts of those keys only that occur in the data.

    A key that nobody has is not in the output: whether one record had it is seen at
    once. The repair lists every key of the domain.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, for replacing one record; positive.

    Examples
    --------
    >>> observed_keys().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    people = ["ab", "aa"]

    def code(listed: bool, name: str) -> Code:
        rows = [_histogram_law(keys, level / 2, listed) for keys in people]
        settings = {"level": level / 2, "listed": listed}
        subject = code_subject(_histogram, people, name=name, **settings)
        return Code(subject, FiniteLaw(rows, _histogram_columns))

    return Fault(
        "observed-keys",
        "Only keys that occur in the data are released, each with a noisy count.",
        Claim.pure(level),
        code(False, "observed_keys"),
        code(True, "all_keys"),
        trials=1_000,
    )


def unhalved_exponent(epsilon: float = 1.0) -> Fault:
    r"""Exponential mechanism with odds :math:`e^{\varepsilon u/\Delta}`.

    The factor 1/2 is missing, which scores that move in both directions need. On the
    eleven candidates here the true epsilon is 1.80 instead of 1; it tends to twice the
    claimed one as candidates are added.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> round(unhalved_exponent().epsilon, 4)
    1.7957
    """
    level = check_positive(epsilon, "epsilon")
    others = _CANDIDATES - 1
    scores = [(1, *(0,) * others), (0, *(1,) * others)]

    def code(rate: float, name: str) -> Code:
        odds = np.exp(rate * np.array(scores, dtype=float))
        law = FiniteLaw(odds / odds.sum(axis=1, keepdims=True), np.asarray)
        return Code(code_subject(_noisy_choice, scores, name=name, rate=rate), law)

    return Fault(
        "unhalved-exponent",
        "The exponential mechanism lacks the factor 1/2 in its exponent.",
        Claim.pure(level),
        code(level, "unhalved_exponent"),
        code(level / 2, "exponential"),
        trials=10_000,
    )


def _two_sided(level: float) -> Code:
    rows = [geometric_masses(level, count, reach=_REACH) for count in (0, 1)]
    subject = code_subject(_add_two_sided, (0, 1), name="geometric", level=level)
    return Code(subject, FiniteLaw(rows, _capped))


def _capped(outputs: Any) -> Ints:
    counts = np.asarray(outputs, dtype=np.int64)
    return np.asarray(np.clip(counts, -_REACH, _REACH) + _REACH)


def _geometric(size: Any, rng: np.random.Generator, level: float) -> Ints:
    return np.asarray(rng.geometric(-math.expm1(-level), size=size) - 1)


def _two_sided_noise(size: Any, rng: np.random.Generator, level: float) -> Ints:
    return _geometric(size, rng, level) - _geometric(size, rng, level)


def _add_two_sided(values: Any, rng: np.random.Generator, *, level: float) -> Ints:
    return np.asarray(values, np.int64) + _two_sided_noise(len(values), rng, level)


def _add_geometric(values: Any, rng: np.random.Generator, *, level: float) -> Ints:
    return np.asarray(values, np.int64) + _geometric(len(values), rng, level)


def _constant(level: float) -> int:
    return int(_two_sided_noise(1, np.random.default_rng(_SEED), level)[0])


def _add_constant(values: Any, rng: np.random.Generator, *, level: float) -> Ints:
    del rng
    return np.asarray(values, np.int64) + _constant(level)  # the bug


def _histogram(
    values: Any, rng: np.random.Generator, *, level: float, listed: bool
) -> list[str]:
    noise = _two_sided_noise((len(values), len(_KEYS)), rng, level)
    lines = []
    for keys, row in zip(values, noise.tolist(), strict=True):
        counts = [(key, keys.count(key)) for key in _KEYS]
        lines.append(
            " ".join(
                f"{key}={count + extra}"
                for (key, count), extra in zip(counts, row, strict=True)
                if listed or count > 0  # the bug
            )
        )
    return lines


def _histogram_law(keys: str, level: float, listed: bool) -> NDArray[np.float64]:
    parts = []
    for key in _KEYS:
        masses = np.zeros(_ABSENT + 1)
        if listed or key in keys:
            masses[:_ABSENT] = geometric_masses(level, keys.count(key), reach=_REACH)
        else:
            masses[_ABSENT] = 1.0
        parts.append(masses)
    return joint_masses(parts)


def _histogram_columns(outputs: Any) -> Ints:
    lines, which = np.unique(np.asarray(outputs, dtype=str), return_inverse=True)
    columns = []
    for line in lines.tolist():
        told = dict(item.split("=") for item in line.split())
        places = [
            int(_capped(int(told[key]))) if key in told else _ABSENT for key in _KEYS
        ]
        columns.append(places[0] * (_ABSENT + 1) + places[1])
    return np.array(columns)[which]


def _noisy_choice(values: Any, rng: np.random.Generator, *, rate: float) -> Ints:
    scores = np.asarray(values, dtype=float).reshape(-1, _CANDIDATES)
    noisy = rate * scores + rng.gumbel(size=scores.shape)
    return np.asarray(noisy.argmax(axis=1))


# Faults of the sparse vector technique: queries held against a noisy threshold.
#
# With threshold noise of scale :math:`2/\varepsilon`, query noise of scale
# :math:`4/\varepsilon` and a stop at the first query above, queries that move by at
# most 1 cost :math:`\varepsilon`. Both noises and the stop are needed.

_CENTER = 0.5
_MOST = 10
# Scales of the threshold noise integrated over, and nodes in each.
_SPAN = 40
_NODES = 24


def noiseless_queries(epsilon: float = 1.0) -> Fault:
    """Sparse vector technique that adds noise to the threshold alone.

    All queries are held against the same noisy threshold, so that their order shows.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> noiseless_queries().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    queries = [(0.0, 1.0), (1.0, 0.0)]
    return Fault(
        "noiseless-queries",
        "The threshold gets noise, the queries held against it get none.",
        Claim.pure(level),
        _code(queries, (2.0 / level, 0.0), stop=False, name="noiseless_queries"),
        _code(queries, (2.0 / level, 4.0 / level), stop=True, name="above_threshold"),
        trials=800,
    )


def endless_threshold(epsilon: float = 2.0, *, queries: int = 10) -> Fault:
    """Sparse vector technique that goes on after a query above the threshold.

    Every answer above the threshold would have to be paid for; here none is, and the
    loss grows with the number of queries.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.
    queries : int, optional
        An even number up to 10; one half moves up, the other one down.

    Examples
    --------
    >>> [round(endless_threshold(queries=k).epsilon, 4) for k in (6, 10)]
    [2.446, 4.1504]
    """
    level = check_positive(epsilon, "epsilon")
    k = check_count(queries, "queries", minimum=2)
    if k % 2 or k > _MOST:
        raise ValueError(f"queries must be even and at most {_MOST}, got {k}.")
    low, high = (0.0,) * (k // 2), (1.0,) * (k // 2)
    answers = [(*low, *high), (*high, *low)]
    return Fault(
        "endless-threshold",
        "Queries are answered without end, with the noise for one answer above.",
        Claim.pure(level),
        _code(answers, (2.0 / level, 4.0 / level), stop=False, name="endless"),
        _code(answers, (2.0 / level, 4.0 / level), stop=True, name="above_threshold"),
        trials=80_000,
        score=Score("answers above by half", partial(_balance, width=k)),
    )


def threshold_masses(
    queries: tuple[float, ...], scales: tuple[float, float], *, stop: bool
) -> Floats:
    r"""Return the law of the answers, one bit for each query: above or not.

    .. math:: P(b) = \int f(t) \prod_i
       P(q_i + N_i \ge t)^{b_i} P(q_i + N_i < t)^{1-b_i}\, dt

    Parameters
    ----------
    queries : tuple of float
        The true answers.
    scales : pair of float
        Of the Laplace noise on the threshold 1/2 and on each query, which may be 0.
    stop : bool
        Whether queries after the first one above are not looked at; their bits are 0.

    Returns
    -------
    ndarray of shape (2^k,)
        By the binary number of the bits, the first query leading: the output.

    Notes
    -----
    Gauss-Legendre quadrature between the queries and the threshold, where the integrand
    is smooth, and to 40 scales beyond; the error is below 1e-12.

    Examples
    --------
    >>> threshold_masses((0.0, 1.0), (2.0, 0.0), stop=False).round(4).tolist()
    [0.3894, 0.2212, 0.0, 0.3894]
    """
    nodes, weights = _rule(queries, scales[0])
    above = np.stack([_survival(nodes - q, scales[1]) for q in queries])
    k = len(queries)
    masses = np.zeros(1 << k)
    for number in range(1 << k):
        bits = np.array([number >> (k - 1 - i) & 1 for i in range(k)], dtype=bool)
        if stop and bits.sum() > 1:
            continue
        chance = np.where(bits[:, None], above, 1.0 - above)
        seen = int(bits.argmax()) + 1 if stop and bits.any() else k
        masses[number] = weights @ chance[:seen].prod(axis=0)
    return masses


def _rule(queries: tuple[float, ...], scale: float) -> tuple[Floats, Floats]:
    """Return nodes, and weights that hold the density of the threshold."""
    inner = sorted({*queries, _CENTER})
    tails = scale * np.arange(1.0, _SPAN + 1)
    ends = np.concatenate([inner[0] - tails[::-1], inner, inner[-1] + tails])
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    nodes = (middle[:, None] + half[:, None] * x).ravel()
    density = np.exp(-np.abs(nodes - _CENTER) / scale) / (2 * scale)
    return nodes, (half[:, None] * w).ravel() * density


def _survival(gap: Floats, scale: float) -> Floats:
    """Return the probability that noise reaches each gap."""
    if scale == 0.0:
        return (gap <= 0).astype(float)
    tail = np.exp(-np.abs(gap) / scale) / 2.0
    return np.where(gap > 0, tail, 1.0 - tail)


def _code(
    queries: Sequence[tuple[float, ...]],
    scales: tuple[float, float],
    *,
    stop: bool,
    name: str,
) -> Code:
    rows = [threshold_masses(answers, scales, stop=stop) for answers in queries]
    settings = {"scales": scales, "stop": stop, "width": len(queries[0])}
    subject = code_subject(_compare, queries, name=name, **settings)
    return Code(subject, FiniteLaw(rows, np.asarray))


def _compare(
    values: Any,
    rng: np.random.Generator,
    *,
    scales: tuple[float, float],
    stop: bool,
    width: int,
) -> Ints:
    answers = np.asarray(values, dtype=float).reshape(-1, width)
    threshold = _CENTER + scales[0] * rng.laplace(size=(len(answers), 1))
    noisy = answers + scales[1] * rng.laplace(size=answers.shape)
    above = noisy >= threshold
    if stop:
        above &= above.cumsum(axis=1) == 1
    return binary_number(above)


def _balance(outputs: Any, *, width: int) -> Ints:
    """Return the answers above in the second half less those in the first."""
    numbers = np.arange(1 << width)
    bits = numbers[:, None] >> np.arange(width) & 1  # the last query comes first
    last, first = np.split(bits, 2, axis=1)
    table = last.sum(axis=1) - first.sum(axis=1)
    return np.asarray(table[np.asarray(outputs, dtype=np.int64)])
