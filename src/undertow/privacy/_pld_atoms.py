"""Discrete pairs of laws as the atoms of a privacy-loss distribution."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from undertow.errors import AssumptionError, MismatchError
from undertow.privacy._pld_grid import AtomicPart, Atoms, FloatArray
from undertow.privacy.exact import Number, exact, format_up, round_up

__all__ = [
    "approx_part",
    "discrete_laplace_part",
    "finite_parameter",
    "pmf_part",
    "tradeoff_weights",
]

_UNIT = 2.0**-53
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
    losses[1:-1] += 8 * _UNIT * top  # the two ends are exact
    atoms = Atoms(losses, masses, Fraction(0), epsilon)
    key = ("discrete laplace", epsilon, shift)
    return AtomicPart(key, atoms, atoms, symmetric=True)


def pmf_part(p: ArrayLike, q: ArrayLike) -> AtomicPart | None:
    """Return a discrete pair in both orders, or None for two equal laws."""
    P, Q = _law(p, "p"), _law(q, "q")
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


def tradeoff_weights(
    alpha: ArrayLike, beta: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the pair of laws whose trade-off function has the given corners."""
    a = np.asarray(alpha, dtype=np.float64)
    b = np.asarray(beta, dtype=np.float64)
    _check_tradeoff(a, b)
    # Type I error is spent under P: a segment is an outcome of P-mass d(alpha)
    # and Q-mass -d(beta); what f(0) lacks to 1 is Q-mass where P has none.
    p = np.concatenate([[0.0], np.diff(a)])
    q = np.concatenate([[1.0 - b[0]], -np.diff(b)])
    return p, np.maximum(q, 0.0)


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


def _mass_without(weights: ArrayLike, other: FloatArray) -> Fraction:
    """Return, exactly, the share of the weights where another law has no mass."""
    exact_weights = [Fraction(w) for w in np.asarray(weights, np.float64).tolist()]
    alone = (w for w, x in zip(exact_weights, other, strict=True) if x == 0)
    return Fraction(sum(alone)) / sum(exact_weights)


def _ratio_atoms(P: FloatArray, Q: FloatArray, infinity: Fraction) -> Atoms:
    both = (P > 0) & (Q > 0)
    log_p, log_q = np.log(P[both]), np.log(Q[both])
    # Rounded up by more than the logarithms can err.
    losses = log_p - log_q + 8 * _UNIT * (1 + np.abs(log_p) + np.abs(log_q))
    losses[P[both] == Q[both]] = 0.0
    largest = Fraction(float(losses.max())) if losses.size else Fraction(0)
    return Atoms(losses, P[both], infinity, largest)


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
