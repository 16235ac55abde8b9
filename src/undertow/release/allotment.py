"""Dividing a budget: shares of queries, one conversion, and short fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from undertow.errors import InfeasibleTarget
from undertow.numeric.exact import round_down
from undertow.numeric.rounding import log_down
from undertow.privacy.conversion import zcdp_to_approx
from undertow.privacy.loss import ZCDP, Approx
from undertow.release.sensitivity import Reach

__all__ = ["calibrate_rho", "round_down_long", "round_up_long", "share_weights"]

_ROUNDS = 60
# By so much of itself a level stays below a boundary found by bisection.
_MARGIN = 2.0**-40


def share_weights(
    shares: Sequence[Fraction | None],
    sizes: Sequence[tuple[Reach, int]],
    *,
    law: str,
    discovers: bool = False,
) -> list[Fraction]:
    r"""Return the relative budgets of queries.

    Parameters
    ----------
    shares : sequence of Fraction or None
        What the file says; None to allocate.
    sizes : sequence of (Reach, int)
        For each query how far a unit moves its counts, and the number of answers.
    law : {"laplace", "gaussian"}
        The law of the noise.
    discovers : bool
        Whether the keys of some query are discovered: cells are then not known, and
        every query without a share counts as 1.

    Returns
    -------
    list of Fraction
        They add up to one. Without a share, queries get the same relative error: that
        of an answer which holds one part in their number of the whole, to which every
        unit adds as much as its bounds allow. A count of rows and one of units then
        weigh the same. Where only some have one, the others count as 1 each and divide
        that among themselves for equal relative error.

    Examples
    --------
    >>> rows, units = Reach(50, 2500, 1), Reach(1, 1, 1)
    >>> sizes = [(rows, 1), (units, 3)]
    >>> [str(w) for w in share_weights([None, None], sizes, law="laplace")]
    ['1/4', '3/4']
    >>> [str(w) for w in share_weights([Fraction(2), None], sizes, law="laplace")]
    ['2/3', '1/3']
    """
    free = [
        Fraction(answers)
        if law == "laplace"
        else Fraction(reach.square * answers**2, reach.total**2)
        for reach, answers in sizes
    ]
    if discovers:
        free = [Fraction(1)] * len(sizes)
    open_sizes = [s for s, given in zip(free, shares, strict=True) if given is None]
    each = Fraction(len(open_sizes)) / sum(open_sizes) if open_sizes else Fraction(0)
    weights = [
        size * each if given is None else given
        for size, given in zip(free, shares, strict=True)
    ]
    return [weight / sum(weights) for weight in weights]


def calibrate_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    r"""Return the largest rho, rounded down, that converts to (`epsilon`, `delta`).

    Notes
    -----
    The simple bound :math:`\varepsilon = \rho + 2\sqrt{\rho\ln(1/\delta)}` is solved
    for rho and starts a bisection on the best bound of Canonne, Kamath and Steinke
    (2020), Corollary 13, which grows with rho, but as computed only up to its last
    bits: a composed rho a little below the result could convert to a little more than
    `epsilon`. The result stays off the boundary by far more than that, and what a plan
    composes is checked again.

    Examples
    --------
    >>> rho = calibrate_rho(Fraction(1), Fraction(1, 10**6))
    >>> round(float(rho), 6)
    0.024356
    """
    surprise, level = -log_down(delta), round_down(epsilon)
    root = level / (math.sqrt(surprise + level) + math.sqrt(surprise))
    low, high = root**2 * (1 - _MARGIN), root**2
    if low == 0 or not _converts(low, epsilon, delta=delta):
        raise InfeasibleTarget(
            f"promise.epsilon must leave a positive rho, got {level:g}; promise more.",
            least=level,
        )
    while _converts(high, epsilon, delta=delta):
        low, high = high, 2 * high
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if _converts(middle, epsilon, delta=delta):
            low = middle
        else:
            high = middle
    return Fraction(low * (1 - _MARGIN))


def _converts(rho: float, epsilon: Fraction, *, delta: Fraction) -> bool:
    found = zcdp_to_approx(ZCDP(Fraction(rho)), delta=delta, method="optimal")
    return found.within(Approx(epsilon, delta))


def round_up_long(value: Fraction, bits: int = 48) -> Fraction:
    """Round a fraction with long terms up to about `bits` significant bits.

    Examples
    --------
    >>> tiny = Fraction(1, 3**80)
    >>> round_up_long(Fraction(50, 3)), 0 < round_up_long(tiny) - tiny < tiny / 2**46
    (Fraction(50, 3), True)
    """
    if value.numerator.bit_length() <= bits and value.denominator.bit_length() <= bits:
        return value
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    unit = Fraction(2) ** shift
    return Fraction(math.ceil(value * unit)) / unit


def round_down_long(value: Fraction, bits: int = 48) -> Fraction:
    """Round a positive fraction with long terms down."""
    if value.numerator.bit_length() <= bits and value.denominator.bit_length() <= bits:
        return value
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    unit = Fraction(2) ** shift
    return Fraction(math.floor(value * unit)) / unit
