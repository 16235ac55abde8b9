r"""Clipped releases: which pairs of secrets a promise covers, and what others cost.

Moving the target from x to x' moves the conditional law of the unknown records by
:math:`c_u (x - x')`; after clipping to an interval of width M, record u moves by at
most :math:`\min(M, |c_u| |x - x'|)`. Coupling the two laws by this shift gives the
bounds of this module, for *any* pair of secrets (theory page "Gaussian clipping").
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate
from undertow._validate import check_finite
from undertow.correlation.adversary import adversary_witness
from undertow.correlation.gaussian.exchangeable import (
    ExchangeableGaussian,
    exchangeable_factor,
)
from undertow.correlation.gaussian.factor import gaussian_factor
from undertow.correlation.gaussian.law import GaussianModel
from undertow.correlation.gaussian.limited import LimitedGaussian
from undertow.correlation.gaussian.search import searched_factor
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.sweep import MAX_BLOCK, Saturation
from undertow.correlation.general import general_leakage
from undertow.correlation.method import check_level
from undertow.correlation.result import Leakage
from undertow.correlation.scope import Scope
from undertow.errors import ScopeWarning
from undertow.privacy.exact import exact, round_up_decimal

__all__ = ["ClippedRelease", "clip_records", "pair_leakage", "scope_leakage"]

Array = NDArray[np.float64]
Interval = tuple[float, float]

_THEOREM = "coupling by partial shifts (theory: Gaussian clipping)"
_MECHANISMS = "Laplace noise on l1-Lipschitz queries of clipped records"
# Sums of products over releases.
_MARGIN = 1e-13


@dataclass(frozen=True, slots=True)
class ClippedRelease:
    """A Lipschitz query of clipped records with Laplace noise.

    Parameters
    ----------
    epsilon : float
        Its DP level; the noise scale is the clipped sensitivity over it.
    clip : pair of float
        Interval each record is clipped to.

    Examples
    --------
    >>> ClippedRelease(1.0, (60, 80)).width
    20.0
    """

    epsilon: float
    clip: Interval

    def __post_init__(self) -> None:
        check_level(self.epsilon)
        low, high = (check_finite(end, "clip") for end in self.clip)
        if not low < high:
            raise ValueError(
                f"clip must be (low, high) with low < high, got {self.clip}."
            )

    @property
    def width(self) -> float:
        """Width of the clip interval, M."""
        return float(self.clip[1]) - float(self.clip[0])


def clip_records(records: ArrayLike, clip: Interval) -> Array:
    """Return `records` with every value moved into the interval.

    Raises
    ------
    ValueError
        If the interval is empty, or a record is not a number.

    Examples
    --------
    >>> clip_records([-1.0, 0.5, 9.0], (0, 1)).tolist()
    [0.0, 0.5, 1.0]
    """
    low, high = (check_finite(end, "clip") for end in clip)
    if not low < high:
        raise ValueError(f"clip must be (low, high) with low < high, got {clip}.")
    values = np.array(records, dtype=float)
    if np.any(np.isnan(values)):
        raise ValueError("records must be numbers, got nan; leave missing records out.")
    return np.asarray(np.clip(values, low, high))


def pair_leakage(
    model: GaussianModel | LimitedGaussian,
    release: ClippedRelease,
    *,
    pair: tuple[float, float],
) -> Leakage:
    r"""Bound the leakage of one pair of secrets, inside the clip interval or not.

    .. math:: \frac{\varepsilon}{M} \max_{K, i} \Bigl( |c_I(x) - c_I(x')| +
              \sum_u \min(M, |c_u|\,|x - x'|) \Bigr)

    Parameters
    ----------
    model : GaussianModel or LimitedGaussian
        How the records depend.
    release : ClippedRelease
        DP level and clip interval.
    pair : pair of float
        Two values of the target; any real numbers.

    Notes
    -----
    Proved on the theory page "Gaussian clipping". Never above m times epsilon.

    Examples
    --------
    >>> from undertow.correlation.gaussian import Gaussian
    >>> iq = Gaussian([[225.0, 101.25], [101.25, 225.0]], mean=[100.0, 100.0])
    >>> release = ClippedRelease(1.0, (40, 160))
    >>> round(pair_leakage(iq, release, pair=(160, 40)).value, 9)
    1.45
    >>> round(pair_leakage(iq, release, pair=(1000, -800)).value, 9)
    2.0
    """
    x, y = check_finite(pair[0], "pair"), check_finite(pair[1], "pair")
    if x == y:
        raise ValueError(f"pair must be two different values, got {x} twice.")
    gap = abs(x - y)
    low, high = release.clip
    own = abs(min(max(x, low), high) - min(max(y, low), high))
    found = _saturated(model, (release,), gap=gap, own=(own,))
    # Pairs between the two are closer, and clipping is monotone: they leak no more.
    scope = Scope.inside(min(x, y), max(x, y))
    return _leakage(found, model, (release,), scope=scope, pair=(x, y))


def scope_leakage(
    model: GaussianModel | LimitedGaussian,
    releases: Sequence[ClippedRelease],
    *,
    scope: Scope,
) -> Leakage:
    r"""Bound what several clipped releases leak together, for the secrets asked.

    .. math:: \max_{K, i} \sum_j \frac{\varepsilon_j}{M_j} \Bigl( \min(M_j, g) +
              \sum_u \min(M_j, |c_u| g) \Bigr)

    where g is the widest gap of the scope.

    Parameters
    ----------
    model : GaussianModel or LimitedGaussian
        How the records depend.
    releases : sequence of ClippedRelease
        With independent noise; clip intervals may differ.
    scope : Scope
        The pairs of secrets to cover.

    Warns
    -----
    ScopeWarning
        If the scope leaves a clip interval: the bound is then above h times epsilon.

    Notes
    -----
    Proved on the theory page "Gaussian clipping". Multiplying the summed DP levels by
    the factor h is valid only for gaps of at most the narrowest interval; for the whole
    real line every record saturates and the general bound is all there is, and is
    reached.

    Examples
    --------
    >>> from undertow.correlation.gaussian import Gaussian
    >>> model = Gaussian.limited(0.275, 3)
    >>> release = ClippedRelease(1.0, (60, 80))
    >>> round(scope_leakage(model, [release], scope=Scope.inside(60, 80)).value, 9)
    1.55
    """
    listed = tuple(releases)
    if not listed:
        raise ValueError("releases must have at least one release, got none.")
    if any(_leaves(scope, release) for release in listed):
        warnings.warn(
            f"the scope ({scope.summary}) leaves a clip interval; secrets there leak "
            "more than those inside, and the bound covers them.",
            ScopeWarning,
            stacklevel=2,
        )
    if scope.is_every_pair:
        return general_leakage(_total(listed), model.largest_group)
    own = tuple(_own(scope, release) for release in listed)
    found = _saturated(model, listed, gap=scope.gap, own=own)
    return _leakage(found, model, listed, scope=scope)


def _total(releases: tuple[ClippedRelease, ...]) -> float:
    """Return the sum of the DP levels, read as decimals and rounded up."""
    return round_up_decimal(sum(exact(release.epsilon) for release in releases))


def _leaves(scope: Scope, release: ClippedRelease) -> bool:
    if scope.gap > release.width * (1 + 1e-12):
        return True
    if scope.interval is None:
        return False
    low, high = scope.interval
    return low < release.clip[0] or high > release.clip[1]


def _own(scope: Scope, release: ClippedRelease) -> float:
    """Return the most that the clipped target itself moves."""
    if scope.interval is None:
        return min(release.width, scope.gap)
    low = max(scope.interval[0], release.clip[0])
    return max(0.0, min(scope.interval[1], release.clip[1]) - low)


def _saturated(
    model: GaussianModel | LimitedGaussian,
    releases: tuple[ClippedRelease, ...],
    *,
    gap: float,
    own: tuple[float, ...],
) -> ShiftFactor:
    pieces = tuple((r.epsilon * (gap / r.width), float(r.epsilon)) for r in releases)
    mine = sum(r.epsilon * (o / r.width) for r, o in zip(releases, own, strict=True))
    if not all(np.isfinite(slope) for slope, _ in pieces):
        every = mine + (model.largest_group - 1) * _total(releases)
        return ShiftFactor(every, None, reason="every record may saturate")
    saturation = Saturation(pieces, mine)
    if isinstance(model, ExchangeableGaussian):
        return exchangeable_factor(model, saturation=saturation)
    if isinstance(model, GaussianModel) and model.largest_group <= MAX_BLOCK:
        return searched_factor(model, saturation=saturation)
    return _shared_out(model, saturation)


def _shared_out(
    model: GaussianModel | LimitedGaussian, saturation: Saturation
) -> ShiftFactor:
    """Bound the saturated sum from the plain factor alone.

    At most m - 1 shifts have a sum of at most h - 1, and the saturation is concave, so
    equal shares are the worst case (Jensen).
    """
    if isinstance(model, LimitedGaussian):
        limits = model.limits()
        value = gaussian_factor(
            limits.group, limits.correlation, sd_ratio=limits.sd_ratio
        )
        plain = ShiftFactor(value, None, reason="the correlations are limited")
    else:
        plain = model.structured()
    others = model.largest_group - 1
    if not others:
        return ShiftFactor(saturation.own, plain.adversary, reason=plain.reason)
    share = np.array([(plain.value - 1) / others])
    value = saturation.own + others * float(saturation(share)[0])
    return ShiftFactor(value, plain.adversary, reason=plain.reason)


def _leakage(
    found: ShiftFactor,
    model: GaussianModel | LimitedGaussian,
    releases: tuple[ClippedRelease, ...],
    *,
    scope: Scope,
    pair: tuple[float, float] | None = None,
) -> Leakage:
    total = general_leakage(_total(releases), model.largest_group).value
    witness = None
    if found.adversary is not None:
        witness = adversary_witness(found.adversary, pair=pair)
    return Leakage(
        min(inflate(found.value, _MARGIN), total),
        _THEOREM,
        checked=(found.reason,) if found.reason else (),
        unchecked=model.assumptions().unchecked,
        witness=witness,
        method="coupling",
        model=model.summary,
        mechanisms=_MECHANISMS,
        scope=scope,
    )
