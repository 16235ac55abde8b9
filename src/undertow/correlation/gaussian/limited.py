"""All Gaussian laws whose correlations stay below a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_finite
from undertow.correlation.gaussian.law import Limits
from undertow.correlation.method import Method, stated_methods
from undertow.correlation.model import Assumptions, Known, Model
from undertow.errors import ModelError

if TYPE_CHECKING:
    from undertow.correlation.gaussian.model import Gaussian

__all__ = ["LimitedGaussian"]

Array = NDArray[np.float64]

_TRIES = 10_000


class LimitedGaussian(Model):
    r"""The class of Gaussian laws with :math:`|\mathrm{corr}| \le \rho` in groups of m.

    Parameters
    ----------
    correlation : float
        Largest absolute correlation rho of two records; in [0, 1).
    group : int
        Most records that depend on each other, m.
    sd_ratio : float
        Largest ratio of two standard deviations in a group; 1 says that all are equal.
    sds : array_like, optional
        Known standard deviations, only to check `sd_ratio` against them.
    size : int, optional
        Number of records; any number if left out.

    Raises
    ------
    ModelError
        If the known standard deviations differ by more than `sd_ratio`: a limit on
        correlations alone says too little then.

    Notes
    -----
    Definition 6.9 of [1]_ is `sd_ratio` = 1. A promise under it holds for every law of
    the class, so nothing need be known but the limit.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> LimitedGaussian(0.275, 3).summary
    'Gaussian records, correlations at most 0.275, groups of at most 3'
    """

    def __init__(
        self,
        correlation: float,
        group: int,
        *,
        sd_ratio: float = 1.0,
        sds: ArrayLike | None = None,
        size: int | None = None,
    ) -> None:
        number = check_finite(correlation, "correlation")
        if not 0 <= number < 1:
            raise ModelError(f"correlation must be in [0, 1), got {correlation}.")
        self.correlation = number
        self.group = check_count(group, "group")
        self.sd_ratio = _check_ratio(sd_ratio, sds)
        self._size = None if size is None else check_count(size, "size")

    @property
    def size(self) -> int | None:
        """Number of records; None for any."""
        return self._size

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return self.group if self._size is None else min(self.group, self._size)

    @property
    def summary(self) -> str:
        """The class in one line of words."""
        text = (
            f"Gaussian records, correlations at most {self.correlation:g}, groups of "
            f"at most {self.group}"
        )
        if self.sd_ratio > 1:
            text += f", standard deviations within a factor {self.sd_ratio:g}"
        return text

    def __repr__(self) -> str:
        return f"<LimitedGaussian: {self.summary}>"

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        return Limits(self.largest_group, self.correlation, self.sd_ratio)

    def methods(self) -> tuple[Method, ...]:
        """Return the closed forms, the strongest first."""
        return stated_methods(self)

    def assumptions(self) -> Assumptions:
        """Return what must be trusted."""
        return Assumptions(
            unchecked=(
                "the records are jointly Gaussian",
                f"no two records of a group correlate above {self.correlation:g}",
                f"groups of at most {self.group} records are mutually independent",
                "standard deviations in a group are equal"
                if self.sd_ratio == 1
                else f"standard deviations differ by at most {self.sd_ratio:g} times",
            )
        )

    def member(self, *, rng: np.random.Generator, sd: float = 1.0) -> Gaussian:
        """Draw one law of the class: uniform correlations, kept if they are possible.

        Raises
        ------
        ModelError
            If no positive definite matrix was found in ten thousand draws.
        """
        from undertow.correlation.gaussian.model import Gaussian

        size = self.largest_group
        above = np.triu_indices(size, 1)
        for _ in range(_TRIES):
            matrix = np.zeros((size, size))
            matrix[above] = rng.uniform(
                -self.correlation, self.correlation, len(above[0])
            )
            matrix = matrix + matrix.T + np.eye(size)
            if np.linalg.eigvalsh(matrix)[0] > 1e-9:
                return Gaussian(sd**2 * matrix)
        raise ModelError(
            "correlation must leave room for positive definite matrices, got "
            f"{self.correlation} for groups of {size}, none in {_TRIES} draws; lower "
            "it."
        )

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Refuse: a class of laws has no samples; `member` draws one of the laws."""
        raise ModelError(
            "a limited Gaussian model is a class of laws and must be narrowed to one "
            "before sampling, got the class; use member(rng=...)."
        )

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> Array:
        """Refuse, as `sample` does."""
        return self.sample(count, rng=rng)


def _check_ratio(sd_ratio: float, sds: ArrayLike | None) -> float:
    ratio = check_finite(sd_ratio, "sd_ratio")
    if ratio < 1:
        raise ModelError(f"sd_ratio must be at least 1, got {sd_ratio}.")
    if sds is None:
        return ratio
    values = np.array(sds, dtype=float)
    if values.size == 0 or not np.all((values > 0) & np.isfinite(values)):
        raise ModelError("sds must be positive and finite, got one that is not.")
    actual = float(values.max() / values.min())
    if actual > ratio * (1 + 1e-12):
        raise ModelError(
            "sd_ratio must cover the known standard deviations, which differ "
            f"{actual:.6g} times, got {ratio:g}; a limit on correlations alone does "
            "not bound the leakage then: pass sd_ratio, or the covariance."
        )
    return ratio
