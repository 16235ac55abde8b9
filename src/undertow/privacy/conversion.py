r"""Conversions between notions of privacy: the valid ones, rounded up, and no others.

================================= ================ ===================================
from                              to               formula
================================= ================ ===================================
pure :math:`\varepsilon`          `Approx`         :math:`(\varepsilon, 0)`
pure :math:`\varepsilon`          `GDP`            :func:`pure_to_gdp`
pure :math:`\varepsilon`          `ZCDP`           :math:`\varepsilon^2/2`
GDP :math:`\mu`                   `Approx`         the Gaussian curve
GDP :math:`\mu`                   `ZCDP`           :math:`\mu^2/2`
zCDP :math:`\rho`                 `Approx`         :func:`zcdp_to_approx`
:math:`(\varepsilon, 0)`          as pure          identity
:math:`(\varepsilon, \delta > 0)` anything else    refused
zCDP                              `GDP`, `Pure`    refused
GDP                               `Pure`           refused
================================= ================ ===================================

Conversions apply to one pair of databases, before losses are composed. What is about
continuous noise stays so: the zCDP of what is drawn is stated by its mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeVar

from scipy.special import erfinv, log_expit, ndtri_exp

from undertow.errors import AssumptionError
from undertow.numeric.exact import Exact, Number, exact, round_down, round_up, sqrt_up
from undertow.numeric.rounding import inflate, keep_exact, log_down, nudge_up
from undertow.numeric.search import GOLDEN
from undertow.privacy.gaussian import gdp_delta, gdp_epsilon
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure

Target = TypeVar("Target", bound=Loss)

# Relative error allowed to the special functions; against 60 digits they stay below
# 1e-14.
_MARGIN = 2.0**-43
# The quotient mu/epsilon falls from sqrt(pi/2); there it is taken as it is at 0.
_SMALL_EPSILON = 1e-8
_SLOPE = Fraction(nudge_up(math.sqrt(math.pi / 2.0), 4))

_REFUSALS = {
    (Approx, Pure): "a positive delta allows events of infinite privacy loss",
    (Approx, GDP): "its trade-off function starts at 1 - delta, below every finite mu",
    (Approx, ZCDP): "a positive delta allows events of infinite Rényi divergence",
    (ZCDP, Pure): "its privacy loss is bounded in the mean only",
    (ZCDP, GDP): "bounded Rényi divergences imply no Gaussian trade-off function",
    (GDP, Pure): "the privacy loss of Gaussian noise is unbounded",
}


def convert(loss: Loss, to: type[Target], *, delta: Number | None = None) -> Target:
    r"""Restate a loss in another notion.

    Parameters
    ----------
    loss : Pure, Approx, ZCDP or GDP
        What is known.
    to : type
        `Pure`, `Approx`, `ZCDP` or `GDP`.
    delta : int, float, str, Decimal or Fraction, optional
        Needed from `GDP` or `ZCDP` to `Approx`; a pure loss spends none of it.

    Returns
    -------
    Loss
        Of class `to`, never smaller than the exact conversion.

    Raises
    ------
    AssumptionError
        If no conversion is valid in this direction; the sentence says why.

    Notes
    -----
    Mixing notions in one sum is no theorem: convert every loss first, per pair.

    Examples
    --------
    >>> convert(Pure(1), ZCDP), convert(GDP(1), ZCDP)
    (ZCDP(rho=0.5), ZCDP(rho=0.5))
    >>> convert(GDP(1), Approx, delta="1e-5")
    Approx(epsilon=4.37717809569, delta=0.00001)
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a Loss, got {type(loss).__name__}.")
    if to not in (Pure, Approx, ZCDP, GDP):
        raise TypeError(f"to must be Pure, Approx, ZCDP or GDP, got {to!r}.")
    result = _convert(loss, to, delta)
    assert isinstance(result, to)
    return result.of_continuous_noise(loss.continuous)


def _convert(loss: Loss, to: type[Loss], delta: Number | None) -> Loss:
    if isinstance(loss, to):
        return loss
    if isinstance(loss, Approx) and loss.exact_parameters()[1] == 0:
        return _convert(Pure(keep_exact(loss.exact_parameters()[0])), to, delta)
    if isinstance(loss, Pure):
        return _from_pure(loss, to)
    if isinstance(loss, GDP) and to is ZCDP:
        return gdp_to_zcdp(loss)
    if isinstance(loss, GDP) and to is Approx:
        return gdp_to_approx(loss, delta=_needed(delta))
    if isinstance(loss, ZCDP) and to is Approx:
        return zcdp_to_approx(loss, delta=_needed(delta))
    raise AssumptionError(
        f"loss must be convertible to {to.notion}, got {loss}: "
        f"{_REFUSALS[type(loss), to]}; state the mechanism's own {to.notion} loss."
    )


