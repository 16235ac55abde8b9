"""The same noise through OpenDP's samplers, for those who trust those."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import UndertowError
from undertow.mechanisms.noise.draw import Draw, read_positive, read_size
from undertow.privacy.exact import Number, round_up, sqrt_up

__all__ = ["OpenDPSource"]

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
