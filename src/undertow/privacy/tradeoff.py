r"""Trade-off functions: how hard it is to tell two outputs apart.

For a test between :math:`P` (null) and :math:`Q`, :math:`T(P, Q)(\alpha)` is the least
type II error at type I error :math:`\alpha`. A mechanism is :math:`f`-DP if
:math:`T(M(D), M(D')) \ge f` for neighbours in both orders: a larger function promises
more, and any attack has :math:`\mathrm{TPR} \le 1 - f(\mathrm{FPR})`.

A piecewise-linear trade-off function is closed under everything asked of it here:
inverse, tensor product, group, symmetrisation. Every other one is replaced, where no
closed form exists, by a piecewise-linear function that lies nowhere above it.

References
----------
.. [1] J. Dong, A. Roth and W. J. Su, *Gaussian Differential Privacy*, Journal of the
   Royal Statistical Society B, 2022.
.. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from undertow._validate import check_count, check_non_negative, check_probability
from undertow.errors import AssumptionError, MismatchError
from undertow.numeric.array import Floats, read_law
from undertow.numeric.rounding import HANDFUL, inflate, nudge_down, nudge_up
from undertow.privacy._finite_pair import (
    Atoms,
    atoms_of,
    atoms_of_curve,
    binomial_atoms,
    chained,
    convex_floor,
    product,
    thinned,
)
from undertow.privacy.gaussian import gdp_delta

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
    def __call__(self, alpha: ArrayLike) -> Floats:
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
        check_corners(x, y)
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

    def __call__(self, alpha: ArrayLike) -> Floats:
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


def levels(alpha: ArrayLike) -> Floats:
    """Read type I errors, each in ``[0, 1]``."""
    values = np.asarray(alpha, dtype=float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError(f"alpha must lie in [0, 1], got {values}.")
    return values


def _through(alphas: Floats, betas: Floats) -> PiecewiseLinearTradeOff:
    """Return the greatest convex function below the points."""
    x, y = convex_floor(alphas, betas)
    steps, drops = np.diff(x), -np.diff(y)
    return PiecewiseLinearTradeOff.from_atoms(
        atoms_of(
            np.concatenate([[0.0], steps, [max(0.0, 1.0 - x[-1])]]),
            np.concatenate([[1.0 - y[0]], np.maximum(drops, 0.0), [0.0]]),
        )
    )


def check_corners(x: Floats, y: Floats) -> None:
    """Refuse points that are not the corners of a trade-off function.

    Slopes may bend the wrong way by a share of 1e-12, and values pass ``1 - alpha`` by
    1e-12: the pieces in the order of their slopes lie below such a function.

    Raises
    ------
    MismatchError
        If the coordinates are not two vectors of one length.
    AssumptionError
        If they are no corners; the sentence says of what.
    """
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise MismatchError(
            "alpha and beta must be vectors of one length of at least 2, "
            f"got shapes {x.shape} and {y.shape}."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.diff(y) / np.diff(x)
        bends = np.diff(slopes) >= -_TOLERANCE * (1.0 + np.abs(slopes[1:]))
    wanted = {
        "alpha increasing": x[0] == 0 and x[-1] == 1 and np.all(np.diff(x) > 0),
        "beta decreasing": y[-1] == 0 and np.all(np.diff(y) <= 0),
        "a convex curve": np.all(bends),
        "a curve below 1 - alpha": np.all(y <= 1.0 - x + _TOLERANCE),
    }
    missing = [name for name, holds in wanted.items() if not holds]
    if missing:
        raise AssumptionError(
            "alpha and beta must be the corners of a trade-off function from alpha = 0 "
            f"to (1, 0): not {', not '.join(missing)}; take the convex hull first, or "
            "use tradeoff_from_pmfs."
        )


def _no_distinction() -> PiecewiseLinearTradeOff:
    return PiecewiseLinearTradeOff([0.0, 1.0], [1.0, 0.0])


class _SymmetricTradeOff(TradeOff):
    """A trade-off function that is its own inverse, named by its parameters."""

    def inverse(self) -> TradeOff:
        """Return the function itself: it is symmetric."""
        return self

    def symmetrised(self, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the function itself: it is symmetric."""
        return self

    @abstractmethod
    def _parameters(self) -> dict[str, float]: ...

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, _SymmetricTradeOff)
        return self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self._parameters().values())))

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v}" for k, v in self._parameters().items())
        return f"{type(self).__name__}({inside})"