def _from_pure(loss: Pure, to: type[Loss]) -> Loss:
    if to is GDP:
        return pure_to_gdp(loss)
    if to is ZCDP:
        return pure_to_zcdp(loss)
    return Approx(keep_exact(loss.exact_parameters()[0]), 0)


def pure_to_gdp(loss: Pure) -> GDP:
    r"""Convert :math:`\varepsilon`-DP to :math:`\mu`-GDP.

    .. math:: \mu = 2\,\Phi^{-1}\!\left(\frac{e^\varepsilon}{1 + e^\varepsilon}\right)

    Parameters
    ----------
    loss : Pure
        What is known.

    Returns
    -------
    GDP
        The least valid mu, rounded up.

    Notes
    -----
    The trade-off function of :math:`\varepsilon`-DP has straight pieces between
    :math:`(0, 1)`, the kink :math:`(p, p)` with :math:`p = 1/(1+e^\varepsilon)` and
    :math:`(1, 0)`. The Gaussian one passes through all three points for this mu, and
    being convex it lies below the chords.

    Examples
    --------
    >>> round(pure_to_gdp(Pure(1)).mu, 12)
    1.232035385345
    """
    epsilon, continuous = loss.epsilon, loss.continuous
    if epsilon in (0.0, math.inf):
        return GDP(epsilon, continuous=continuous)
    if epsilon < _SMALL_EPSILON:
        steep = _SLOPE * Fraction(loss.exact_parameters()[0])
        return GDP(steep, continuous=continuous)
    if epsilon < 1.0:
        root = math.sqrt(2.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    else:
        root = -float(ndtri_exp(float(log_expit(-epsilon))))
    return GDP(Fraction(inflate(2.0 * root, _MARGIN)), continuous=continuous)


def pure_to_zcdp(loss: Pure) -> ZCDP:
    r"""Convert :math:`\varepsilon`-DP to :math:`\varepsilon^2/2`-zCDP, exactly.

    Notes
    -----
    Proposition 1.4 of M. Bun and T. Steinke, *Concentrated Differential Privacy:
    Simplifications, Extensions, and Lower Bounds*, TCC 2016.

    Examples
    --------
    >>> pure_to_zcdp(Pure("0.2"))
    ZCDP(rho=0.02)
    """
    (epsilon,) = loss.exact_parameters()
    rho = epsilon if epsilon == math.inf else Fraction(epsilon) ** 2 / 2
    return ZCDP(rho, continuous=loss.continuous)


def gdp_to_zcdp(loss: GDP) -> ZCDP:
    r"""Convert :math:`\mu`-GDP to :math:`\mu^2/2`-zCDP, exactly.

    Notes
    -----
    The outputs are a post-processing of :math:`N(0, 1)` and :math:`N(\mu, 1)`, whose
    Rényi divergence of order :math:`\alpha` is :math:`\alpha\mu^2/2`.

    Examples
    --------
    >>> gdp_to_zcdp(GDP(2))
    ZCDP(rho=2)
    """
    (square,) = loss.exact_parameters()
    rho = square if square == math.inf else Fraction(square) / 2
    return ZCDP(rho, continuous=loss.continuous)


def gdp_to_approx(
    loss: GDP, *, delta: Number | None = None, epsilon: Number | None = None
) -> Approx:
    r"""Read one point of the Gaussian curve.

    Parameters
    ----------
    loss : GDP
        What is known.
    delta, epsilon : int, float, str, Decimal or Fraction, optional
        Exactly one: the other is computed and rounded up.

    Returns
    -------
    Approx
        The given coordinate exactly as given.

    Notes
    -----
    Equation 2.1 of Guerra-Balboa (2026); exact for Gaussian noise, valid for every
    GDP mechanism.

    Examples
    --------
    >>> gdp_to_approx(GDP(1), epsilon=1)
    Approx(epsilon=1, delta=0.126936737507)
    """
    known_delta, known_epsilon = _one_coordinate(delta, epsilon)
    if known_epsilon is not None:
        bound = gdp_delta(loss.mu, round_down(known_epsilon))
        point = Approx.capped(keep_exact(known_epsilon), Fraction(bound))
        return point.of_continuous_noise(loss.continuous)
    assert known_delta is not None
    point = _at_delta(
        known_delta,
        lambda target, log_target: gdp_epsilon(loss.mu, target, log_delta=log_target),
    )
    return point.of_continuous_noise(loss.continuous)


def _at_delta(
    delta: Exact, epsilon_at: Callable[[float | None, float | None], float]
) -> Approx:
    """Solve for epsilon at an exact delta, through its logarithm where it is tiny."""
    target = open_delta(delta)
    rounded = round_down(target)
    if rounded >= 1e-300:
        epsilon = epsilon_at(rounded, None)
    else:
        epsilon = epsilon_at(None, log_down(target))
    return Approx(epsilon if epsilon == math.inf else Fraction(epsilon), target)


def _one_coordinate(
    delta: Number | None, epsilon: Number | None
) -> tuple[Exact | None, Exact | None]:
    if (delta is None) == (epsilon is None):
        raise ValueError(
            "exactly one of delta and epsilon must be given, "
            f"got delta={delta} and epsilon={epsilon}."
        )
    if delta is not None:
        return exact(delta, "delta"), None
    assert epsilon is not None
    return None, exact(epsilon, "epsilon")


def _needed(delta: Number | None) -> Number:
    if delta is None:
        raise ValueError(
            "delta must be given to convert to (epsilon, delta), got None; "
            "for example delta=1e-6."
        )
    return delta


# From zero-concentrated DP to one (epsilon, delta) point.


def zcdp_to_approx(
    loss: ZCDP,
    *,
    delta: Number,
    method: Literal["standard", "optimal"] = "standard",
) -> Approx:
    r"""Convert :math:`\rho`-zCDP to :math:`(\varepsilon, \delta)`-DP.

    Parameters
    ----------
    loss : ZCDP
        What is known.
    delta : int, float, str, Decimal or Fraction
        In :math:`(0, 1)`.
    method : {"standard", "optimal"}
        ``"standard"`` is :math:`\varepsilon = \rho + 2\sqrt{\rho\ln(1/\delta)}` [1]_;
        ``"optimal"`` the smaller

        .. math:: \varepsilon = \inf_{\alpha > 1} \; \alpha\rho
                  + \frac{\ln(1/\delta) - \ln\alpha}{\alpha - 1}
                  + \ln\left(1 - \frac1\alpha\right)

        of [2]_, Proposition 12 and Corollary 13.

    Returns
    -------
    Approx
        Delta as given, epsilon rounded up.

    Notes
    -----
    Every :math:`\alpha` gives a valid bound, so the search for the best one cannot
    make the result unsafe. For Gaussian noise :func:`gdp_to_approx` is exact and
    smaller than both.

    References
    ----------
    .. [1] M. Bun and T. Steinke, *Concentrated Differential Privacy: Simplifications,
       Extensions, and Lower Bounds*, TCC 2016, Proposition 1.3.
    .. [2] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for
       Differential Privacy*, NeurIPS 2020.

    Examples
    --------
    >>> zcdp_to_approx(ZCDP("0.5"), delta="1e-5")
    Approx(epsilon=5.29852591219, delta=0.00001)
    >>> zcdp_to_approx(ZCDP("0.5"), delta="1e-5", method="optimal").epsilon < 4.73
    True
    """
    target = open_delta(exact(delta, "delta"))
    if method not in ("standard", "optimal"):
        raise ValueError(f'method must be "standard" or "optimal", got {method!r}.')
    (rho,) = loss.exact_parameters()
    if rho == math.inf:
        return Approx(math.inf, target)
    if rho == 0:
        return Approx(0, target)
    surprise = Fraction(-log_down(target))  # ln(1/delta), rounded up
    rho = Fraction(rho)
    standard = rho + Fraction(sqrt_up(4 * rho * surprise))
    if method == "standard":
        return Approx(keep_exact(round_up(standard)), target)
    best = min(_best_order(round_up(rho), round_up(surprise)), round_up(standard))
    return Approx(keep_exact(max(best, 0.0)), target)


def _best_order(rho: float, surprise: float) -> float:
    """Minimise the bound over alpha = 1 + e^t by golden section; it is quasi-convex."""
    # The best alpha - 1 is near sqrt(surprise / rho).
    low = -40.0
    high = max(0.0, 0.5 * (math.log(surprise + 1.0) - math.log(rho))) + 5.0
    for _ in range(100):
        # Both anew in each round: at this flat minimum, rounding must not add up.
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if _order_bound(left, rho, surprise) <= _order_bound(right, rho, surprise):
            high = right
        else:
            low = left
    return _order_bound((low + high) / 2.0, rho, surprise)


def _order_bound(t: float, rho: float, surprise: float) -> float:
    excess = math.exp(t)  # alpha - 1
    terms = (
        rho * (1.0 + excess),
        surprise / excess,
        -math.log1p(excess) / excess,
        # ln(1 - 1/alpha); as a difference of logarithms it would lose its digits.
        -math.log1p(1.0 / excess),
    )
    size = math.fsum(abs(term) for term in terms)
    # Each term carries a few rounding errors relative to itself.
    return nudge_up(math.fsum(terms) + 2.0**-49 * size)


def open_delta(delta: Exact) -> Fraction:
    """Return a delta strictly between 0 and 1, exactly."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}.")
    return Fraction(delta)
