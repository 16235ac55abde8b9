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
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_count
from undertow.errors import AssumptionError, MismatchError, SearchError
from undertow.numeric.array import Floats, read_law
from undertow.numeric.exact import Exact, Number, exact, format_up, round_down, round_up
from undertow.numeric.rounding import UNIT, keep_exact, log_down
from undertow.privacy._pld_fourier import (
    AtomicPart,
    Atoms,
    Composition,
    GaussianPart,
    LaplacePart,
    Part,
    gather,
    plan_for_delta,
    plan_for_epsilon,
    smallest_epsilon,
    tilted_law,
)
from undertow.privacy.gaussian import gdp_delta, gdp_epsilon
from undertow.privacy.loss import GDP, Approx, Loss, Pure
from undertow.privacy.tradeoff import check_corners

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


# Certified delta and epsilon of one direction of a composition.


def largest_loss(side: Composition) -> Exact:
    """Return the epsilon at which delta falls to the mass of infinite loss."""
    return math.inf if side.mu or side.infinity >= 1 else side.largest


def certified_delta(
    side: Composition, epsilon: Exact, *, tolerance: float, step: float | None
) -> float:
    """Return an upper bound of delta at `epsilon`."""
    if side.infinity >= 1 or epsilon >= largest_loss(side):
        return round_up(side.infinity)
    value = round_down(epsilon)
    if not side.on_grid:
        return gdp_delta(side.mu, value)
    plan = plan_for_epsilon(side, value, tolerance=tolerance, step=step)
    return tilted_law(side, plan).delta(value)


def certified_epsilon(
    side: Composition, delta: Fraction, *, tolerance: float, step: float | None
) -> float:
    """Return an epsilon whose certified delta is at most `delta`."""
    most = max(round_up(largest_loss(side)), 0.0)
    if delta >= 1 or most == 0:
        return 0.0 if delta >= side.infinity else math.inf
    if delta <= side.infinity:
        return most if delta == side.infinity else math.inf
    if not side.on_grid:
        return gdp_epsilon(side.mu, log_delta=log_down(delta))
    target = round_down(delta)
    if target < sys.float_info.min:  # the least delta a law certifies
        return _beyond_floats(delta, most)
    plan, guess = plan_for_delta(side, target, tolerance=tolerance, step=step)
    law = tilted_law(side, plan)
    return smallest_epsilon(law, target, guess=guess, most=most)


def _beyond_floats(delta: Fraction, most: float) -> float:
    if most == math.inf:
        raise SearchError(
            f"delta must be at least {sys.float_info.min:.3g} where Gaussian noise is "
            f"composed with other, got {format_up(delta, 3)}; give a larger delta."
        )
    return most


# Discrete pairs of laws as the atoms of a privacy-loss distribution.

# Beyond this the cumulants of a loss would leave the range of floats.
_LARGEST_PARAMETER = 1e100


def finite_parameter(value: Number, name: str) -> Fraction:
    """Read a parameter of a part exactly; refuse what no law could carry."""
    number = exact(value, name)
    if number == math.inf:
        raise ValueError(
            f"{name} must be finite, got inf; an unlimited loss has delta 1 at every "
            "epsilon, which is from_approx(0, 1)."
        )
    if number > _LARGEST_PARAMETER:
        raise ValueError(
            f"{name} must be at most {_LARGEST_PARAMETER:.0e}, got "
            f"{format_up(number, 3)}; use from_approx(0, 1), which promises nothing."
        )
    return Fraction(number)


def approx_part(epsilon: Fraction, delta: Fraction) -> AtomicPart:
    """Return randomized response that gives itself away with probability `delta`."""
    top, finite = round_up(epsilon), round_up(1 - delta)
    tail = math.exp(-top)
    masses = np.array([tail, 1.0]) * (finite / (1 + tail))
    atoms = Atoms(np.array([-top, top]), masses, delta, epsilon)
    return AtomicPart(("approx", epsilon, delta), atoms, atoms, symmetric=True)


def discrete_laplace_part(epsilon: Fraction, shift: int) -> AtomicPart:
    """Return two-sided geometric noise whose `shift` costs `epsilon`. O(shift)."""
    x = np.arange(shift + 1, dtype=np.float64)
    top = round_up(epsilon)
    rate = top / shift
    masses = np.exp(-rate * x) / (1 + math.exp(-rate))
    masses[1:-1] *= -math.expm1(-rate)
    losses = top * (1 - 2 * x / shift)
    losses[1:-1] += 8 * UNIT * top  # the two ends are exact
    atoms = Atoms(losses, masses, Fraction(0), epsilon)
    key = ("discrete laplace", epsilon, shift)
    return AtomicPart(key, atoms, atoms, symmetric=True)


def pmf_part(p: ArrayLike, q: ArrayLike) -> AtomicPart | None:
    """Return a discrete pair in both orders, or None for two equal laws."""
    P, Q = (
        read_law(np.asarray(law, np.float64), name, tolerance=1e-9)
        for law, name in ((p, "p"), (q, "q"))
    )
    if P.shape != Q.shape:
        raise MismatchError(
            f"p and q must have one shape, got {P.shape} and {Q.shape}."
        )
    if np.array_equal(P, Q):
        return None
    forward = _ratio_atoms(P, Q, _mass_without(p, Q))
    backward = _ratio_atoms(Q, P, _mass_without(q, P))
    return AtomicPart(
        ("pmfs", P.tobytes(), Q.tobytes()),
        forward,
        backward,
        symmetric=_same_atoms(forward, backward),
    )


def tradeoff_weights(alpha: ArrayLike, beta: ArrayLike) -> tuple[Floats, Floats]:
    """Return the pair of laws whose trade-off function has the given corners."""
    a = np.asarray(alpha, dtype=np.float64)
    b = np.asarray(beta, dtype=np.float64)
    check_corners(a, b)
    # Type I error is spent under P: a segment is an outcome of P-mass d(alpha)
    # and Q-mass -d(beta); what f(0) lacks to 1 is Q-mass where P has none.
    p = np.concatenate([[0.0], np.diff(a)])
    q = np.concatenate([[1.0 - b[0]], -np.diff(b)])
    return p, np.maximum(q, 0.0)


def _mass_without(weights: ArrayLike, other: Floats) -> Fraction:
    """Return, exactly, the share of the weights where another law has no mass."""
    exact_weights = [Fraction(w) for w in np.asarray(weights, np.float64).tolist()]
    alone = (w for w, x in zip(exact_weights, other, strict=True) if x == 0)
    return Fraction(sum(alone)) / sum(exact_weights)


def _ratio_atoms(P: Floats, Q: Floats, infinity: Fraction) -> Atoms:
    both = (P > 0) & (Q > 0)
    log_p, log_q = np.log(P[both]), np.log(Q[both])
    # Rounded up by more than the logarithms can err.
    losses = log_p - log_q + 8 * UNIT * (1 + np.abs(log_p) + np.abs(log_q))
    losses[P[both] == Q[both]] = 0.0
    largest = Fraction(float(losses.max())) if losses.size else Fraction(0)
    return Atoms(losses, P[both], infinity, largest)


def _same_atoms(left: Atoms, right: Atoms) -> bool:
    def ordered(atoms: Atoms) -> Floats:
        order = np.lexsort((atoms.masses, atoms.losses))
        return np.stack([atoms.losses[order], atoms.masses[order]])

    same_shape = left.losses.shape == right.losses.shape
    return (
        same_shape
        and left.infinity == right.infinity
        and np.array_equal(ordered(left), ordered(right))
    )