class ApproxTradeOff(_SymmetricTradeOff):
    r"""The trade-off function of :math:`(\varepsilon, \delta)`-DP.

    .. math:: f(\alpha) = \max\{0,\; 1 - \delta - e^\varepsilon\alpha,\;
              e^{-\varepsilon}(1 - \delta - \alpha)\}

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`; an infinite one promises nothing, f is 0.
    delta : float
        In :math:`[0, 1]`.

    Notes
    -----
    Equation 2.4 of Guerra-Balboa (2026). At 0 the function is :math:`1 - \delta`.

    Examples
    --------
    >>> ApproxTradeOff(1.0, 0.1)([0.0, 0.5]).round(12).tolist()
    [0.9, 0.147151776469]
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        self._epsilon = check_non_negative(epsilon, "epsilon")
        self._delta = check_probability(delta, "delta")

    def _parameters(self) -> dict[str, float]:
        return {"epsilon": self._epsilon, "delta": self._delta}

    def __call__(self, alpha: ArrayLike) -> Floats:
        """Return the larger of the two lines and 0."""
        level = levels(alpha)
        if self._epsilon == math.inf:
            return np.zeros_like(level)
        kept = 1.0 - self._delta
        steep = kept - _grown(level, self._epsilon)
        flat = math.exp(-self._epsilon) * (kept - level)
        return np.maximum(0.0, np.maximum(steep, flat))

    def delta(self, epsilon: float) -> float:
        """Return delta at `epsilon`, rounded up."""
        epsilon = check_non_negative(epsilon, "epsilon")
        if self._epsilon == math.inf:
            return 1.0
        if epsilon >= self._epsilon:
            return self._delta
        # delta + (1 - delta)(e^a - e^b)/(1 + e^a), divided through by e^a.
        share = -math.expm1(epsilon - self._epsilon) / (1.0 + math.exp(-self._epsilon))
        excess = inflate((1.0 - self._delta) * share, HANDFUL)
        return min(1.0, nudge_up(self._delta + excess))

    def piecewise(self, *, knots: int = DEFAULT_KNOTS) -> PiecewiseLinearTradeOff:
        """Return the function by its corners, exactly."""
        share = 1.0 / (1.0 + math.exp(-self._epsilon))
        likely = (1.0 - self._delta) * share
        unlikely = (1.0 - self._delta) * (math.exp(-self._epsilon) * share)
        lost = self._delta
        if self._epsilon == math.inf:
            likely, unlikely, lost = 0.0, 0.0, 1.0
        p = np.array([0.0, unlikely, likely, lost])
        return PiecewiseLinearTradeOff.from_atoms(atoms_of(p, p[::-1]))

    def power(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the function of `n` releases, exactly: the pair is binomial."""
        n = check_count(n, "n", minimum=0)
        if n == 0:
            return PureTradeOff(0.0)
        if n == 1 or self._epsilon == math.inf or self._delta == 1:
            return self
        lost = inflate(-math.expm1(n * math.log1p(-self._delta)), HANDFUL)
        if self._epsilon == 0:
            return ApproxTradeOff(0.0, min(1.0, lost))
        atoms = binomial_atoms(n, epsilon=self._epsilon, lost=lost)
        return PiecewiseLinearTradeOff.from_atoms(atoms)


