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
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from undertow.errors import AssumptionError, MismatchError
from undertow.privacy._pld_fft import (
    plan_for_delta,
    plan_for_epsilon,
    smallest_epsilon,
    tilted_law,
)
from undertow.privacy._pld_grid import (
    AtomicPart,
    Atoms,
    Composition,
    FloatArray,
    GaussianPart,
    LaplacePart,
    Part,
    gather,
)
from undertow.privacy.exact import Exact, Number, exact, round_down, round_up
from undertow.privacy.loss import GDP, Approx, Loss, Pure

__all__ = ["PrivacyLossDistribution", "compose_distributions"]

_UNIT = 2.0**-53


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
        value = _parameter(mu, "mu")
        return cls(((GaussianPart(round_up(value)), 1),) if value else ())

    @classmethod
    def from_laplace(cls, epsilon: Number) -> Self:
        """Return the PLD of Laplace noise; `epsilon` is its shift over its scale."""
        value = _parameter(epsilon, "epsilon")
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
        value = _parameter(epsilon, "epsilon")
        infinity = Fraction(exact(delta, "delta", at_most=1))
        if value == 0 and infinity == 0:
            return cls()
        top, finite = round_up(value), round_up(1 - infinity)
        tail = math.exp(-top)
        masses = np.array([tail, 1.0]) * (finite / (1 + tail))
        atoms = Atoms(np.array([-top, top]), masses, infinity, value)
        key = ("approx", value, infinity)
        return cls(((AtomicPart(key, atoms, atoms, symmetric=True), 1),))

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
        value, shift = _parameter(epsilon, "epsilon"), _count(sensitivity)
        if value == 0 or shift == 0:
            return cls()
        x = np.arange(shift + 1, dtype=np.float64)
        top = round_up(value)
        rate = top / shift
        masses = np.exp(-rate * x) / (1 + math.exp(-rate))
        masses[1:-1] *= -math.expm1(-rate)
        losses = top * (1 - 2 * x / shift)
        losses[1:-1] += 8 * _UNIT * top  # the two ends are exact
        atoms = Atoms(losses, masses, Fraction(0), value)
        key = ("discrete laplace", value, shift)
        return cls(((AtomicPart(key, atoms, atoms, symmetric=True), 1),))

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
        P, Q = _law(p, "p"), _law(q, "q")
        if P.shape != Q.shape:
            raise MismatchError(
                f"p and q must have one shape, got {P.shape} and {Q.shape}."
            )
        if np.array_equal(P, Q):
            return cls()
        forward, backward = _ratio_atoms(P, Q), _ratio_atoms(Q, P)
        part = AtomicPart(
            ("pmfs", P.tobytes(), Q.tobytes()),
            forward,
            backward,
            symmetric=_same_atoms(forward, backward),
        )
        return cls(((part, 1),))

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
        a = np.asarray(alpha, dtype=np.float64)
        b = np.asarray(beta, dtype=np.float64)
        _check_tradeoff(a, b)
        # Type I error is spent under P: a segment is an outcome of P-mass d(alpha)
        # and Q-mass -d(beta); what f(0) lacks to 1 is Q-mass where P has none.
        p = np.concatenate([[0.0], np.diff(a)])
        q = np.concatenate([[1.0 - b[0]], -np.diff(b)])
        return cls.from_pmfs(p, np.maximum(q, 0.0))

    @classmethod
    def from_loss(cls, loss: Loss) -> Self:
        """Return the PLD that dominates every mechanism of the given loss.

        Raises
        ------
        AssumptionError
            If the notion has no dominating pair, as zero-concentrated DP.
        """
        if isinstance(loss, Pure):
            return cls.from_pure(*loss.exact_parameters())
        if isinstance(loss, Approx):
            return cls.from_approx(*loss.exact_parameters())
        if isinstance(loss, GDP):
            return cls.from_gaussian(loss.mu)
        raise AssumptionError(
            f"loss must be pure, approx or gdp, got {loss.notion}, which has no "
            "dominating pair; give the mechanism itself, e.g. from_gaussian."
        )

    @property
    def count(self) -> int:
        """How many mechanisms are composed."""
        return sum(count for _, count in self.parts)

    @property
    def max_loss(self) -> float:
        """The epsilon at which delta falls to the mass of infinite loss."""
        return max(round_up(_largest_loss(side)) for side in self._directions())

    def compose(self, *others: PrivacyLossDistribution) -> Self:
        """Return the PLD of this and the others together. O(parts)."""
        return replace(self, parts=_merged((self, *others)))

    def self_compose(self, n: int) -> Self:
        """Return the PLD of `n` runs. O(parts)."""
        times = _count(n)
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
        return max(self._delta(side, value) for side in self._directions())

    def epsilon(self, delta: Number) -> float:
        r"""Return an upper bound of the least epsilon at `delta`.

        Infinite if `delta` is below the mass of infinite loss.
        """
        value = Fraction(exact(delta, "delta", at_most=1))
        return max(self._epsilon(side, value) for side in self._directions())

    def loss(self, delta: Number) -> Approx:
        r"""Return the :math:`(\varepsilon, \delta)` loss at the given delta."""
        return Approx(self.epsilon(delta), delta)

    def _directions(self) -> Iterator[Composition]:
        yield gather(self.parts, reverse=False)
        if any(isinstance(p, AtomicPart) and not p.symmetric for p, _ in self.parts):
            yield gather(self.parts, reverse=True)

    def _delta(self, side: Composition, epsilon: Exact) -> float:
        if side.infinity >= 1 or epsilon >= _largest_loss(side):
            return round_up(side.infinity)
        value = round_down(epsilon)
        plan = plan_for_epsilon(side, value, tolerance=self.tolerance, step=self.step)
        return tilted_law(side, plan).delta(value)

    def _epsilon(self, side: Composition, delta: Fraction) -> float:
        most = round_up(_largest_loss(side))
        if delta >= 1 or most == 0:
            return 0.0 if delta >= side.infinity else math.inf
        if delta <= side.infinity:
            return most if delta == side.infinity else math.inf
        target = round_down(delta)
        plan, guess = plan_for_delta(
            side, target, tolerance=self.tolerance, step=self.step
        )
        law = tilted_law(side, plan)
        return smallest_epsilon(law, target, guess=guess, most=most)


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
    return PrivacyLossDistribution(_merged(parts), tolerance=tolerance, step=step)


