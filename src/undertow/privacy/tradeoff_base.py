r"""What every trade-off function can do, and the piecewise-linear ones.

A piecewise-linear trade-off function is closed under everything asked of it here:
inverse, tensor product, group, symmetrisation. Every other one is replaced, where no
closed form exists, by a piecewise-linear function that lies nowhere above it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_count, check_non_negative
from undertow.privacy.tradeoff_chain import chained
from undertow.privacy.tradeoff_numeric import (
    Atoms,
    FloatArray,
    atoms_of,
    atoms_of_curve,
    convex_floor,
    product,
    thinned,
)

__all__ = [
    "DEFAULT_KNOTS",
    "PiecewiseLinearTradeOff",
    "TradeOff",
    "is_tradeoff",
    "levels",
]

DEFAULT_KNOTS = 1024
"""Pieces of a trade-off function that has no closed form."""

_TOLERANCE = 1e-12


class TradeOff(ABC):
    """A trade-off function: convex, continuous, non-increasing, at most 1 - alpha.

    A subclass gives its values, its delta curve and its inverse; the rest follows.
    Numbers of pieces are stated by `knots`: where a result has no closed form, it is a
    piecewise-linear function of about that many pieces, never above the exact one.
    """

    @abstractmethod
    def __call__(self, alpha: ArrayLike) -> FloatArray:
        """Return the least type II error at type I error `alpha`, elementwise."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        r"""Return :math:`\sup_\alpha 1 - f(\alpha) - e^\varepsilon\alpha`, rounded up.

        The mechanism is :math:`(\varepsilon, \delta)`-DP with this delta, for every
        `epsilon` of at least 0.
        """

    @abstractmethod
    def inverse(self) -> TradeOff:
        """Return the trade-off function of the pair in the other order."""

    def total_variation(self) -> float:
        r"""Return :math:`\max_\alpha 1 - f(\alpha) - \alpha`, rounded up."""
        return self.delta(0.0)

    def piecewise(self, *, knots: int = DEFAULT_KNOTS) -> PiecewiseLinearTradeOff:
        """Return a piecewise-linear function nowhere above this one, by tangents."""
        other = self.inverse()
        atoms = atoms_of_curve(
            self.delta, other.delta, knots=check_count(knots, "knots", minimum=2)
        )
        return PiecewiseLinearTradeOff.from_atoms(atoms)

    def symmetrised(self, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the greatest symmetric trade-off function below this one.

        The convex hull of the minimum of the function and its inverse; what holds in
        both orders when this one is known in a single order.
        """
        return self.piecewise(knots=knots).symmetrised()

    def tensor(self, other: TradeOff, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the trade-off function of two releases together.

        Exact for piecewise-linear functions as long as `knots` pieces hold the
        result; otherwise below the exact one.
        """
        first, second = self.piecewise(knots=knots), other.piecewise(knots=knots)
        atoms = thinned(product(first.atoms, second.atoms), knots)
        return PiecewiseLinearTradeOff.from_atoms(atoms)

    def power(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the trade-off function of `n` such releases, by repeated squaring."""
        n = check_count(n, "n", minimum=0)
        result: TradeOff | None = None
        square: TradeOff = self
        while n:
            if n % 2:
                result = (
                    square if result is None else result.tensor(square, knots=knots)
                )
            n //= 2
            if n:
                square = square.tensor(square, knots=knots)
        return _no_distinction() if result is None else result

    def group(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        r"""Return the guarantee at distance `n`.

        :math:`1 - (1-f) \circ \dots \circ (1-f)`; exact for a piecewise-linear
        function.
        """
        n = check_count(n, "n", minimum=0)
        if n == 0:
            return _no_distinction()
        return self if n == 1 else self.piecewise(knots=knots).group(n)


class PiecewiseLinearTradeOff(TradeOff):
    """The trade-off function through given corners.

    Parameters
    ----------
    alphas : array_like
        Strictly increasing from 0 to 1.
    betas : array_like
        Non-increasing and convex in `alphas`, at most ``1 - alphas``, ending at 0.

    Examples
    --------
    >>> f = PiecewiseLinearTradeOff([0, 0.25, 1], [1, 0.25, 0])
    >>> float(f(0.125)), round(f.total_variation(), 12)
    (0.625, 0.5)
    """

    def __init__(self, alphas: ArrayLike, betas: ArrayLike) -> None:
        x, y = np.asarray(alphas, dtype=float), np.asarray(betas, dtype=float)
        _check_corners(x, y)
        self._set(
            atoms_of(np.append(0.0, np.diff(x)), np.append(1.0 - y[0], -np.diff(y)))
        )

    @classmethod
    def from_atoms(cls, atoms: Atoms) -> PiecewiseLinearTradeOff:
        """Build the function from its pair of distributions."""
        function = cls.__new__(cls)
        function._set(atoms)
        return function

    def _set(self, atoms: Atoms) -> None:
        self.atoms = atoms
        self.alphas, self.betas = atoms.knots()

    def __call__(self, alpha: ArrayLike) -> FloatArray:
        """Interpolate between the corners."""
        values = np.interp(levels(alpha), self.alphas, self.betas)
        return np.asarray(values, dtype=float)

    def delta(self, epsilon: float) -> float:
        """Return delta at `epsilon`, rounded up."""
        return min(1.0, self.atoms.delta(check_non_negative(epsilon, "epsilon")))

    def inverse(self) -> PiecewiseLinearTradeOff:
        """Return the trade-off function of the pair in the other order."""
        return PiecewiseLinearTradeOff.from_atoms(self.atoms.swapped())

    def piecewise(self, *, knots: int = DEFAULT_KNOTS) -> PiecewiseLinearTradeOff:
        """Return the function itself, with pieces dropped if it has over `knots`."""
        if len(self.atoms) <= check_count(knots, "knots", minimum=2):
            return self
        return PiecewiseLinearTradeOff.from_atoms(thinned(self.atoms, knots))

    def symmetrised(self, *, knots: int = DEFAULT_KNOTS) -> PiecewiseLinearTradeOff:
        """Return the convex hull of the minimum with the inverse, exactly."""
        other = self.inverse()
        return _through(
            np.concatenate([self.alphas, other.alphas]),
            np.concatenate([self.betas, other.betas]),
        )

    def group(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the guarantee at distance `n`, exactly."""
        result: TradeOff = self
        if check_count(n, "n", minimum=0) == 0:
            return _no_distinction()
        for _ in range(n - 1):
            assert isinstance(result, PiecewiseLinearTradeOff)
            atoms = chained(result.atoms, self.atoms)
            result = PiecewiseLinearTradeOff.from_atoms(atoms)
        return result

    def __repr__(self) -> str:
        return f"PiecewiseLinearTradeOff({len(self.alphas)} corners)"


def is_tradeoff(f: TradeOff, grid: ArrayLike) -> bool:
    """Return whether `f` looks like a trade-off function on a grid.

    Checked to 1e-12: values in [0, 1 - alpha], non-increasing, convex. Continuity
    cannot be checked on a grid.

    Examples
    --------
    >>> f = PiecewiseLinearTradeOff([0, 0.25, 1], [1, 0.25, 0])
    >>> is_tradeoff(f, np.linspace(0, 1, 101))
    True
    """
    alpha = np.unique(levels(grid))
    beta = np.asarray(f(alpha), dtype=float)
    slopes = np.diff(beta) / np.diff(alpha)
    bends = np.diff(slopes) * np.minimum(np.diff(alpha)[1:], np.diff(alpha)[:-1])
    return bool(
        np.all(beta >= 0)
        and np.all(beta <= 1.0 - alpha + _TOLERANCE)
        and np.all(np.diff(beta) <= _TOLERANCE)
        and np.all(bends >= -_TOLERANCE)
    )


def levels(alpha: ArrayLike) -> FloatArray:
    """Read type I errors, each in ``[0, 1]``."""
    values = np.asarray(alpha, dtype=float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"alpha must lie in [0, 1], got {values}.")
    return values


def _through(alphas: FloatArray, betas: FloatArray) -> PiecewiseLinearTradeOff:
    """Return the greatest convex function below the points."""
    x, y = convex_floor(alphas, betas)
    steps, drops = np.diff(x), -np.diff(y)
    return PiecewiseLinearTradeOff.from_atoms(
        atoms_of(
            np.concatenate([[0.0], steps, [max(0.0, 1.0 - x[-1])]]),
            np.concatenate([[1.0 - y[0]], np.maximum(drops, 0.0), [0.0]]),
        )
    )


def _check_corners(x: FloatArray, y: FloatArray) -> None:
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError(
            "alphas and betas must be vectors of one length of at least 2, "
            f"got shapes {x.shape} and {y.shape}."
        )
    if x[0] != 0 or x[-1] != 1 or not np.all(np.diff(x) > 0):
        raise ValueError("alphas must increase strictly from 0 to 1.")
    slopes = np.diff(y) / np.diff(x)
    if not (
        y[-1] == 0
        and np.all(slopes <= 0)
        and np.all(np.diff(slopes) >= -_TOLERANCE * (1.0 + np.abs(slopes[1:])))
        and np.all(y <= 1.0 - x + _TOLERANCE)
    ):
        raise ValueError(
            "betas must be non-increasing, convex, at most 1 - alphas and end at 0; "
            "use tradeoff_from_pmfs to build a valid trade-off function."
        )


def _no_distinction() -> PiecewiseLinearTradeOff:
    return PiecewiseLinearTradeOff([0.0, 1.0], [1.0, 0.0])