class PureTradeOff(ApproxTradeOff):
    r"""The trade-off function of :math:`\varepsilon`-DP.

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`; at 0 the function is :math:`1 - \alpha`.

    Examples
    --------
    >>> float(PureTradeOff(0.0)(0.25))
    0.75
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(epsilon, 0.0)

    def _parameters(self) -> dict[str, float]:
        return {"epsilon": self._epsilon}


class GaussianTradeOff(_SymmetricTradeOff):
    r"""The trade-off function of :math:`\mu`-GDP.

    .. math:: G_\mu(\alpha) = \Phi(\Phi^{-1}(1 - \alpha) - \mu)

    Parameters
    ----------
    mu : float
        In :math:`[0, \infty]`; by convention :math:`G_\infty = 0`, at 0 too.

    Notes
    -----
    Definition 4.13 of Guerra-Balboa (2026). Tensor products and groups are closed:
    :math:`G_\mu \otimes G_\nu = G_{\sqrt{\mu^2 + \nu^2}}`, and shifts add over a chain.

    Examples
    --------
    >>> round(float(GaussianTradeOff(1.0)(0.1)), 12)
    0.610856308355
    """

    def __init__(self, mu: float) -> None:
        self._mu = check_non_negative(mu, "mu")

    def _parameters(self) -> dict[str, float]:
        return {"mu": self._mu}

    def __call__(self, alpha: ArrayLike) -> Floats:
        """Return the type II error of the likelihood-ratio test."""
        level = levels(alpha)
        if self._mu == math.inf:
            return np.zeros_like(level)
        if self._mu == 0:
            return 1.0 - level
        return np.asarray(ndtr(-ndtri(level) - self._mu), dtype=float)

    def delta(self, epsilon: float) -> float:
        """Return delta at `epsilon`, rounded up."""
        return gdp_delta(self._mu, epsilon)

    def tensor(self, other: TradeOff, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the tensor product; closed for two Gaussian functions."""
        if isinstance(other, GaussianTradeOff):
            return GaussianTradeOff(nudge_up(math.hypot(self._mu, other._mu)))
        return super().tensor(other, knots=knots)

    def power(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the function of mu times the root of `n`."""
        n = check_count(n, "n", minimum=0)
        return GaussianTradeOff(
            nudge_up(self._mu * math.sqrt(n), 2) if n > 1 else n * self._mu
        )

    def group(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the function of `n` times mu."""
        n = check_count(n, "n", minimum=0)
        return GaussianTradeOff(nudge_up(n * self._mu) if n > 1 else n * self._mu)


class LaplaceTradeOff(_SymmetricTradeOff):
    r"""The trade-off function of two Laplace laws of scale 1, shifted by `mu`.

    Parameters
    ----------
    mu : float
        Shift over scale, in :math:`[0, \infty]`; an infinite one gives 0.

    Notes
    -----
    With :math:`F` the distribution function, :math:`f(\alpha) =
    F(F^{-1}(1-\alpha) - \mu)` (the law is log-concave), so shifts add over a chain.
    Better than :math:`\mu`-DP alone between :math:`e^{-\mu}/2` and one half.

    Examples
    --------
    >>> float(LaplaceTradeOff(1.0)(0.5)) == 0.5 * math.exp(-1.0)
    True
    """

    def __init__(self, mu: float) -> None:
        self._mu = check_non_negative(mu, "mu")

    def _parameters(self) -> dict[str, float]:
        return {"mu": self._mu}

    def __call__(self, alpha: ArrayLike) -> Floats:
        """Return the type II error: two lines and a hyperbola between them."""
        level = levels(alpha)
        if self._mu == math.inf:
            return np.zeros_like(level)
        decay = math.exp(-self._mu)
        steep = 1.0 - _grown(level, self._mu)
        with np.errstate(divide="ignore", over="ignore"):
            middle = decay / (4.0 * level)
        outer = np.where(level > 0.5, decay * (1.0 - level), middle)
        return np.asarray(np.where(2.0 * level < decay, steep, outer), dtype=float)

    def delta(self, epsilon: float) -> float:
        """Return delta at `epsilon`, rounded up."""
        epsilon = check_non_negative(epsilon, "epsilon")
        if self._mu == math.inf:
            return 1.0
        if epsilon >= self._mu:
            return 0.0
        return min(1.0, inflate(-math.expm1((epsilon - self._mu) / 2.0), HANDFUL))

    def group(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the function of `n` times mu."""
        n = check_count(n, "n", minimum=0)
        return LaplaceTradeOff(nudge_up(n * self._mu) if n > 1 else n * self._mu)


def _grown(level: Floats, exponent: float) -> Floats:
    """Return level times e^exponent; in two halves, which overflow only past 1."""
    half = math.exp(min(exponent / 2.0, 709.0))
    with np.errstate(over="ignore"):
        return level * half * half


def tradeoff_from_pmfs(p: ArrayLike, q: ArrayLike) -> PiecewiseLinearTradeOff:
    """Return the trade-off function of two distributions on finitely many outputs.

    Parameters
    ----------
    p, q : array_like
        Probabilities of the outputs under the null and the alternative.

    Returns
    -------
    PiecewiseLinearTradeOff
        Mass of `q` where `p` is 0 lowers its value at 0.

    Notes
    -----
    Neyman-Pearson: reject the outputs in descending order of q/p, randomising within
    ties.

    Examples
    --------
    >>> tradeoff_from_pmfs([0.25, 0.75], [0.75, 0.25])([0.125, 0.25]).tolist()
    [0.625, 0.25]
    """
    masses = [
        read_law(
            np.asarray(mass, np.float64), name, tolerance=_TOLERANCE, normalised=False
        )
        for name, mass in (("p", p), ("q", q))
    ]
    if masses[0].shape != masses[1].shape:
        sizes = [len(mass) for mass in masses]
        raise ValueError(
            f"p and q must have one length, got {sizes[0]} and {sizes[1]}."
        )
    return PiecewiseLinearTradeOff.from_atoms(atoms_of(*masses))


# Lowers bounds read from an attack, by several times their rounding errors.
_SLACK = 2.0**-47


def refutes(f: TradeOff, *, tpr: float, fpr: float) -> bool:
    """Return whether an attack with these exact rates disproves `f`-DP.

    Parameters
    ----------
    f : TradeOff
        The claim.
    tpr, fpr : float
        True and false positive rate of the attack; population values, so that sampled
        ones must first be replaced by confidence limits.

    Notes
    -----
    Any test has TPR at most 1 - f(FPR); an excess below 1e-12 is not counted.

    Examples
    --------
    >>> from undertow.privacy.tradeoff import GaussianTradeOff
    >>> refutes(GaussianTradeOff(1.0), tpr=0.5, fpr=0.1)
    True
    """
    tpr, fpr = check_probability(tpr, "tpr"), check_probability(fpr, "fpr")
    return tpr > 1.0 - float(f(fpr)) + _TOLERANCE


def attack_epsilon_bound(*, tpr: float, fpr: float, delta: float = 0.0) -> float:
    r"""Return the least epsilon compatible with an attack, rounded down.

    Notes
    -----
    :math:`\varepsilon \ge \ln((\mathrm{TPR}-\delta)/\mathrm{FPR})`, and the same for
    the complementary test, :math:`\ln((1-\mathrm{FPR}-\delta)/(1-\mathrm{TPR}))`.

    Examples
    --------
    >>> round(attack_epsilon_bound(tpr=0.5, fpr=0.1), 12)
    1.609437912434
    """
    tpr, fpr = check_probability(tpr, "tpr"), check_probability(fpr, "fpr")
    delta = check_probability(delta, "delta")
    kept = math.fsum((1.0, -fpr, -delta))  # rounded once, however small
    return max(_log_ratio(tpr - delta, fpr), _log_ratio(kept, 1.0 - tpr))


def attack_mu_bound(*, tpr: float, fpr: float) -> float:
    r"""Return the least mu compatible with an attack, rounded down.

    Notes
    -----
    :math:`\mu \ge \Phi^{-1}(\mathrm{TPR}) - \Phi^{-1}(\mathrm{FPR})`.

    Examples
    --------
    >>> round(attack_mu_bound(tpr=0.5, fpr=0.1), 12)
    1.281551565545
    """
    tpr, fpr = check_probability(tpr, "tpr"), check_probability(fpr, "fpr")
    if tpr <= fpr:
        return 0.0
    upper, lower = float(ndtri(tpr)), float(ndtri(fpr))
    slack = _SLACK * (1.0 + abs(upper) + abs(lower))
    if math.isinf(slack):
        return math.inf
    return max(0.0, upper - lower - slack)


def _log_ratio(numerator: float, denominator: float) -> float:
    if numerator <= denominator:
        return 0.0
    if denominator == 0:
        return math.inf
    return max(0.0, nudge_down(math.log(numerator / denominator) - _SLACK))
