r"""Trade-off functions: how hard it is to tell two outputs apart.

For a test between :math:`P` (null) and :math:`Q`, :math:`T(P, Q)(\alpha)` is the least
type II error at type I error :math:`\alpha`. A mechanism is :math:`f`-DP if
:math:`T(M(D), M(D')) \ge f` for neighbours in both orders: a larger function promises
more, and any attack has :math:`\mathrm{TPR} \le 1 - f(\mathrm{FPR})`.

References
----------
.. [1] J. Dong, A. Roth and W. J. Su, *Gaussian Differential Privacy*, Journal of the
   Royal Statistical Society B, 2022.
.. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from undertow._numeric import inflate, nudge_up
from undertow._validate import check_count, check_non_negative, check_probability
from undertow.privacy.gaussian import gdp_delta
from undertow.privacy.tradeoff_attack import (
    attack_epsilon_bound,
    attack_mu_bound,
    refutes,
)
from undertow.privacy.tradeoff_base import (
    DEFAULT_KNOTS,
    PiecewiseLinearTradeOff,
    TradeOff,
    is_tradeoff,
    levels,
)
from undertow.privacy.tradeoff_numeric import FloatArray, atoms_of, binomial_atoms

__all__ = [
    "ApproxTradeOff",
    "GaussianTradeOff",
    "LaplaceTradeOff",
    "PiecewiseLinearTradeOff",
    "PureTradeOff",
    "TradeOff",
    "attack_epsilon_bound",
    "attack_mu_bound",
    "is_tradeoff",
    "refutes",
    "tradeoff_from_pmfs",
]

# Raises values computed with a handful of rounded operations.
_MARGIN = 2.0**-48
_TOLERANCE = 1e-12


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

    def __call__(self, alpha: ArrayLike) -> FloatArray:
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
        excess = inflate((1.0 - self._delta) * share, _MARGIN)
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
        lost = inflate(-math.expm1(n * math.log1p(-self._delta)), _MARGIN)
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

    def __call__(self, alpha: ArrayLike) -> FloatArray:
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

    def __call__(self, alpha: ArrayLike) -> FloatArray:
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
        return min(1.0, inflate(-math.expm1((epsilon - self._mu) / 2.0), _MARGIN))

    def group(self, n: int, *, knots: int = DEFAULT_KNOTS) -> TradeOff:
        """Return the function of `n` times mu."""
        n = check_count(n, "n", minimum=0)
        return LaplaceTradeOff(nudge_up(n * self._mu) if n > 1 else n * self._mu)


def _grown(level: FloatArray, exponent: float) -> FloatArray:
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
    masses = [np.asarray(mass, dtype=float) for mass in (p, q)]
    for name, mass in zip("pq", masses, strict=True):
        if mass.ndim != 1 or not np.all(mass >= 0):
            raise ValueError(f"{name} must be a vector of non-negative numbers.")
        if abs(math.fsum(mass) - 1.0) > _TOLERANCE:
            raise ValueError(f"{name} must sum to 1, got {math.fsum(mass)}.")
    if masses[0].shape != masses[1].shape:
        sizes = [len(mass) for mass in masses]
        raise ValueError(
            f"p and q must have one length, got {sizes[0]} and {sizes[1]}."
        )
    return PiecewiseLinearTradeOff.from_atoms(atoms_of(*masses))
