"""The Gaussian theorems as methods: each says when it applies, and to which releases.

All but the general bound need more than a DP level: the release must be private in
the l1 metric, as Laplace noise on a Lipschitz query is (Theorem 6.14 of
Guerra-Balboa, 2026). A threshold count of real values is not. The closed forms need
group size and largest correlation only.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice, check_count, check_finite
from undertow.correlation.gaussian.block import (
    ExchangeableGaussian,
    exchangeable_factor,
)
from undertow.correlation.gaussian.law import Limits, searched_factor
from undertow.correlation.gaussian.shift import MAX_BLOCK, Saturation, ShiftFactor
from undertow.correlation.group import GeneralTheorem
from undertow.correlation.level import scaled_down
from undertow.correlation.model import Model
from undertow.correlation.query import LinearQuery, LipschitzQuery, Query
from undertow.correlation.result import Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem, LeakageTheorem, multiple
from undertow.errors import NotApplicable
from undertow.numeric.exact import exact, round_down, round_up
from undertow.numeric.rounding import inflate, nudge_down
from undertow.numeric.search import greatest_float

# Larger blocks are searched only when the method is asked for by name.
_CHEAP_BLOCK = 17
# Standard deviations this close are equal; what they differ by is still paid for.
_EQUAL = 1 + 1e-9
# A larger rounding margin, relative to the factor, and the value is a bound, not exact.
_SHARP = 1e-9
_CLIPPED = Saturation(((1.0, 1.0),), 1.0)


class FactorTheorem(FormulaTheorem):
    """A theorem of the form: leakage at most a factor times the DP level."""

    tight: ClassVar[bool | None] = None

    @abstractmethod
    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the factor, rounded up, or raise NotApplicable."""

    def read(self, model: Any, query: Query) -> tuple[ShiftFactor, Query]:
        """Return the factor, and the query that it is about."""
        return self.factor(model, query), query

    def at(self, given: tuple[ShiftFactor, Query], epsilon: float) -> Leakage:
        """Return the factor times `epsilon`."""
        found, query = given
        witness = None
        if found.adversary is not None:
            witness = adversary_witness(found.adversary, pair=query.clip)
        return self.stated(
            multiple(epsilon, Fraction(found.value)),
            checked=(found.reason,) if found.reason else (),
            witness=witness,
            tight=self.tight if found.margin <= _SHARP * found.value else None,
            mechanisms=mechanisms_of(query),
            scope=query.scope(),
        )

    def within(self, given: tuple[ShiftFactor, Query], target: float) -> float:
        """Return `target` over the factor, rounded down."""
        return scaled_down(target, Fraction(given[0].value))


class LinearExactTheorem(FactorTheorem):
    """The exact leakage of Laplace noise on an unclipped linear query.

    Notes
    -----
    Proved on the theory page "Gaussian leakage". Such a release is not DP; it protects
    pairs of secrets at most a gap apart. Shifts of different signs cancel here, and
    nowhere else: never used for a clipped release.
    """

    name = "linear-exact"
    source = "exact for unclipped linear queries (Gaussian leakage)"
    published = False
    tight: ClassVar[bool | None] = True

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest signed factor over all attackers."""
        if not isinstance(query, LinearQuery) or query.gap is None:
            raise NotApplicable(
                "the exact linear leakage needs an unclipped linear query with gap=, "
                f"got {described(query)}; clipping can freeze the record whose shift "
                "cancels, so use method='covariance' for clipped queries."
            )
        weights = weights_of(model, query)
        if isinstance(model, ExchangeableGaussian) and weights is None:
            return exchangeable_factor(model, signed=True)
        return searched_factor(model, weights=weights, signed=True)

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for blocks that take minutes."""
        return _costly(model)


class CovarianceTheorem(FactorTheorem):
    """The bound of one attacker, maximised over all of them by search.

    Notes
    -----
    Lemma 6.10 of the thesis (Proposition 6.1 of the master's thesis) for each attacker;
    any covariance, any variances. After clipping never above the group size.
    """

    name = "covariance"
    source = "Lemma 6.10, over every attacker"

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest factor over all attackers."""
        clipped = require_lipschitz(query)
        return _capped(searched_factor(model), model, clipped)

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for blocks that take minutes."""
        return _costly(model)


class SaturatedTheorem(FactorTheorem):
    """As the covariance method, each clipped record counting for at most one.

    Notes
    -----
    Proved on the theory page "Gaussian clipping": a clipped record moves by at most the
    width of the interval, and by its own weight. Never above the covariance method.
    """

    name = "saturated"
    source = "coupling by partial shifts (Gaussian clipping)"
    published = False

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest saturated factor over all attackers."""
        if not require_lipschitz(query):
            raise NotApplicable(
                "the saturated bound needs a clipped query, got an unclipped one; use "
                "method='linear-exact'."
            )
        weights = weights_of(model, query)
        found = searched_factor(model, weights=weights, saturation=_CLIPPED)
        return _capped(found, model, True)

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for blocks that take minutes."""
        return _costly(model)


