r"""Numerical privacy-loss distributions: many different mechanisms, one statement.

A privacy-loss distribution (PLD) stands for a dominating pair (P, Q): its loss is
:math:`L = \ln(dP/dQ)` under P, losses of composed mechanisms add, and

.. math:: \delta(\varepsilon) = E[(1 - e^{\varepsilon - L})_+].

Nothing is computed until a question is asked. Then the grid, the window and an
exponential tilt are chosen for that question, and every error (discretisation,
truncation, wrap-around, rounding) is bounded and added, so that each reported delta
and epsilon is an upper bound of the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

from numpy.typing import ArrayLike

from undertow._numeric import keep_exact
from undertow._validate import check_count
from undertow.errors import AssumptionError
from undertow.privacy._pld_answer import (
    certified_delta,
    certified_epsilon,
    largest_loss,
)
from undertow.privacy._pld_atoms import (
    approx_part,
    discrete_laplace_part,
    finite_parameter,
    pmf_part,
    tradeoff_weights,
)
from undertow.privacy._pld_grid import (
    AtomicPart,
    Composition,
    GaussianPart,
    LaplacePart,
    Part,
    gather,
)
from undertow.privacy.exact import (
    Number,
    exact,
    round_up,
)
from undertow.privacy.loss import GDP, Approx, Loss, Pure

__all__ = ["PrivacyLossDistribution", "compose_distributions"]

_LARGEST_SHIFT = 10**7


@dataclass(frozen=True, slots=True)
class PrivacyLossDistribution:
    r"""The privacy loss of one mechanism or of a composition of many.

    Built by the ``from_...`` methods; immutable.

    Parameters
    ----------
    parts : tuple of (part, int)
        The different mechanisms and how often each occurs.
    tolerance : float
        Relative excess of epsilon that the grid may cause; sets its step.
    step : float, optional
        The grid step, if not to be chosen from `tolerance`.
    continuous : bool
        Whether :meth:`loss` is about continuous noise, which no budget takes.

    Notes
    -----
    Composition is adaptive: dominating pairs compose by products [1]_, Theorem 10, and
    this is the tensor product of trade-off functions of the thesis, Remark 2.23 [2]_.
    The pairs of an asymmetric composition must be oriented alike, P for the same
    member of the neighbouring databases in each; both orders are then evaluated and
    the larger value is reported.

    Cost of a question: :math:`O(k N \log N)` for k different parts and N grid nodes;
    :math:`N = O(\sqrt{n})` for n repetitions of one part.

    References
    ----------
    .. [1] Y. Zhu, J. Dong, Y.-X. Wang, *Optimal Accounting of Differential Privacy via
       Characteristic Function*, AISTATS 2022.
    .. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> laplace = PrivacyLossDistribution.from_laplace(0.1)
    >>> gauss = PrivacyLossDistribution.from_gaussian(0.05)
    >>> total = laplace.self_compose(30).compose(gauss.self_compose(70))
    >>> round(total.epsilon(1e-6), 2)
    3.1
    """

    parts: tuple[tuple[Part, int], ...] = ()
    tolerance: float = 1e-3
    step: float | None = None
    continuous: bool = field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 1e-6 <= self.tolerance <= 1:
            raise ValueError(
                f"tolerance must be in [1e-6, 1], got {self.tolerance}; give step to "
                "set the grid directly."
            )
        if self.step is not None and not 0 < self.step < math.inf:
            raise ValueError(f"step must be positive and finite, got {self.step}.")

    @classmethod
    def identity(cls) -> Self:
        """Return the PLD of a constant output, which costs nothing."""
        return cls()

    @classmethod
    def from_gaussian(cls, mu: Number) -> Self:
        r"""Return the PLD of a :math:`\mu`-GDP mechanism, N(mu, 1) against N(0, 1)."""
        value = finite_parameter(mu, "mu")
        return cls(((GaussianPart(round_up(value)), 1),) if value else ())

    @classmethod
    def from_laplace(cls, epsilon: Number) -> Self:
        """Return the PLD of Laplace noise; `epsilon` is its shift over its scale."""
        value = finite_parameter(epsilon, "epsilon")
        return cls(((LaplacePart(round_up(value), value), 1),) if value else ())

    @classmethod
    def from_pure(cls, epsilon: Number) -> Self:
        r"""Return the PLD that dominates every :math:`\varepsilon`-DP mechanism.

        It is the one of binary randomized response.
        """
        return cls.from_approx(epsilon, 0)

    @classmethod
    def from_approx(cls, epsilon: Number, delta: Number) -> Self:
        r"""Return the PLD that dominates every :math:`(\varepsilon, \delta)`-DP one.

        Notes
        -----
        The pair of Kairouz, Oh, Viswanath, *The Composition Theorem for Differential
        Privacy* (2015): with probability delta the two laws are told apart for sure,
        otherwise randomized response is given.
        """
        value = finite_parameter(epsilon, "epsilon")
        infinity = Fraction(exact(delta, "delta", at_most=1))
        if value == 0 and infinity == 0:
            return cls()
        return cls(((approx_part(value, infinity), 1),))

    @classmethod
    def from_discrete_laplace(cls, epsilon: Number, *, sensitivity: int = 1) -> Self:
        r"""Return the PLD of two-sided geometric noise on the integers.

        Parameters
        ----------
        epsilon : int, float, str, Decimal or Fraction
            Total loss: the noise has mass proportional to
            :math:`e^{-\varepsilon |x| / s}`.
        sensitivity : int
            The shift s; with 1 the pair is randomized response.
        """
        value = finite_parameter(epsilon, "epsilon")
        shift = check_count(sensitivity, "sensitivity", minimum=0)
        if value == 0 or shift == 0:
            return cls()
        if shift > _LARGEST_SHIFT:
            raise ValueError(
                f"sensitivity must be at most {_LARGEST_SHIFT}, got {shift}; use "
                "from_pure with the same epsilon, which dominates it."
            )
        return cls(((discrete_laplace_part(value, shift), 1),))

    @classmethod
    def from_pmfs(cls, p: ArrayLike, q: ArrayLike) -> Self:
        """Return the PLD of a discrete pair, in both orders.

        Parameters
        ----------
        p, q : array_like of shape (k,)
            Non-negative weights over the same outcomes; each sums to 1 within 1e-9
            and is normalised.

        Raises
        ------
        MismatchError
            If the shapes differ.
        """
        part = pmf_part(p, q)
        return cls() if part is None else cls(((part, 1),))

    @classmethod
    def from_tradeoff(cls, alpha: ArrayLike, beta: ArrayLike) -> Self:
        """Return the PLD of a piecewise linear trade-off function.

        Parameters
        ----------
        alpha, beta : array_like of shape (k,)
            The corners, `alpha` increasing from 0 to 1; the function is linear between
            them, convex, non-increasing, and 0 at 1. Chords of a curved function lie
            above it and would overstate privacy: give the corners of a function below.

        Raises
        ------
        AssumptionError
            If the corners are not those of a trade-off function.
        """
        return cls.from_pmfs(*tradeoff_weights(alpha, beta))

    @classmethod
    def from_loss(cls, loss: Loss) -> Self:
        """Return the PLD that dominates every mechanism of the given loss.

        Raises
        ------
        AssumptionError
            If the notion has no dominating pair, as zero-concentrated DP.
        """
        if isinstance(loss, Pure):
            found = cls.from_pure(*loss.exact_parameters())
        elif isinstance(loss, Approx):
            found = cls.from_approx(*loss.exact_parameters())
        elif isinstance(loss, GDP):
            found = cls.from_gaussian(loss.mu)
        else:
            raise AssumptionError(
                f"loss must be pure, approx or gdp, got {loss.notion}, which has no "
                "dominating pair; give the mechanism itself, e.g. from_gaussian."
            )
        return replace(found, continuous=loss.continuous)

    @property
    def count(self) -> int:
        """How many mechanisms are composed."""
        return sum(count for _, count in self.parts)

    @property
    def max_loss(self) -> float:
        """The epsilon at which delta falls to the mass of infinite loss."""
        return max(round_up(largest_loss(side)) for side in self._directions())

    def compose(self, *others: PrivacyLossDistribution) -> Self:
        """Return the PLD of this and the others together. O(parts)."""
        parts = _merged((self, *others))
        continuous = self.continuous or any(other.continuous for other in others)
        return replace(self, parts=parts, continuous=continuous)

    def self_compose(self, n: int) -> Self:
        """Return the PLD of `n` runs. O(parts)."""
        times = check_count(n, "n", minimum=0)
        parts = tuple((part, count * times) for part, count in self.parts)
        return replace(self, parts=parts if times else ())

    def delta(self, epsilon: Number) -> float:
        r"""Return an upper bound of :math:`\delta(\varepsilon)`.

        Examples
        --------
        >>> pair = PrivacyLossDistribution.from_pure(1).self_compose(2)
        >>> round(pair.delta(1), 9), pair.delta(2)
        (0.337834712, 0.0)
        """
        value = exact(epsilon, "epsilon")
        return max(
            certified_delta(side, value, tolerance=self.tolerance, step=self.step)
            for side in self._directions()
        )

    def epsilon(self, delta: Number) -> float:
        r"""Return an upper bound of the least epsilon at `delta`.

        Infinite if `delta` is below the mass of infinite loss.
        """
        value = Fraction(exact(delta, "delta", at_most=1))
        return max(
            certified_epsilon(side, value, tolerance=self.tolerance, step=self.step)
            for side in self._directions()
        )

    def loss(self, delta: Number) -> Approx:
        r"""Return the :math:`(\varepsilon, \delta)` loss at the given delta."""
        epsilon = keep_exact(self.epsilon(delta))
        return Approx(epsilon, delta, continuous=self.continuous)

    def _directions(self) -> Iterator[Composition]:
        yield gather(self.parts, reverse=False)
        if any(isinstance(p, AtomicPart) and not p.symmetric for p, _ in self.parts):
            yield gather(self.parts, reverse=True)


def compose_distributions(
    parts: Iterable[PrivacyLossDistribution],
    *,
    tolerance: float = 1e-3,
    step: float | None = None,
) -> PrivacyLossDistribution:
    r"""Compose many, possibly different, mechanisms in one go.

    Parameters
    ----------
    parts : iterable of PrivacyLossDistribution
        Equal ones are recognised and counted.
    tolerance : float
        Relative excess of epsilon that the grid may cause.
    step : float, optional
        The grid step, if not to be chosen from `tolerance`.

    Returns
    -------
    PrivacyLossDistribution
        Ready for :meth:`~PrivacyLossDistribution.delta` and
        :meth:`~PrivacyLossDistribution.epsilon`.

    Notes
    -----
    O(number of parts); a question then costs :math:`O(k N \log N)` for k different
    non-Gaussian parts on N nodes.

    Examples
    --------
    >>> pld = PrivacyLossDistribution
    >>> parts = [pld.from_gaussian(0.3), pld.from_laplace(0.5), pld.from_pure("0.2")]
    >>> round(compose_distributions(parts).epsilon(1e-5), 2)
    1.74
    """
    several = tuple(parts)
    return PrivacyLossDistribution(
        _merged(several),
        tolerance=tolerance,
        step=step,
        continuous=any(part.continuous for part in several),
    )


def _merged(
    distributions: Iterable[PrivacyLossDistribution],
) -> tuple[tuple[Part, int], ...]:
    counts: dict[Part, int] = {}
    for distribution in distributions:
        if not isinstance(distribution, PrivacyLossDistribution):
            raise TypeError(
                "every part must be a PrivacyLossDistribution, got "
                f"{type(distribution).__name__}; build it with from_loss or another "
                "from_ method."
            )
        for part, count in distribution.parts:
            counts[part] = counts.get(part, 0) + count
    return tuple(counts.items())
