r"""Noise kept inside an interval: clamped or truncated, which are not the same.

*Clamping* moves an output outside the interval to its nearer end. It is post-processing
and costs nothing. *Truncating* draws again until the output is inside, so the density
is divided by :math:`Z(x) = P[\text{low} \le x + \text{noise} \le \text{high}]`, which
depends on the value x: the ratio of two such constants is part of the loss.
"""

from __future__ import annotations

from undertow.mechanisms.clamped import ClampedMechanism
from undertow.mechanisms.truncated import TruncatedMechanism

__all__ = ["ClampedMechanism", "TruncatedMechanism"]
