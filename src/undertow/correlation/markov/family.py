r"""Chains that are only roughly known: a whole class of them at once.

"No transition is more than 7.5 times as likely as another" is often all that can be
said without looking at the protected data. The closed form needs no more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_non_negative
from undertow.correlation.markov.closed import ratio_diameter
from undertow.correlation.markov.ratio import projective_diameter
from undertow.correlation.model import Assumptions, Known, Model
from undertow.errors import ModelError, NotApplicable

if TYPE_CHECKING:
    from undertow.correlation.method import Method

__all__ = ["MarkovFamily"]


class MarkovFamily(Model):
    r"""Every Markov chain whose transition matrices are within given limits.

    Parameters
    ----------
    gamma : float, optional
        Largest ratio of two transition probabilities.
    omega : float, optional
        Largest ratio of two transition probabilities with the same next state.
    diameter : float, optional
        Largest projective diameter.
    lower, upper : array_like of shape (s, s), optional
        Entrywise limits of the transition matrix, given together.
    length : int, optional
        Number of records.

    Raises
    ------
    ValueError
        If not exactly one of the four descriptions is given.
    ModelError
        If the interval matrices do not enclose a transition matrix.

    Notes
    -----
    Any initial law; the matrix may change from step to step within the limits. The
    guarantee is the projective bound at the largest diameter of the class:
    ``2 log(gamma)``, ``2 log(omega)``, the diameter, or that of the interval matrix.

    Examples
    --------
    >>> from undertow.correlation.markov.closed import projective_budget
    >>> known = MarkovFamily(gamma=7.5)
    >>> round(projective_budget(1.0, known.diameter), 6)
    0.134701
    """

    def __init__(
        self,
        *,
        gamma: float | None = None,
        omega: float | None = None,
        diameter: float | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        length: int | None = None,
    ) -> None:
        interval = lower is not None or upper is not None
        given = [gamma is not None, omega is not None, diameter is not None, interval]
        if sum(given) != 1:
            raise ValueError(
                "MarkovFamily must be given exactly one of gamma, omega, diameter, or "
                f"lower and upper together, got {sum(given)} of them."
            )
        self._words, self._diameter = _describe(gamma, omega, diameter, lower, upper)
        self._length = None if length is None else check_count(length, "length")

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    @property
    def size(self) -> int | None:
        """Number of records; None if the class is meant for every length."""
        return self._length

    @property
    def largest_group(self) -> int | None:
        """The length: every record depends on every other."""
        return self._length

    @property
    def diameter(self) -> float:
        """Largest projective diameter of a transition matrix of the class."""
        return self._diameter

    @property
    def summary(self) -> str:
        """The class in one line."""
        count = "any number of" if self._length is None else f"{self._length}"
        return f"every Markov chain of {count} records with {self._words}"

    def assumptions(self) -> Assumptions:
        """Return what must be trusted: that the limits hold."""
        return Assumptions(
            unchecked=(
                f"the records follow a first-order Markov chain with {self._words}",
                "these limits are public knowledge, not fitted to the protected data",
            )
        )

    def methods(self) -> tuple[Method, ...]:
        """Return the closed form and the general bound."""
        from undertow.correlation.general import GeneralMethod
        from undertow.correlation.markov.closed import ProjectiveMethod

        return ProjectiveMethod(), GeneralMethod()

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Refuse: a class of chains is not one law."""
        raise NotApplicable(_NO_LAW)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Refuse: a class of chains is not one law."""
        raise NotApplicable(_NO_LAW)


_NO_LAW = (
    "sampling needs one chain, got a class of chains; sample a MarkovChain within the "
    "limits."
)


def _describe(
    gamma: float | None,
    omega: float | None,
    diameter: float | None,
    lower: ArrayLike | None,
    upper: ArrayLike | None,
) -> tuple[str, float]:
    if gamma is not None:
        return f"transition ratios up to {gamma:g}", ratio_diameter(gamma)
    if omega is not None:
        return f"column ratios up to {omega:g}", ratio_diameter(omega)
    if diameter is not None:
        limit = check_non_negative(diameter, "diameter")
        return f"projective diameter up to {limit:g}", limit
    if lower is None or upper is None:
        raise ValueError("lower and upper must be given together, got one of them.")
    limit = projective_diameter(lower=lower, upper=upper)
    if limit == math.inf:
        raise ModelError(
            "lower must have positive entries, got a zero; a class of chains that may "
            "have impossible transitions has no bound but the general one."
        )
    return "transitions within given limits", limit