def _merged(
    distributions: Iterable[PrivacyLossDistribution],
) -> tuple[tuple[Part, int], ...]:
    counts: dict[Part, int] = {}
    for distribution in distributions:
        for part, count in distribution.parts:
            counts[part] = counts.get(part, 0) + count
    return tuple(counts.items())


def _largest_loss(side: Composition) -> Exact:
    return math.inf if side.mu or side.infinity >= 1 else side.largest


def _parameter(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number == math.inf:
        raise ValueError(
            f"{name} must be finite, got inf; an unlimited loss has delta 1 at every "
            "epsilon, which is from_approx(0, 1)."
        )
    return Fraction(number)


def _count(n: int) -> int:
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"a number of times must be non-negative, got {count}.")
    return count


def _law(weights: ArrayLike, name: str) -> FloatArray:
    law = np.array(weights, dtype=np.float64)
    if law.ndim != 1 or not law.size or not np.all(np.isfinite(law) & (law >= 0)):
        raise ValueError(
            f"{name} must be a non-empty vector of finite non-negative weights, "
            f"got an array of shape {law.shape}."
        )
    total = math.fsum(law)
    if abs(total - 1) > 1e-9:
        raise ValueError(f"{name} must sum to 1 within 1e-9, got {total}.")
    return law / total


def _ratio_atoms(P: FloatArray, Q: FloatArray) -> Atoms:
    both = (P > 0) & (Q > 0)
    log_p, log_q = np.log(P[both]), np.log(Q[both])
    # Rounded up by more than the logarithms can err.
    losses = log_p - log_q + 8 * _UNIT * (1 + np.abs(log_p) + np.abs(log_q))
    infinity = Fraction(math.fsum(P[Q == 0]) * (1 + 4 * _UNIT))
    largest = Fraction(float(losses.max())) if losses.size else Fraction(0)
    return Atoms(losses, P[both], min(infinity, Fraction(1)), largest)


def _same_atoms(left: Atoms, right: Atoms) -> bool:
    def ordered(atoms: Atoms) -> FloatArray:
        order = np.lexsort((atoms.masses, atoms.losses))
        return np.stack([atoms.losses[order], atoms.masses[order]])

    same_shape = left.losses.shape == right.losses.shape
    return (
        same_shape
        and left.infinity == right.infinity
        and np.array_equal(ordered(left), ordered(right))
    )


def _check_tradeoff(a: FloatArray, b: FloatArray) -> None:
    if a.ndim != 1 or a.shape != b.shape or a.size < 2:
        raise MismatchError(
            "alpha and beta must be vectors of one length of at least 2, "
            f"got shapes {a.shape} and {b.shape}."
        )
    faults = (
        (a[0] == 0 and a[-1] == 1 and bool(np.all(np.diff(a) > 0)), "alpha increasing"),
        (b[-1] == 0 and b[0] <= 1 and bool(np.all(np.diff(b) <= 0)), "beta decreasing"),
        (bool(np.all(np.diff(np.diff(b) / np.diff(a)) >= -1e-12)), "a convex curve"),
        (bool(np.all(b <= 1 - a + 1e-12)), "a curve below 1 - alpha"),
    )
    missing = [wanted for holds, wanted in faults if not holds]
    if missing:
        raise AssumptionError(
            "alpha and beta must be the corners of a trade-off function from alpha = 0 "
            f"to (1, 0): not {', not '.join(missing)}; take the convex hull first."
        )
