"""A fault: code that breaks its promise, with the law that says by how much.

Exact output laws of small programs, densities of numbers with noise, and the epsilon
that they really have.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from undertow._validate import check_count, check_index, check_probability
from undertow.audit.claim import Claim
from undertow.audit.local import audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.result import AuditResult
from undertow.audit.subject import CallableSubject, Subject
from undertow.numeric.array import Floats, Ints


@dataclass(frozen=True, eq=False)
class Code:
    """Code that can be run, and what it does.

    Parameters
    ----------
    subject : Subject
        The code.
    law : Law
        Its exact output law, derived apart from the code.
    """

    subject: Subject
    law: Law


@dataclass(frozen=True, eq=False)
class Fault:
    """A bug with its claim, its exact law and its repair.

    Parameters
    ----------
    name : str
        A short name.
    bug : str
        What is wrong, in one sentence.
    claim : Claim
        What the code is said to keep.
    broken, repaired : Code
        The code with the bug, and without.
    trials : int
        At so many trials the audit finds the bug in at least 95 of 100 runs.
    method : {"local", "pair"}
        Which audit finds it.
    reader : LocalProtocol, optional
        How the reports are read, for a local audit.
    score : optional
        What else is looked at, for a pair audit.
    pairs : sequence of pairs or "auto", optional
        Which inputs are compared, for a pair audit.
    success : float, optional
        How often the simple attack on the broken code names a uniform value.

    Examples
    --------
    >>> from undertow_studies.faults import whole_domain_lie
    >>> fault = whole_domain_lie()
    >>> round(fault.epsilon, 4), fault.audit(seed=1).verdict
    (1.4126, 'violated')
    >>> fault.audit(seed=1, repaired=True).verdict
    'not refuted'
    """

    name: str
    bug: str
    claim: Claim
    broken: Code
    repaired: Code
    trials: int
    method: Literal["local", "pair"] = "pair"
    reader: Any = None
    score: Any = None
    pairs: Sequence[tuple[int, int]] | Literal["auto"] = "auto"
    success: float | None = None

    @property
    def epsilon(self) -> float:
        """The true epsilon of the broken code."""
        return self.broken.law.epsilon

    @property
    def level(self) -> float:
        """The true value of what is claimed: epsilon, or mu of a Gaussian claim."""
        law = self.broken.law
        return law.mu if isinstance(law, GaussianLaw) else law.epsilon

    def audit(
        self,
        *,
        seed: SupportsIndex,
        repaired: bool = False,
        trials: SupportsIndex | None = None,
        confidence: float = 0.99,
    ) -> AuditResult:
        """Run the audit that finds the bug, on the broken or the repaired code.

        Parameters
        ----------
        seed : int
            Makes the run repeatable.
        repaired : bool, optional
            Whether the code without the bug is audited.
        trials : int, optional
            The stated ones by default.
        confidence : float, optional
            Probability that a true claim is not refuted.
        """
        subject = (self.repaired if repaired else self.broken).subject
        count = self.trials if trials is None else trials
        if self.method == "local":
            return audit_local(
                subject,
                self.claim,
                trials=count,
                confidence=confidence,
                seed=seed,
                reader=self.reader,
            )
        return audit_pair(
            subject,
            self.claim,
            pairs=self.pairs,
            trials=count,
            confidence=confidence,
            seed=seed,
            score=self.score,
        )


def code_subject(
    function: Callable[..., Any], inputs: Sequence[Any], *, name: str, **settings: Any
) -> CallableSubject:
    """Return a function of many equal inputs, `rng` and settings as a subject."""
    return CallableSubject(
        partial(function, **settings), inputs, vectorised=True, name=name
    )


# Exact output laws of small programs, and the epsilon that they really have.
#
# A law says with which probability each input gives each output. Its epsilon is the
# largest log ratio of two inputs, infinite where one input can give an output that
# another cannot.


# Bits whose 2^m outputs are listed, and the rounding allowed in a row.
_BITS = 12
_ROUNDING = 1e-9


class Law(Protocol):
    """What a program does, exactly."""

    @property
    def epsilon(self) -> float:
        """The largest log ratio between two inputs."""


def channel_epsilon(matrix: ArrayLike) -> float:
    r"""Return the epsilon of a finite law.

    .. math:: \max_{x, x', y} \ln \frac{P(y \mid x)}{P(y \mid x')}

    Parameters
    ----------
    matrix : array_like of shape (inputs, outputs)
        One row of probabilities for each input.

    Returns
    -------
    float
        Infinite if an output is possible for one input and impossible for another;
        correct to rounding, as a description and not as a guarantee.

    Examples
    --------
    >>> round(channel_epsilon([[0.75, 0.25], [0.25, 0.75]]), 9)
    1.098612289
    >>> channel_epsilon([[1.0, 0.0], [0.5, 0.5]])
    inf
    """
    table = _read_matrix(matrix)
    high, low = table.max(axis=0), table.min(axis=0)
    seen = high > 0
    if (low[seen] == 0).any():
        return math.inf
    return float(np.max(np.log(high[seen]) - np.log(low[seen])))


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """A table of probabilities.

    Parameters
    ----------
    matrix : array_like of shape (inputs, outputs)
        One row for each input.
    column : callable
        From an array of outputs to their numbers. Outputs in one column have the same
        ratio between any two inputs, so that nothing is lost.

    Examples
    --------
    >>> law = FiniteLaw([[0.75, 0.25], [0.25, 0.75]], np.asarray)
    >>> round(law.epsilon, 6), law.column([0, 1, 1]).tolist()
    (1.098612, [0, 1, 1])
    """

    matrix: ArrayLike
    column: Callable[[Any], Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", _read_matrix(self.matrix))

    @property
    def epsilon(self) -> float:
        """The largest log ratio between two inputs."""
        return channel_epsilon(self.matrix)


@dataclass(frozen=True)
class ResponseLaw:
    """The truth with one probability, each other value with an equal share.

    Parameters
    ----------
    categories : int
        The m; at least two.
    keep : float
        Probability of the truth, at most 1.

    Examples
    --------
    >>> ResponseLaw(3, 1.0).epsilon
    inf
    """

    categories: int
    keep: float

    def __post_init__(self) -> None:
        check_count(self.categories, "categories", minimum=2)
        check_probability(self.keep, "keep")

    @property
    def lie(self) -> float:
        """Probability of one given other value."""
        return (1.0 - self.keep) / (self.categories - 1)

    @property
    def epsilon(self) -> float:
        """The absolute log ratio of truth and lie."""
        if self.lie == 0.0 or self.keep == 0.0:
            return math.inf
        return abs(math.log(self.keep) - math.log(self.lie))

    @property
    def matrix(self) -> Floats:
        """The whole table: O(categories squared)."""
        table = np.full((self.categories, self.categories), self.lie)
        np.fill_diagonal(table, self.keep)
        return table

    def column(self, outputs: Any) -> Ints:
        """Return the number of each output: itself."""
        return np.asarray(outputs, dtype=np.int64)


@dataclass(frozen=True)
class BitsLaw:
    """Independent bits: the true one is set with one probability, others with another.

    Parameters
    ----------
    categories : int
        Number of bits; at least two.
    keep, noise : float
        Probabilities of the true bit and of any other; strictly between 0 and 1.

    Examples
    --------
    >>> law = BitsLaw(4, 0.75, 0.25)
    >>> round(law.epsilon, 6), law.matrix.shape
    (2.197225, (4, 16))
    """

    categories: int
    keep: float
    noise: float

    def __post_init__(self) -> None:
        check_count(self.categories, "categories", minimum=2)
        check_probability(self.keep, "keep", open_interval=True)
        check_probability(self.noise, "noise", open_interval=True)

    @property
    def epsilon(self) -> float:
        """The absolute log ratio of the odds of the two bits."""
        odds = math.log(self.keep) - math.log1p(-self.keep)
        return abs(odds - math.log(self.noise) + math.log1p(-self.noise))

    @property
    def matrix(self) -> Floats:
        """The table of all outputs, read as binary numbers; up to 12 bits."""
        if self.categories > _BITS:
            raise ValueError(
                f"categories must be at most {_BITS} for a table of all outputs, got "
                f"{self.categories}; the epsilon needs none."
            )
        places = np.arange(self.categories)
        bits = np.arange(1 << self.categories)[:, None] >> places & 1
        rows = []
        for truth in places:
            chance = np.where(places == truth, self.keep, self.noise)
            rows.append(np.where(bits, chance, 1.0 - chance).prod(axis=1))
        return np.array(rows)

    def column(self, outputs: Any) -> Ints:
        """Return the binary number of each report of one packed word."""
        return np.asarray(outputs)[:, 0].astype(np.int64)


def geometric_masses(
    rate: float, center: int, *, reach: int, one_sided: bool = False
) -> Floats:
    r"""Return the law of an integer plus geometric noise, both tails gathered.

    Parameters
    ----------
    rate : float
        The :math:`1/b` in masses proportional to :math:`e^{-|k|/b}`; positive.
    center : int
        The integer, inside the reach.
    reach : int
        Columns stand for at most -reach, -reach + 1, ..., at least reach.
    one_sided : bool, optional
        Whether the noise is never negative.

    Notes
    -----
    Two integers inside the reach have a constant ratio in each tail, so that gathering
    changes no epsilon.

    Examples
    --------
    >>> geometric_masses(1.0, 0, reach=2).round(4).tolist()
    [0.0989, 0.17, 0.4621, 0.17, 0.0989]
    """
    decay = math.exp(-rate)
    steps = np.arange(-reach, reach + 1) - center
    if one_sided:
        masses = np.where(steps >= 0, (1 - decay) * decay ** np.maximum(steps, 0), 0.0)
        masses[-1] = decay ** float(steps[-1])
        return masses
    masses = (1 - decay) / (1 + decay) * decay ** np.abs(steps)
    masses[[0, -1]] /= 1 - decay
    return np.asarray(masses)


def joint_masses(parts: Sequence[Floats]) -> Floats:
    """Return the law of several independent columns, the last one running fastest."""
    return np.array([math.prod(cell) for cell in itertools.product(*parts)])


def binary_number(outputs: Any) -> Ints:
    """Return rows of bits as numbers, the first bit leading.

    Examples
    --------
    >>> binary_number([[0, 1, 1], [1, 0, 0]]).tolist()
    [3, 4]
    """
    bits = np.asarray(outputs, dtype=np.int64)
    return np.asarray(bits @ (1 << np.arange(bits.shape[1])[::-1]))


def _read_matrix(matrix: ArrayLike) -> Floats:
    table = np.asarray(matrix, dtype=np.float64)
    if table.ndim != 2 or len(table) < 2:
        raise ValueError(
            f"matrix must have a row for each of two or more inputs, got shape "
            f"{table.shape}."
        )
    if not (table >= 0).all() or (abs(table.sum(axis=1) - 1) > _ROUNDING).any():
        raise ValueError("matrix must have rows of probabilities that sum to 1.")
    return table


# Laws of numbers with noise, and of numbers that rounding betrays.


@dataclass(frozen=True)
class LaplaceLaw:
    r"""Laplace noise around one answer for each input.

    Parameters
    ----------
    answers, scales : sequence of float
        One of each for each input; scales positive.

    Notes
    -----
    With equal scales b the density ratio is bounded by
    :math:`\max_{x,x'}|a_x - a_{x'}|/b`, attained outside the answers. With different
    scales it grows without bound in the tails: epsilon is infinite.

    Examples
    --------
    >>> LaplaceLaw((0, 1), (0.5, 0.5)).epsilon, LaplaceLaw((0, 0), (1, 2)).epsilon
    (2.0, inf)
    """

    answers: tuple[float, ...]
    scales: tuple[float, ...]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of two densities."""
        if len(set(self.scales)) > 1:
            return math.inf
        return (max(self.answers) - min(self.answers)) / self.scales[0]

    def cdf(self, outputs: ArrayLike, value: int) -> Floats:
        """Return the probability of an output up to each of these."""
        number = check_index(value, "value", size=len(self.answers))
        noise = np.asarray(outputs, dtype=float) - self.answers[number]
        z = noise / self.scales[number]
        tail = np.exp(-np.abs(z)) / 2.0
        return np.asarray(np.where(z < 0, tail, 1.0 - tail))


