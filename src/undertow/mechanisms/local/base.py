"""What every local protocol says of itself, and the frequencies its reports tell.

A client holds one of m categories 0, ..., m - 1 and sends one report. Each report
*supports* a set of categories; the true one with probability `keep`, every other one
with probability `noise`. The simple attack and the unbiased estimate of the
frequencies, with its exact variance, read nothing else.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_non_negative
from undertow.errors import AssumptionError, MismatchError, NotApplicable
from undertow.mechanisms.law import Law, OutputKind
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.numeric.array import disagreement as pair_difference
from undertow.numeric.array import read_floats, read_law
from undertow.numeric.rounding import CLOSED_FORM, HANDFUL, UNIT, inflate
from undertow.privacy.loss import Pure
from undertow.results import Bound

Knowledge = Literal["none", "full"]
"""What the attacker knows of the target: nothing, or the record (membership)."""

# Cells of a support table held at a time.
_CELLS = 1 << 18
# Reports and cells of a table of all reports, and the rounding of logs of counts.
_REPORTS = 100_000
_TABLE_CELLS = 20_000_000
_SLACK = 1e-9
_WAY_OUT = (
    "use advantage(), which needs no table, OptimalGuess, which reads one report at a "
    "time, or estimate_advantage with a ProtocolSampler"
)


class LocalProtocol(Law):
    """A frozen description of one report about one category.

    Notes
    -----
    The loss is local (free-lunch) pure DP: it holds for every two categories of one
    client. It says nothing about a client who reports twice.
    """

    __slots__ = ()
    name: ClassVar[str]
    monotone: ClassVar[bool] = True
    """Whether it is proved that the advantage never falls as epsilon grows."""
    measure: ClassVar[str] = "counting"
    categories: int
    epsilon: Fraction

    @property
    @abstractmethod
    def keep(self) -> Fraction:
        """Probability that a report supports the true category."""

    @property
    @abstractmethod
    def noise(self) -> Fraction:
        """Probability that a report supports one given other category."""

    @abstractmethod
    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""

    @abstractmethod
    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""

    @abstractmethod
    def attack_success(self) -> float:
        """Return how often the simple attack is right under the uniform prior."""

    @abstractmethod
    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage of every attack on one report."""

    @abstractmethod
    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log density of each report, in the sense of `measure`.

        One report at a time: no table of all outputs is ever made.
        """

    @abstractmethod
    def sample(self, values: ArrayLike, *, source: Any = None) -> Draw:
        """Draw one report per client."""

    @property
    def structure(self) -> int | None:
        """The whole number chosen beside epsilon, such as a size; None without one."""
        return None

    @property
    def follows_rule(self) -> bool:
        """Whether all that is chosen beside epsilon is what epsilon makes best."""
        return True

    @property
    def output_kind(self) -> OutputKind:
        """Whether there are finitely many reports."""
        return "finite" if self.measure == "counting" else "real"

    @property
    def listed_inputs(self) -> range:
        """The categories."""
        return range(self.categories)

    def inputs_of(self, records: Sequence[Hashable]) -> range:
        """Return the categories: the records are these, in their order."""
        if self.categories != len(records):
            raise MismatchError(
                f"the protocol must have a category for each of the {len(records)} "
                f"records, got {self.categories}."
            )
        return self.listed_inputs

    def simulate(
        self, given: SupportsIndex, size: int, *, rng: np.random.Generator
    ) -> Any:
        """Draw `size` reports about one category from a seed: never for a release."""
        truths = np.full(size, given, dtype=np.int64)
        return self.sample(truths, source=SimulatedSource(rng)).values

    def listed_outputs(self) -> NDArray[Any]:
        """Return every report once, in the order of the columns of the table.

        Raises
        ------
        NotApplicable
            If the reports are too many, real numbers, or drawn with a hash.
        """
        reason = "its reports are not listed"
        if self.measure != "counting":
            reason = "its reports are real numbers"
        raise self._no_list(reason)

    @abstractmethod
    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category) of what each report supports."""

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return how many reports support each category; O(reports x categories)."""
        counts = np.zeros(self.categories, dtype=np.int64)
        for part in self._parts(reports):
            counts += self.support(part).sum(axis=0)
        return counts

    def report_variance(self, frequency: ArrayLike) -> NDArray[np.float64]:
        """Return the mean variance of one support bit at a true frequency."""
        p, q = float(self.keep), float(self.noise)
        share = np.asarray(frequency, dtype=float)
        return np.asarray(share * p * (1 - p) + (1 - share) * q * (1 - q))

    def sample_guesses(
        self, reports: Any, *, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw the guesses of the simple attack.

        A uniform element of the support of each report, or of all categories where the
        support is empty.
        """
        guesses = [
            self._guess(self.support(part), rng) for part in self._parts(reports)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *guesses])

    def _guess(
        self, table: NDArray[np.bool_], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        table = table | ~table.any(axis=1, keepdims=True)
        rank = rng.integers(table.sum(axis=1))
        running = np.cumsum(table, axis=1, dtype=np.int32)
        return np.asarray((running > rank[:, None]).argmax(axis=1), dtype=np.int64)

    def __repr__(self) -> str:
        # The exact odds have thousands of digits at large levels.
        shape = "".join(f", {name}={size}" for name, size in self._shape())
        level = float(self.epsilon)
        return f"{type(self).__name__}({self.categories}, {level:g}{shape})"

    def _shape(self) -> tuple[tuple[str, float], ...]:
        return ()

    def _no_list(self, reason: str) -> NotApplicable:
        return NotApplicable(
            f"the reports of a protocol must have a list for a table, got {self!r}: "
            f"{reason}; {_WAY_OUT}."
        )

    def _require_few(self, digits: float, *, limit: int = _REPORTS) -> None:
        """Refuse too many reports, given the decimal log of their number."""
        cells = digits + math.log10(self.categories)
        if (
            digits > math.log10(limit) + _SLACK
            or cells > math.log10(_TABLE_CELLS) + _SLACK
        ):
            raise NotApplicable(
                f"a table of reports must have at most {limit} columns and "
                f"{_TABLE_CELLS} cells, got {self!r} with about 10^{digits:.1f} "
                f"reports; {_WAY_OUT}."
            )

    def _parts(self, reports: Any) -> Iterator[Any]:
        if not hasattr(reports, "__len__"):
            raise MismatchError(
                f"reports must be an array, got {type(reports).__name__}."
            )
        step = max(1, _CELLS // self.categories)
        for start in range(0, len(reports), step):
            yield reports[start : start + step]

    def _bound(self, value: float, theorem: str, *, tight: bool | None = True) -> Bound:
        return Bound(
            value,
            theorem,
            unchecked=("the client follows the protocol", "one report per client"),
            checked=("probabilities and sizes",),
            quantity="advantage",
            tight=tight,
        )


def read_categories(categories: SupportsIndex) -> int:
    """Read the number of categories, at least two."""
    m = check_count(categories, "categories", minimum=2)
    if m > 10**300:
        raise ValueError("categories must be at most 10^300, got more.")
    return m


def read_level(epsilon: float) -> float:
    """Read a privacy parameter in ``[0, inf]`` for a closed form."""
    return check_non_negative(epsilon, "epsilon")


def read_knowledge(knowledge: str) -> str:
    """Read what the attacker knows of the target."""
    return check_choice(knowledge, "knowledge", choices=("none", "full"))


def read_prior(prior: ArrayLike | None, categories: int) -> NDArray[np.float64]:
    """Read one probability per category; None is the uniform prior."""
    if prior is None:
        return np.full(categories, 1.0 / categories)
    masses = read_floats(getattr(prior, "pmf", prior), "prior")
    if masses.shape != (categories,):
        raise ValueError(
            f"prior must have one entry per category ({categories}), "
            f"got shape {masses.shape}."
        )
    return read_law(masses, "prior", tolerance=1e-12 * math.sqrt(categories))


def ordered_masses(
    prior: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the masses in rising order, and those below and above each.

    One minus a mass is the mass below and above; adding it up keeps small terms exact.
    """
    masses = np.sort(prior)
    below = np.concatenate([[0.0], np.cumsum(masses)[:-1]])
    above = np.concatenate([np.cumsum(masses[::-1])[::-1][1:], [0.0]])
    return masses, below, above


def disagreement(prior: ArrayLike | None, categories: int) -> float:
    r"""Return :math:`1 - \kappa_\pi = \sum \pi (1 - \pi)`, without cancellation.

    Examples
    --------
    >>> round(disagreement([0.5, 0.3, 0.2], 3), 12)
    0.62
    """
    if prior is None:
        return (categories - 1) / categories
    return pair_difference(read_prior(prior, categories))


def never_binds(target: float, prior: ArrayLike | None, categories: int) -> bool:
    r"""Say whether a target is at least :math:`1 - \kappa_\pi`, the largest advantage.

    True is proved: the uniform value is compared exactly, others rounded up.
    """
    if prior is None:
        return Fraction(target) >= Fraction(categories - 1, categories)
    return target >= min(1.0, inflate(disagreement(prior, categories), HANDFUL))


def read_values(values: ArrayLike, categories: int) -> NDArray[np.int64]:
    """Read true categories; the message never shows one."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("values must be a one-dimensional array of integers.")
    if array.size and not (array.min() >= 0 and array.max() < categories):
        raise ValueError(f"values must be categories in 0..{categories - 1}.")
    return array.astype(np.int64)


# The target of a calibration is lowered by this share, which covers the margin of the
# closed form; below the least one only epsilon 0 is given: products lose their digits.
_TARGET_SLACK, _LEAST_TARGET = 4e-12, 1e-300


def lowered_target(target: float) -> float:
    """Return a target lowered by the margin of a closed form; 0 for a tiny one."""
    return target / (1.0 + _TARGET_SLACK) if target >= _LEAST_TARGET else 0.0


def advantage_up(value: float, *, terms: int = 0) -> float:
    """Return a closed form raised by its rounding margin, at most 1.

    Running sums of `terms` numbers err by as many units more.
    """
    return min(1.0, inflate(value, CLOSED_FORM + 4 * terms * UNIT))


def log_fraction(value: Fraction) -> float:
    """Return the log of a positive rational, also below the range of floats."""
    if value > Fraction(1, 2):
        return math.log1p(-float(1 - value))
    return math.log(value.numerator) - math.log(value.denominator)


# Frequencies from reports: the unbiased estimate and its exact variance.


@dataclass(frozen=True, slots=True, eq=False)
class FrequencyEstimate:
    """Estimated frequencies of the categories.

    Parameters
    ----------
    frequencies : ndarray of shape (m,)
        Unbiased; entries may be negative or above 1, and are not cut.
    variances : ndarray of shape (m,)
        Unbiased estimates of their variances, for the clients at hand.
    reports : int
        Number of reports behind them.
    protocol : str
        Name of the protocol.
    """

    frequencies: NDArray[np.float64]
    variances: NDArray[np.float64]
    reports: int
    protocol: str

    def __post_init__(self) -> None:
        self.frequencies.flags.writeable = False
        self.variances.flags.writeable = False


def frequency_variance(
    protocol: LocalProtocol, frequency: ArrayLike, *, reports: int
) -> NDArray[np.float64]:
    r"""Return the exact variance of an estimated frequency.

    .. math:: \frac{f\,p(1-p) + (1-f)\,q(1-q)}{n (p-q)^2}

    Parameters
    ----------
    protocol : LocalProtocol
        Its `keep` and `noise` are the p and q.
    frequency : array_like
        The true share f of the clients.
    reports : int
        The n; positive.

    Returns
    -------
    ndarray
        One variance per frequency given.

    Notes
    -----
    Over the randomness of the protocol, the clients being fixed; for clients drawn at
    random add :math:`f(1-f)/n`. For SHE the numerator is :math:`8/\varepsilon^2`, for
    local hashing the hash is assumed ideal.

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> protocol = OptimizedUnary(10, 1)
    >>> float(frequency_variance(protocol, 0.0, reports=1000).round(8))
    0.00368269
    """
    n, share = check_count(reports, "reports"), read_floats(frequency, "frequency")
    if not np.isfinite(share).all():
        raise ValueError("frequency must be finite, got others.")
    gap = _gap(protocol)
    return np.asarray(protocol.report_variance(share) / (n * gap * gap))


def frequency_from_counts(
    protocol: LocalProtocol, counts: ArrayLike, *, reports: int
) -> FrequencyEstimate:
    r"""Estimate the frequencies from how many reports support each category.

    .. math:: \hat f_v = \frac{c_v - nq}{n(p-q)}

    Parameters
    ----------
    protocol : LocalProtocol
        What the clients ran.
    counts : array_like of shape (m,)
        Supports, or sums of coordinates for SHE.
    reports : int
        The n; positive.

    Returns
    -------
    FrequencyEstimate
        Unbiased, not cut to [0, 1].

    Notes
    -----
    The moment estimate; for randomised response it sums to one.

    Examples
    --------
    >>> import math
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> protocol = GeneralizedResponse(3, math.log(4))
    >>> found = frequency_from_counts(protocol, [450, 300, 250], reports=1000)
    >>> found.frequencies.round(10).tolist()
    [0.5666666667, 0.2666666667, 0.1666666667]
    """
    n, seen = check_count(reports, "reports"), read_floats(counts, "counts")
    if seen.shape != (protocol.categories,):
        raise MismatchError(
            f"counts must have one entry per category ({protocol.categories}), got "
            f"shape {seen.shape}."
        )
    if not np.isfinite(seen).all():
        raise ValueError("counts must be finite, got others.")
    found = (seen / n - float(protocol.noise)) / _gap(protocol)
    # The variance is linear in the frequency, so plugging in keeps it unbiased.
    spread = frequency_variance(protocol, found, reports=n)
    return FrequencyEstimate(found, spread, n, protocol.name)


def estimate_frequencies(protocol: LocalProtocol, reports: Any) -> FrequencyEstimate:
    """Estimate the frequencies of the categories from the reports.

    Parameters
    ----------
    protocol : LocalProtocol
        What the clients ran.
    reports : array_like
        The values of its draws.

    Returns
    -------
    FrequencyEstimate
        Unbiased, not cut to [0, 1].

    Notes
    -----
    Not checkable: that clients were honest. The estimate is linear, so batches may be
    counted apart and their counts added (:func:`frequency_from_counts`).

    Examples
    --------
    >>> from undertow.mechanisms import SimulatedSource
    >>> from undertow.mechanisms.local import SymmetricUnary
    >>> protocol = SymmetricUnary(3, 4)
    >>> draw = protocol.sample([0] * 4000, source=SimulatedSource(2))
    >>> found = estimate_frequencies(protocol, draw.values)
    >>> bool(abs(found.frequencies - [1, 0, 0]).max() < 0.05)
    True
    """
    counts = protocol.support_counts(reports)
    return frequency_from_counts(protocol, counts, reports=len(reports))


def _gap(protocol: LocalProtocol) -> float:
    gap = float(protocol.keep - protocol.noise)
    if gap <= 0.0:
        raise AssumptionError(
            "protocol must support the truth more often than others, got equal "
            "probabilities; raise epsilon."
        )
    return gap
