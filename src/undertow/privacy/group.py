r"""What a guarantee for one step becomes over several: groups and chains.

=========== ============================ =============================================
notion      one step                     distance :math:`k`
=========== ============================ =============================================
pure        :math:`\varepsilon`          :math:`k \varepsilon`
approximate :math:`(\varepsilon,\delta)` :math:`(k\varepsilon, \delta [k]_\varepsilon)`
zCDP        :math:`\rho`                 :math:`k^2 \rho`
GDP         :math:`\mu`                  :math:`k \mu`
=========== ============================ =============================================

with :math:`[k]_\varepsilon = (e^{k\varepsilon} - 1)/(e^\varepsilon - 1)`. Everything
without an exponential is exact; delta is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from undertow.errors import AssumptionError, InfiniteLossError
from undertow.numeric.exact import Exact, Number, exact, ext_scale, ext_sum, round_up
from undertow.numeric.rounding import exp_up, expm1_down, expm1_up, keep_exact
from undertow.numeric.search import greatest_int
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure

# Below this, e^epsilon - 1 would lose its digits to the subnormal range.
_SMALL_EPSILON = Fraction(1, 10**290)


def bracket(distance: Number, epsilon: Number) -> float:
    r"""Return :math:`[d]_\varepsilon = (e^{\varepsilon d}-1)/(e^\varepsilon-1)`.

    Parameters
    ----------
    distance : int, float, str, Decimal or Fraction
        In :math:`[0, \infty]`.
    epsilon : int, float, str, Decimal or Fraction
        In :math:`[0, \infty]`; at 0 the bracket is the distance itself.

    Returns
    -------
    float
        Rounded up; infinite on overflow.

    Notes
    -----
    The factor on delta in paper [1]_, Theorem VI.3. It comes from chaining whole
    neighbour steps: a guarantee may use it at integer distances only.

    References
    ----------
    .. [1] P. Guerra-Balboa, À. Miranda-Pascual, J. Parra-Arnau and T. Strufe,
       *Composition in Differential Privacy for General Granularity Notions*.

    Examples
    --------
    >>> round(bracket(2, 1), 12), bracket(5, 0), bracket(0, 1)
    (3.718281828459, 5.0, 0.0)
    """
    return round_up(_bracket_up(exact(distance, "distance"), exact(epsilon, "epsilon")))


def group_delta(epsilon: Number, delta: Number, *, n: int) -> float:
    r"""Return delta of a group of `n`, rounded up and not capped at 1.

    Parameters
    ----------
    epsilon, delta : int, float, str, Decimal or Fraction
        The guarantee for one step.
    n : int
        Group size; non-negative.

    Notes
    -----
    Paper, Theorem VI.3: :math:`\delta [n]_\varepsilon`. A value of 1 or more means that
    nothing is promised.

    Examples
    --------
    >>> round(group_delta(1, 1e-5, n=12), 12)
    0.947189155605
    """
    one = Approx(epsilon, delta)
    return round_up(_group_delta(one, _whole(n, "n")))


def group_approx(epsilon: Number, delta: Number, *, n: int) -> Approx:
    r"""Return the guarantee of an :math:`(\varepsilon, \delta)`-DP step for `n` steps.

    Parameters
    ----------
    epsilon, delta : int, float, str, Decimal or Fraction
        The guarantee for one step.
    n : int
        Group size; non-negative.

    Returns
    -------
    Approx
        :math:`(n\varepsilon, \delta[n]_\varepsilon)`, epsilon exact and delta rounded
        up; a delta of 1 or more is kept as 1 and shows as ``no_guarantee``.

    Notes
    -----
    Paper, Theorem VI.3. Integer `n` only: at a fractional distance the formula is not
    implied (Gaussian noise with :math:`(1, 10^{-5})` at distance 1 violates it at
    distance one half).

    Examples
    --------
    >>> group_approx(1, 1e-5, n=2)
    Approx(epsilon=2, delta=0.0000371828182846)
    """
    one, n = Approx(epsilon, delta), _whole(n, "n")
    return Approx.capped(keep_exact(ext_scale(_epsilon(one), n)), _group_delta(one, n))


def max_group_size(epsilon: Number, delta: Number) -> int | float:
    r"""Return the largest group that still has a guarantee.

    Parameters
    ----------
    epsilon, delta : int, float, str, Decimal or Fraction
        The guarantee for one step.

    Returns
    -------
    int or float
        The largest :math:`n` with :math:`\delta [n]_\varepsilon < 1` after rounding up;
        ``inf`` if delta is 0.

    Notes
    -----
    From the paper, Theorem VI.3 and the remark after it: delta grows exponentially
    with the group, not linearly.

    Examples
    --------
    >>> max_group_size(1, 1e-5)
    12
    """
    one = Approx(epsilon, delta)
    if one.exact_parameters()[1] == 0:
        return math.inf
    return greatest_int(lambda n: _group_delta(one, n) < 1)


def group(loss: Loss, factor: Number) -> Loss:
    r"""Restate a loss per step as a loss at distance `factor`.

    Parameters
    ----------
    loss : Pure, Approx, ZCDP or GDP
        The guarantee for one step of the granularity it is stated at.
    factor : int, float, str, Decimal or Fraction
        The distance, or the transfer factor between two granularities. A computed
        factor must be rounded up by the caller.

    Returns
    -------
    Loss
        Of the same notion.

    Raises
    ------
    InfiniteLossError
        If `factor` is infinite: no chain of steps connects the pair.
    AssumptionError
        If `loss` is an `Approx` and `factor` is not an integer.

    Notes
    -----
    Thesis, Proposition A.7 (pure) and Theorem 4.15 (Gaussian); paper, Proposition A.3,
    Theorems VI.3 (approximate), VI.12 (zCDP) and VI.20 (Gaussian). Not checked: that
    `factor` is the distance of the pair at hand.

    Examples
    --------
    >>> group(Pure(1), 2), group(ZCDP("0.5"), 2), group(GDP(1), 2)
    (Pure(epsilon=2), ZCDP(rho=2), GDP(mu=2))
    """
    if not isinstance(loss, Pure | Approx | ZCDP | GDP):
        raise TypeError(f"loss must be a Loss, got {type(loss).__name__}.")
    k = exact(factor, "factor")
    if k == math.inf:
        raise InfiniteLossError(
            "factor must be finite, got inf; no chain of neighbours connects the "
            "pair, so no guarantee transfers."
        )
    return _grouped(loss, Fraction(k)).of_continuous_noise(loss.continuous)


def _grouped(loss: Pure | Approx | ZCDP | GDP, k: Fraction) -> Loss:
    if isinstance(loss, Approx):
        return _group_of_approx(loss, k)
    if isinstance(loss, Pure):
        return Pure(keep_exact(ext_scale(_epsilon(loss), k)))
    square = keep_exact(ext_scale(loss.exact_parameters()[0], k**2))
    return ZCDP(square) if isinstance(loss, ZCDP) else GDP.from_square(square)


def chain_approx(steps: Sequence[Approx], *, symmetric: bool = False) -> Approx:
    r"""Chain guarantees along a path of databases.

    Parameters
    ----------
    steps : sequence of Approx
        The guarantee from each database on the path to the next, in order.
    symmetric : bool
        Whether to take the larger delta of the two directions.

    Returns
    -------
    Approx
        For the ordered pair (first, last): epsilons add exactly; delta is
        :math:`\delta_1 + e^{\varepsilon_1}(\delta_2 + e^{\varepsilon_2}(\dots))`,
        rounded up.

    Notes
    -----
    From the definition: :math:`P_0 \le e^{\varepsilon_1} P_1 + \delta_1` and
    :math:`P_1 \le e^{\varepsilon_2} P_2 + \delta_2`. The order matters; equal steps
    give :func:`group_approx`. Both directions of each step must hold for `symmetric`.

    Examples
    --------
    >>> chain_approx([Approx("0.5", "1e-6"), Approx(1, "2e-6")])
    Approx(epsilon=1.5, delta=0.00000429744254141)
    """
    steps = tuple(steps)
    if not all(isinstance(step, Approx) for step in steps):
        raise TypeError("steps must be Approx losses; convert the others first.")
    delta = _chain_delta(steps)
    if symmetric:
        delta = max(delta, _chain_delta(steps[::-1]))
    whole = keep_exact(ext_sum(_epsilon(step) for step in steps))
    continuous = any(step.continuous for step in steps)
    return Approx.capped(whole, delta).of_continuous_noise(continuous)


def _chain_delta(steps: Sequence[Approx]) -> Exact:
    total: Exact = Fraction(0)
    for step in reversed(steps):
        epsilon, delta = step.exact_parameters()
        # ext_scale keeps a zero delta at zero even where e^epsilon is infinite.
        total = ext_sum([delta, ext_scale(_exact_exp_up(epsilon), total)])
    return total


def _exact_exp_up(exponent: Exact) -> Exact:
    growth = exp_up(exponent)
    return growth if growth == math.inf else Fraction(growth)


def _group_of_approx(loss: Approx, factor: Fraction) -> Approx:
    if factor.denominator != 1:
        raise AssumptionError(
            "factor must be an integer for an (epsilon, delta) loss (chains of whole "
            f"steps, Theorem VI.3), got {factor}; round it up, or state the loss as "
            "pure, zCDP or GDP.",
            source="paper, Theorem VI.3",
        )
    if factor == 1:
        return loss
    epsilon = ext_scale(_epsilon(loss), factor)
    return Approx.capped(keep_exact(epsilon), _group_delta(loss, int(factor)))


def _group_delta(loss: Approx, n: int) -> Exact:
    epsilon, delta = loss.exact_parameters()
    if delta == 0:
        return 0
    return ext_scale(delta, _bracket_up(Fraction(n), epsilon))


def _bracket_up(distance: Exact, epsilon: Exact) -> Exact:
    """Return an exact upper bound on the bracket; the bracket itself where rational."""
    if distance in (0, 1) or epsilon == 0 or distance == math.inf:
        return distance
    if epsilon < _SMALL_EPSILON:
        # The mean of e^{j epsilon} over j < d is at most its last term.
        return ext_scale(_exact_exp_up(ext_scale(epsilon, distance)), distance)
    numerator = expm1_up(ext_scale(epsilon, distance))
    denominator = expm1_down(epsilon)
    if numerator == math.inf:
        return math.inf
    return Fraction(numerator) / Fraction(denominator)


def _epsilon(loss: Pure | Approx) -> Exact:
    return loss.exact_parameters()[0]


def _whole(value: int, name: str) -> int:
    number = exact(value, name)
    if number == math.inf or Fraction(number).denominator != 1:
        raise ValueError(f"{name} must be a finite integer, got {value}.")
    return int(number)
