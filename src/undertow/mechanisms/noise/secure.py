"""The secure source: words the operating system seeds, exact laws, no seed of ours.

The same noise through OpenDP's samplers is for those who trust those.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from undertow.errors import UndertowError
from undertow.mechanisms.noise._inversion import (
    ExpCoin,
    Law,
    RationalCoin,
    compile_table,
    gaussian_stairs,
    laplace_stairs,
    resolve,
    sample_outcomes,
    sample_stairs,
)
from undertow.mechanisms.noise.bits import BitSource, SystemBits, uniform_below
from undertow.mechanisms.noise.draw import (
    Draw,
    NoiseSource,
    read_positive,
    read_probability,
    read_size,
)
from undertow.numeric.exact import Number, exact, round_up, sqrt_up

# Fewer tosses than this are settled bit by bit: a table would cost more, and would stay
# in the cache although the coin of a choice depends on private scores.
_FEW = 64


class SecureSource:
    """Exact integer noise from operating-system entropy; the source for releases.

    It takes no seed and keeps no state. Scales are read as the decimal their author
    wrote and every draw has exactly the stated law, given that the bits of
    :func:`os.urandom` are independent and uniform, and in large draws those of the
    generator of OpenSSL that the operating system seeds (:func:`ssl.RAND_bytes`).

    Notes
    -----
    The laws are those of [1]_; the samplers are our own and are proved on the page
    *Secure noise*. Checked: every argument. Not protected: the time a draw takes and
    the memory it leaves behind.

    References
    ----------
    .. [1] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential
       Privacy*, NeurIPS, 2020.

    Examples
    --------
    >>> draw = SecureSource().laplace("3.7", 1000)
    >>> draw.simulated, draw.values.shape, draw.values.dtype.kind
    (False, (1000,), 'i')
    """

    __slots__ = ()
    name = "secure"
    simulated = False

    @property
    def bits(self) -> BitSource:
        """The words that samplers of many bits read."""
        return SystemBits()

    def laplace(self, scale: Number, size: int) -> Draw:
        r"""Draw integers from the discrete Laplace law.

        .. math:: \Pr[k] \propto e^{-|k|/s}

        Parameters
        ----------
        scale : int, float, str, Decimal or Fraction
            The s; positive and finite.
        size : int
            Number of draws.
        """
        stairs, count = laplace_stairs(read_positive(scale, "scale")), read_size(size)
        return self._draw(sample_stairs(stairs, count, bits=SystemBits()))

    def gaussian(self, variance: Number, size: int) -> Draw:
        r"""Draw integers from the discrete Gaussian law.

        .. math:: \Pr[k] \propto e^{-k^2/(2\sigma^2)}

        Parameters
        ----------
        variance : int, float, str, Decimal or Fraction
            The square of sigma, not the variance of the draw, which is slightly less;
            positive and finite.
        size : int
            Number of draws.
        """
        stairs = gaussian_stairs(read_positive(variance, "variance"))
        return self._draw(sample_stairs(stairs, read_size(size), bits=SystemBits()))

    def geometric(self, scale: Number, size: int) -> Draw:
        r"""Draw non-negative integers, k with probability :math:`\propto e^{-k/s}`."""
        stairs = laplace_stairs(read_positive(scale, "scale"), sides=1)
        return self._draw(sample_stairs(stairs, read_size(size), bits=SystemBits()))

    def bernoulli(self, probability: Number, size: int) -> Draw:
        """Draw 1 with the given rational probability, else 0."""
        coin = RationalCoin(read_probability(probability, "probability"))
        return self._toss(coin, read_size(size))

    def bernoulli_exp(self, x: Number, size: int) -> Draw:
        r"""Draw 1 with probability :math:`e^{-x}`, else 0."""
        number = exact(x, "x")
        coin: Law = RationalCoin(Fraction(0))
        if number != math.inf:
            coin = ExpCoin(Fraction(number))
        return self._toss(coin, read_size(size))

    def uniform(self, bound: int, size: int) -> Draw:
        """Draw integers uniform on 0, ..., bound - 1."""
        bound, count = read_size(bound, "bound"), read_size(size)
        if bound == 0:
            raise ValueError("bound must be positive, got 0.")
        return self._draw(uniform_below(SystemBits(), count, bound=bound))

    def _toss(self, coin: Law, count: int) -> Draw:
        if count < _FEW:
            tosses = [
                resolve(coin, 0, length=0, bits=SystemBits()) for _ in range(count)
            ]
            return self._draw(np.array(tosses, dtype=np.int64))
        table = compile_table(coin, SystemBits.width)
        outcomes, _ = sample_outcomes(table, count, bits=SystemBits())
        return self._draw(outcomes.astype("int64"))

    def _draw(self, values: NDArray[Any]) -> Draw:
        return Draw(values, self.simulated, self.name)

    def __repr__(self) -> str:
        return "SecureSource()"


def secure_source(
    *, backend: Literal["undertow", "opendp"] = "undertow"
) -> NoiseSource:
    """Return the source releases draw from.

    Parameters
    ----------
    backend : {"undertow", "opendp"}
        Our vectorised samplers, or those of OpenDP (extra ``undertow[opendp]``).

    Examples
    --------
    >>> secure_source()
    SecureSource()
    """
    if backend == "undertow":
        return SecureSource()
    if backend == "opendp":
        return OpenDPSource()
    raise ValueError(f"backend must be undertow or opendp, got {backend}.")


def read_source(source: Any = None, *, draws: str = "uniform") -> Any:
    """Read a source of randomness; None is the operating system's.

    Parameters
    ----------
    source : NoiseSource, optional
        Anything with a method of the name `draws` that returns a
        :class:`~undertow.mechanisms.noise.draw.Draw`.
    draws : str
        What is drawn.

    Raises
    ------
    TypeError
        If it is something else, such as a seed or a generator of numpy, which says
        nothing of whether its numbers may be released.

    Examples
    --------
    >>> read_source(None)
    SecureSource()
    """
    if source is None:
        return SecureSource()
    stamped = all(hasattr(source, name) for name in ("name", "simulated"))
    if not stamped or not callable(getattr(source, draws, None)):
        raise TypeError(
            f"source must be a noise source that draws {draws} numbers, got "
            f"{type(source).__name__}; use SimulatedSource(seed or generator) for "
            "studies, and None to release."
        )
    return source


# The same noise through OpenDP's samplers, for those who trust those.

# OpenDP saturates at the ends of int64; at this scale that is beyond exp(-2**22).
_LARGEST_SCALE = 2**40


class OpenDPSource:
    """Integer noise drawn by OpenDP; slower, and of independent make.

    Notes
    -----
    OpenDP takes its scale as a float. One that is not a float is rounded up, so the
    noise is never less than asked for, and its law is the stated one only for scales
    that are floats. Values saturate at the ends of ``int64``.

    Creating the source switches on OpenDP's ``contrib`` feature in this process.

    Raises
    ------
    UndertowError
        If OpenDP is not installed.
    """

    __slots__ = ("_dp",)
    name = "opendp"
    simulated = False

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise UndertowError(
                "backend must be installed, got opendp, which is not; run "
                "pip install 'undertow[opendp]' or use the default backend."
            ) from None
        dp.enable_features("contrib")
        self._dp: Any = dp

    def laplace(self, scale: Number, size: int) -> Draw:
        r"""Draw integers k with probability proportional to :math:`e^{-|k|/scale}`."""
        width = _limited(round_up(read_positive(scale, "scale")), "scale")
        dp = self._dp
        return self._draw(dp.m.make_laplace, dp.l1_distance(T="i64"), width, size)

    def gaussian(self, variance: Number, size: int) -> Draw:
        r"""Draw integers k with probability proportional to :math:`e^{-k^2/(2v)}`."""
        root = sqrt_up(read_positive(variance, "variance"))
        width = _limited(root, "the root of variance")
        dp = self._dp
        return self._draw(dp.m.make_gaussian, dp.l2_distance(T="i64"), width, size)

    def _draw(self, maker: Any, metric: Any, scale: float, size: int) -> Draw:
        count = read_size(size)
        domain = self._dp.vector_domain(self._dp.atom_domain(T="i64"))
        measurement = maker(domain, metric, scale=scale)
        values = measurement([0] * count) if count else []
        return Draw(np.array(values, dtype=np.int64), self.simulated, self.name)

    def __repr__(self) -> str:
        return "OpenDPSource()"


def _limited(scale: float, name: str) -> float:
    if scale > _LARGEST_SCALE:
        raise ValueError(
            f"{name} must be at most 2**40 with backend opendp, got {scale}; "
            "use the default backend."
        )
    return scale
