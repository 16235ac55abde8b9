"""A number with noise as the source of a risk: one answer for each record."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from undertow._validate import check_count, check_index
from undertow.errors import MismatchError, ModelError
from undertow.risk.scalar.laws import ScalarLaw, is_scalar

__all__ = ["ScalarChannel", "as_scalar"]

Floats = NDArray[np.float64]

# Distances between answers must be floats, in units of any scale.
_LARGEST = 1e150
_LEVEL = 2.0**-54


@dataclass(frozen=True, slots=True, eq=False, init=False)
class ScalarChannel:
    r"""A one-dimensional additive mechanism on the numeric answer of each record.

    Parameters
    ----------
    mechanism : LaplaceMechanism, GaussianMechanism or one of them kept in a range
        On one coordinate; kept by `ClampedMechanism` or `TruncatedMechanism`.
    answers : array_like of shape (m,)
        The true answer if the target is each record, such as a sum with it; ties are
        allowed.
    support : sequence of hashable, optional
        The records; a threat on others is then refused. Without it the answers are
        taken in the order of the threat's records.

    Raises
    ------
    ModelError
        If the answers are not finite numbers.
    MismatchError
        If there is not one answer for each record.

    Notes
    -----
    The law is the continuous one. What the mechanisms release is its lattice form, a
    law within the rounding that their `released_loss` accounts for. Only differences
    of answers matter: the known part of a sum may be left out, except where an
    interval is fixed.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.exact import advantage
    >>> from undertow.risk.prior import Prior
    >>> from undertow.risk.threat import Threat
    >>> channel = ScalarChannel(LaplaceMechanism(1), [0, 1])
    >>> round(advantage(channel, Threat(Prior.uniform(2))).value, 9)
    0.19673467
    """

    mechanism: Any
    answers: Floats
    support: tuple[Hashable, ...] | None
    law: ScalarLaw

    def __init__(
        self,
        mechanism: Any,
        answers: ArrayLike,
        support: Sequence[Hashable] | None = None,
    ) -> None:
        law, line = ScalarLaw.of(mechanism), _read_answers(answers)
        records = None if support is None else tuple(support)
        if records is not None and len(records) != len(line):
            raise MismatchError(
                f"answers must be one for each of the {len(records)} records, got "
                f"{len(line)}."
            )
        law.weights(line)  # refuses answers outside a truncated interval
        line.setflags(write=False)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "answers", line)
        object.__setattr__(self, "support", records)
        object.__setattr__(self, "law", law)

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.answers)

    def sample(self, record: int, size: int = 1, *, rng: np.random.Generator) -> Floats:
        """Draw outputs for one record, by number: a simulation, never a release.

        Parameters
        ----------
        record : int
            Number of the record.
        size : int, optional
            How many outputs.
        rng : numpy.random.Generator
            Source of randomness.
        """
        number = check_index(record, "record", size=self.size)
        draws = rng.uniform(size=check_count(size, "size", minimum=0))
        draws = np.maximum(draws, _LEVEL)  # level 0 would be an infinite output
        answer, law = self.answers[number : number + 1], self.law
        if law.kind == "truncated":
            ends = np.array([law.low, law.high])
            start, stop = law.cdf((ends - answer) / law.scale)
            draws = start + (stop - start) * draws
        output = answer + law.scale * _quantile(law, draws)
        return np.asarray(np.clip(output, law.low, law.high))

    def log_likelihood(self, outputs: ArrayLike) -> Floats:
        """Return the log density (log probability at an atom): (outputs, records)."""
        seen = np.asarray(outputs, dtype=np.float64)
        columns = [self.mechanism.log_density(seen, float(a)) for a in self.answers]
        return np.stack([np.asarray(c) for c in columns], axis=-1)

    def __repr__(self) -> str:
        return f"ScalarChannel({self.mechanism!r}, {self.size} records)"


def as_scalar(source: Any, support: Sequence[Hashable]) -> ScalarChannel | None:
    """Read a scalar channel on the given records; None if the source is another kind.

    Parameters
    ----------
    source : ScalarChannel, mechanism or anything else
        Of a Laplace or Gaussian mechanism the records themselves are the answers.
    support : sequence of hashable
        The records of the threat.

    Raises
    ------
    MismatchError
        If a channel is on other records, or on another number of them.
    ModelError
        If a mechanism is given and a record is not a number.
    """
    if is_scalar(source):
        return ScalarChannel(source, _read_answers(list(support), "records"), support)
    if not isinstance(source, ScalarChannel):
        return None
    if source.size != len(support):
        raise MismatchError(
            f"the channel must have an answer for each of the {len(support)} records, "
            f"got {source.size}."
        )
    if source.support is not None and source.support != tuple(support):
        raise MismatchError(
            "the channel must be on the records of the threat, in their order, got "
            "others."
        )
    return source


def _read_answers(answers: Any, name: str = "answers") -> Floats:
    given = np.atleast_1d(np.asarray(answers, object))
    try:
        line = np.array([float(a) for a in given])
    except (TypeError, ValueError, OverflowError):
        line = np.array([np.nan])
    text = any(isinstance(a, str | bytes) for a in given)
    if text or line.size == 0 or not (np.abs(line) <= _LARGEST).all():
        raise ModelError(
            f"{name} must be finite numbers below 1e150, at least one; give "
            "ScalarChannel the answer of each record."
        )
    # Two whole numbers that round to one would pass for a tie, which tells nothing.
    pairs = zip(given, line.tolist(), strict=True)
    if any(isinstance(a, int | np.integer) and int(place) != a for a, place in pairs):
        raise ModelError(
            f"{name} must be exact as floats, got whole numbers beyond 2^53; subtract "
            "a common offset, since only differences matter."
        )
    return line


def _quantile(law: ScalarLaw, levels: Floats) -> Floats:
    if law.family == "gaussian":
        return np.asarray(ndtri(levels))
    centred = np.minimum(levels, 1.0 - levels)
    with np.errstate(divide="ignore"):
        return np.where(levels < 0.5, 1.0, -1.0) * np.log(2.0 * centred)