@dataclass(frozen=True)
class GaussianLaw:
    """Gaussian noise of one deviation around one answer for each input.

    Parameters
    ----------
    answers : sequence of float
        One for each input.
    sigma : float
        The deviation; positive.

    Examples
    --------
    >>> law = GaussianLaw((0, 1), 2.0)
    >>> law.mu, law.epsilon
    (0.5, inf)
    """

    answers: tuple[float, ...]
    sigma: float

    @property
    def epsilon(self) -> float:
        """Infinite: the ratio of two densities grows without bound."""
        return math.inf

    @property
    def mu(self) -> float:
        """The largest distance of two answers in deviations."""
        return (max(self.answers) - min(self.answers)) / self.sigma

    def cdf(self, outputs: ArrayLike, value: int) -> Floats:
        """Return the probability of an output up to each of these."""
        number = check_index(value, "value", size=len(self.answers))
        noise = np.asarray(outputs, dtype=float) - self.answers[number]
        return np.asarray(ndtr(noise / self.sigma))


@dataclass(frozen=True)
class TraceLaw:
    """Outputs that bear a trace no run on one of the inputs can leave.

    Parameters
    ----------
    trace : callable
        From outputs to truth values.
    clean : int
        Number of the input whose outputs never bear the trace; some other input's do,
        with positive probability.
    """

    trace: Callable[[Any], NDArray[np.bool_]]
    clean: int

    @property
    def epsilon(self) -> float:
        """Infinite."""
        return math.inf