class StructuredTheorem(FactorTheorem):
    """The factor of the attacker who knows nothing, where that is the worst.

    Notes
    -----
    Proved on the theory page "Gaussian structure": the precision matrix is an M-matrix
    up to signs, or the covariance is diagonally dominant. Any size.
    """

    name = "structured"
    source = "row sums (Gaussian structure)"
    published = False

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest row sum over its variance."""
        clipped = require_lipschitz(query)
        found = model.recall("structured")
        if found is None:
            found = model.remember("structured", model.structured())
        return _capped(found, model, clipped)


class ExchangeableTheorem(FactorTheorem):
    """The search over how many members of each class are known."""

    name = "exchangeable"
    source = "Lemma 6.10, over every number of known members"
    published = False

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest factor over all attackers."""
        clipped = require_lipschitz(query)
        key = ("exchangeable", clipped)
        found = model.recall(key)
        if found is None:
            saturation = _CLIPPED if clipped else None
            found = exchangeable_factor(model, saturation=saturation)
            model.remember(key, found)
        return _capped(found, model, clipped)


class _ClosedForm(FactorTheorem):
    """A closed form in group size and largest correlation."""

    variant: ClassVar[Variant]
    equal_variances: ClassVar[bool] = True

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the closed form at the limits of the model."""
        clipped = require_lipschitz(query)
        limits: Limits = model.limits()
        if self.equal_variances and limits.sd_ratio > _EQUAL:
            raise NotApplicable(
                "standard deviations must be equal (Definition 6.9), got a ratio of "
                f"{limits.sd_ratio:.6g}; use method='covariance', or 'sharp', which "
                "takes the ratio into account."
            )
        value = self._value(limits)
        reason = (
            f"correlation {limits.correlation:.6g} times (group - 2) = "
            f"{limits.correlation * (limits.group - 2):.6g} is below 1"
        )
        return _capped(ShiftFactor(value, None, reason=reason), model, clipped)

    def _value(self, limits: Limits) -> float:
        rho, ratio = limits.correlation, limits.sd_ratio
        if self.equal_variances and ratio > 1:
            # The forms grow faster than rho: raising it by the ratio covers both.
            rho, ratio = inflate(rho * ratio, 2.0**-52), 1.0
        if rho >= 1:
            raise NotApplicable(
                "correlations must be below 1, got one that is 1 to rounding; use "
                "method='general'."
            )
        return gaussian_factor(limits.group, rho, variant=self.variant, sd_ratio=ratio)


class SharpTheorem(_ClosedForm):
    """The sharp closed form; unequal standard deviations enter by their ratio."""

    name = "sharp"
    source = "sharp closed form (Gaussian leakage)"
    published = False
    variant: ClassVar[Variant] = "sharp"
    equal_variances: ClassVar[bool] = False


class IntermediateTheorem(_ClosedForm):
    """The bound inside the proof of Theorem 6.14, before it is simplified.

    A step of a proof, not a stated theorem: not counted as published.
    """

    name = "intermediate"
    source = "Equation 6.29"
    published = False
    variant: ClassVar[Variant] = "intermediate"


class ThesisTheorem(_ClosedForm):
    """The Gaussian bound of the thesis; for equal variances only."""

    name = "thesis"
    source = "Theorem 6.14 (Gaussian bound)"
    variant: ClassVar[Variant] = "thesis"


class GaussianGeneralTheorem(GeneralTheorem):
    """The general bound, refused where the release is not DP at all.

    It holds for every pair of secrets, outside the clip interval too.
    """

    def read(self, model: Model, query: Query) -> int:
        """Return the most records in one group, for a DP release."""
        require_dp(query)
        return super().read(model, query)


def gaussian_methods(*, exchangeable: bool = False) -> tuple[LeakageTheorem, ...]:
    """Return the methods for a known covariance, the strongest first."""
    more: tuple[LeakageTheorem, ...] = (ExchangeableTheorem(),) if exchangeable else ()
    return (
        LinearExactTheorem(),
        *more,
        SaturatedTheorem(),
        StructuredTheorem(),
        CovarianceTheorem(),
        *limited_methods(),
    )


def limited_methods() -> tuple[LeakageTheorem, ...]:
    """Return the methods for limited correlations, the strongest first."""
    return (
        SharpTheorem(),
        IntermediateTheorem(),
        ThesisTheorem(),
        GaussianGeneralTheorem(),
    )


def _capped(found: ShiftFactor, model: Any, clipped: bool) -> ShiftFactor:
    """Apply the general bound on top: a clipped release is DP."""
    if not clipped or model.largest_group is None:
        return found
    return replace(found, value=min(found.value, float(model.largest_group)))


def _costly(model: Any) -> str | None:
    group = model.largest_group
    if group is None or not _CHEAP_BLOCK < group <= MAX_BLOCK:
        return None
    return f"searching {group * 2 ** (group - 1)} attackers takes several seconds"


# Which Gaussian bounds a release may use: clipped, with a gap, or neither.


def require_lipschitz(query: Query) -> bool:
    """Return whether the query is clipped; refuse what is not metric private."""
    if isinstance(query, LipschitzQuery):
        return True
    if isinstance(query, LinearQuery) and query.clip is not None:
        return True
    if isinstance(query, LinearQuery) and query.gap is not None:
        return False
    raise NotApplicable(
        "Gaussian bounds need Laplace noise on a Lipschitz query of clipped records "
        f"(metric privacy, Theorem 6.14), got {described(query)}; name a LinearQuery "
        "or LipschitzQuery with clip=, or use method='general'."
    )


def require_dp(query: Query) -> None:
    """Refuse an unclipped query of unbounded records, which is not DP."""
    if isinstance(query, LinearQuery) and query.clip is None:
        raise NotApplicable(
            "the general bound needs a DP release, got an unclipped linear query of "
            "unbounded records; give clip=(low, high)."
        )


def described(query: Query) -> str:
    """Return the query in words, for refusals."""
    if query.name == "any":
        return "any epsilon-DP mechanism"
    if isinstance(query, LinearQuery):
        return "a clipped linear query" if query.clip else "a linear query, unclipped"
    return f"a {query.name} query"


def mechanisms_of(query: Query) -> str:
    """Return the class of releases a bound speaks of."""
    if query.clip is None:
        return "Laplace noise on the unclipped linear query (not DP)"
    low, high = query.clip
    return (
        "Laplace noise on an l1-Lipschitz query of records clipped to "
        f"[{low:g}, {high:g}]"
    )


def weights_of(model: Any, query: Query) -> NDArray[np.float64] | None:
    """Return the weights of a linear query; None if all records count alike."""
    if not isinstance(query, LinearQuery) or not isinstance(query.weights, tuple):
        return None
    weights = np.array(query.weights_for(model.require_size("a weighted query")))
    return None if np.all(weights == weights[0]) else weights


# Closed forms of the Gaussian factor: group size and largest correlation suffice.

Variant = Literal["sharp", "thesis", "intermediate"]
_VARIANTS = ("sharp", "thesis", "intermediate")


def gaussian_factor(
    group: int,
    correlation: float,
    *,
    variant: Variant = "sharp",
    sd_ratio: float = 1.0,
) -> float:
    r"""Return how many times the DP level leaks when correlations are limited.

    With m records in a group and correlations of at most :math:`\rho < 1/(m-2)`:

    .. math::
        h_{\text{sharp}} &= 1 + \max\{(m-1)\rho,\; \rho/(1-(m-2)\rho)\} \\
        h_{\text{intermediate}} &= 1 + \max_{0 \le k \le m-2}
            (m-k-1)(k+1)\rho/(1-k\rho) \\
        h_{\text{thesis}} &= 1 + m^2\rho/(4(1-(m-2)\rho))

    Parameters
    ----------
    group : int
        Most records that depend on each other, m.
    correlation : float
        Largest absolute correlation rho, in [0, 1).
    variant : {"sharp", "thesis", "intermediate"}
        Which closed form; the sharp one is never larger than the others.
    sd_ratio : float
        Largest ratio of standard deviations in a group; the sharp form only.

    Returns
    -------
    float
        Rounded up; 1 if the group has one record or nothing correlates.

    Raises
    ------
    NotApplicable
        If ``correlation * (group - 2) >= 1``, or if standard deviations differ and the
        variant needs equal ones.

    Notes
    -----
    ``"thesis"`` is Theorem 6.14 of [1]_ (Proposition 6.4 of [2]_), ``"intermediate"``
    its Equation 6.29; ``"sharp"`` is proved on the theory page "Gaussian leakage" and
    is attained for correlations of at most 1/(m-1). Different standard deviations
    multiply the excess over 1 by their ratio. Without clipping a factor may pass m;
    after clipping the general bound m holds as well.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> gaussian_factor(3, 0.275), round(gaussian_factor(3, 0.275, variant="thesis"), 6)
    (1.55, 1.853448)
    """
    m, rho = check_count(group, "group"), _check_correlation(correlation)
    check_choice(variant, "variant", choices=_VARIANTS)
    ratio = _check_ratio(sd_ratio, variant)
    if m == 1 or rho == 0:
        return 1.0
    if rho * (m - 2) >= 1:
        raise NotApplicable(
            "correlation * (group - 2) must be below 1 (Theorem 6.14), got "
            f"{float(rho * (m - 2)):.6g} for groups of {m}; give the covariance "
            "(method='covariance' or 'structured'), or use method='general'."
        )
    if variant == "intermediate":
        return _intermediate(m, rho)
    if variant == "thesis":
        return round_up(1 + m * m * rho / (4 * (1 - (m - 2) * rho)))
    return round_up(1 + ratio * max((m - 1) * rho, rho / (1 - (m - 2) * rho)))


def gaussian_crossover(group: int) -> float:
    r"""Return the correlation up to which Theorem 6.14 beats the general bound.

    .. math:: \rho \le \frac{4(m-1)}{5m^2 - 12m + 8}

    Parameters
    ----------
    group : int
        Most records that depend on each other, m; at least 2.

    Notes
    -----
    Equation 6.43 of the thesis; about 0.8/m for large groups.

    Examples
    --------
    >>> gaussian_crossover(4)
    0.3
    """
    m = check_count(group, "group", minimum=2)
    return round_down(Fraction(4 * (m - 1), 5 * m * m - 12 * m + 8))


def gaussian_correlation_limit(
    factor: float, group: int, *, variant: Variant = "sharp"
) -> float:
    r"""Return the largest correlation that costs at most `factor`.

    .. math:: \rho_{\text{thesis}} = \frac{4(h-1)}{m^2 + 4(h-1)(m-2)}, \qquad
              \rho_{\text{sharp}} = \min\Bigl\{\frac{h-1}{m-1},
              \frac{h-1}{1+(h-1)(m-2)}\Bigr\}

    Parameters
    ----------
    factor : float
        Noise accepted, as a multiple h of that for independent records; above 1.
    group : int
        Most records that depend on each other, m; at least 2.
    variant : {"sharp", "thesis", "intermediate"}
        Which closed form is inverted.

    Returns
    -------
    float
        Rounded down, so that :func:`gaussian_factor` at it is at most `factor`; just
        below 1 where no correlation costs more.

    Notes
    -----
    Corollary 6.5 of the master's thesis for ``"thesis"``, where the error is counted
    with respect to the clipped sum.

    Examples
    --------
    >>> gaussian_correlation_limit(2.0, 101)
    0.01
    >>> round(gaussian_correlation_limit(2.0, 100, variant="thesis"), 12)
    0.00038491147
    """
    m = check_count(group, "group", minimum=2)
    check_choice(variant, "variant", choices=_VARIANTS)
    if check_finite(factor, "factor") <= 1:
        raise ValueError(f"factor must be above 1, got {factor}.")
    more = Fraction(float(factor)) - 1
    if variant == "intermediate":
        return _intermediate_limit(factor, m)
    if variant == "thesis":
        limit = 4 * more / (m * m + 4 * more * (m - 2))
    else:
        limit = min(more / (m - 1), more / (1 + more * (m - 2)))
    if limit >= 1:
        return nudge_down(1.0)
    nearest = float(limit)  # read again through its shortest decimal form
    return nearest if exact(nearest) <= limit else nudge_down(nearest)


def _intermediate(m: int, rho: Fraction) -> float:
    def at(k: int) -> Fraction:
        return (m - k - 1) * (k + 1) * rho / (1 - k * rho)

    # Concave over positive and affine: it grows, then falls.
    low, high = 0, m - 2
    while low < high:
        middle = (low + high) // 2
        if at(middle) < at(middle + 1):
            low = middle + 1
        else:
            high = middle
    return round_up(1 + at(low))


def _intermediate_limit(factor: float, m: int) -> float:
    def within(rho: float) -> bool:
        try:
            return gaussian_factor(m, rho, variant="intermediate") <= factor
        except NotApplicable:
            return False

    return greatest_float(within, low=0.0, high=1.0)


def _check_correlation(correlation: float) -> Fraction:
    number = check_finite(correlation, "correlation")
    if not 0 <= number < 1:
        raise ValueError(f"correlation must be in [0, 1), got {correlation}.")
    return Fraction(exact(number))


def _check_ratio(sd_ratio: float, variant: str) -> Fraction:
    ratio = check_finite(sd_ratio, "sd_ratio")
    if ratio < 1:
        raise ValueError(f"sd_ratio must be at least 1, got {sd_ratio}.")
    if ratio > 1 and variant != "sharp":
        raise NotApplicable(
            "standard deviations must be equal (Definition 6.9), got a ratio of "
            f"{ratio:.6g}; use variant='sharp', or the covariance."
        )
    return Fraction(exact(ratio))
