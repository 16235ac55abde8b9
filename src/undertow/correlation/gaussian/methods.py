"""The Gaussian theorems as methods: each says when it applies, and to which releases.

All but the general bound need more than a DP level: the release must be private in the
l1 metric, as Laplace noise on a Lipschitz query is (Theorem 6.14 of Guerra-Balboa,
2026). A threshold count of real values is not.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from undertow._numeric import inflate, nudge_down
from undertow._validate import check_positive
from undertow.correlation.adversary import adversary_witness
from undertow.correlation.gaussian.exchangeable import (
    ExchangeableGaussian,
    exchangeable_factor,
)
from undertow.correlation.gaussian.factor import Variant, gaussian_factor
from undertow.correlation.gaussian.law import Limits
from undertow.correlation.gaussian.release import (
    described,
    mechanisms_of,
    require_dp,
    require_lipschitz,
    weights_of,
)
from undertow.correlation.gaussian.search import searched_factor
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.sweep import MAX_BLOCK, Saturation
from undertow.correlation.general import GeneralMethod
from undertow.correlation.method import Method, check_level
from undertow.correlation.model import Model
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable
from undertow.privacy.exact import exact, round_up_decimal

__all__ = [
    "CovarianceMethod",
    "ExchangeableMethod",
    "FactorMethod",
    "GaussianGeneralMethod",
    "IntermediateMethod",
    "LinearExactMethod",
    "SaturatedMethod",
    "SharpMethod",
    "StructuredMethod",
    "ThesisMethod",
    "gaussian_methods",
    "limited_methods",
]

# Larger blocks are searched only when the method is asked for by name.
_CHEAP_BLOCK = 17
# Standard deviations this close are equal; what they differ by is still paid for.
_EQUAL = 1 + 1e-9
# A larger rounding margin, relative to the factor, and the value is a bound, not exact.
_SHARP = 1e-9
_CLIPPED = Saturation(((1.0, 1.0),), 1.0)


class FactorMethod(Method):
    """A theorem of the form: leakage at most a factor times the DP level."""

    tight: ClassVar[bool | None] = None

    @abstractmethod
    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the factor, rounded up, or raise NotApplicable."""

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the factor times `epsilon`."""
        epsilon = check_level(epsilon)
        found = self.factor(model, query)
        witness = None
        if found.adversary is not None:
            witness = adversary_witness(found.adversary, pair=query.clip)
        return Leakage(
            round_up_decimal(Fraction(exact(epsilon)) * Fraction(found.value)),
            self.theorem,
            checked=(found.reason,) if found.reason else (),
            witness=witness,
            tight=self.tight if found.margin <= _SHARP * found.value else None,
            method=self.name,
            mechanisms=mechanisms_of(query),
            scope=query.scope(),
        )

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return `target` over the factor, rounded down."""
        target = check_positive(target, "target")
        factor = Fraction(self.factor(model, query).value)
        level = float(target / factor)
        while Fraction(exact(level)) * factor > exact(target):
            level = nudge_down(level)
        return level


class LinearExactMethod(FactorMethod):
    """The exact leakage of Laplace noise on an unclipped linear query.

    Notes
    -----
    Proved on the theory page "Gaussian leakage". Such a release is not DP; it protects
    pairs of secrets at most a gap apart. Shifts of different signs cancel here, and
    nowhere else: never used for a clipped release.
    """

    name: ClassVar[str] = "linear-exact"
    theorem: ClassVar[str] = "exact for unclipped linear queries (Gaussian leakage)"
    published: ClassVar[bool] = False
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


class CovarianceMethod(FactorMethod):
    """The bound of one attacker, maximised over all of them by search.

    Notes
    -----
    Lemma 6.10 of the thesis (Proposition 6.1 of the master's thesis) for each attacker;
    any covariance, any variances. After clipping never above the group size.
    """

    name: ClassVar[str] = "covariance"
    theorem: ClassVar[str] = "Lemma 6.10, over every attacker"

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest factor over all attackers."""
        clipped = require_lipschitz(query)
        return _capped(searched_factor(model), model, clipped)

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for blocks that take minutes."""
        return _costly(model)


class SaturatedMethod(FactorMethod):
    """As the covariance method, each clipped record counting for at most one.

    Notes
    -----
    Proved on the theory page "Gaussian clipping": a clipped record moves by at most the
    width of the interval, and by its own weight. Never above the covariance method.
    """

    name: ClassVar[str] = "saturated"
    theorem: ClassVar[str] = "coupling by partial shifts (Gaussian clipping)"
    published: ClassVar[bool] = False

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


class StructuredMethod(FactorMethod):
    """The factor of the attacker who knows nothing, where that is the worst.

    Notes
    -----
    Proved on the theory page "Gaussian structure": the precision matrix is an M-matrix
    up to signs, or the covariance is diagonally dominant. Any size.
    """

    name: ClassVar[str] = "structured"
    theorem: ClassVar[str] = "row sums (Gaussian structure)"
    published: ClassVar[bool] = False

    def factor(self, model: Any, query: Query) -> ShiftFactor:
        """Return the largest row sum over its variance."""
        clipped = require_lipschitz(query)
        found = model.recall("structured")
        if found is None:
            found = model.remember("structured", model.structured())
        return _capped(found, model, clipped)


class ExchangeableMethod(FactorMethod):
    """The search over how many members of each class are known."""

    name: ClassVar[str] = "exchangeable"
    theorem: ClassVar[str] = "Lemma 6.10, over every number of known members"
    published: ClassVar[bool] = False

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


class _ClosedForm(FactorMethod):
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


class SharpMethod(_ClosedForm):
    """The sharp closed form; unequal standard deviations enter by their ratio."""

    name: ClassVar[str] = "sharp"
    theorem: ClassVar[str] = "sharp closed form (Gaussian leakage)"
    published: ClassVar[bool] = False
    variant: ClassVar[Variant] = "sharp"
    equal_variances: ClassVar[bool] = False


class IntermediateMethod(_ClosedForm):
    """The bound inside the proof of Theorem 6.14, before it is simplified.

    A step of a proof, not a stated theorem: not counted as published.
    """

    name: ClassVar[str] = "intermediate"
    theorem: ClassVar[str] = "Equation 6.29"
    published: ClassVar[bool] = False
    variant: ClassVar[Variant] = "intermediate"


class ThesisMethod(_ClosedForm):
    """The Gaussian bound of the thesis; for equal variances only."""

    name: ClassVar[str] = "thesis"
    theorem: ClassVar[str] = "Theorem 6.14 (Gaussian bound)"
    variant: ClassVar[Variant] = "thesis"


class GaussianGeneralMethod(GeneralMethod):
    """The general bound, refused where the release is not DP at all.

    It holds for every pair of secrets, outside the clip interval too.
    """

    def leakage(self, model: Model, epsilon: float, *, query: Query) -> Leakage:
        """Return m times `epsilon`, for a DP release."""
        require_dp(query)
        return super().leakage(model, epsilon, query=query)

    def budget(self, model: Model, target: float, *, query: Query) -> float:
        """Return `target` over m, for a DP release."""
        require_dp(query)
        return super().budget(model, target, query=query)


def gaussian_methods(*, exchangeable: bool = False) -> tuple[Method, ...]:
    """Return the methods for a known covariance, the strongest first."""
    more: tuple[Method, ...] = (ExchangeableMethod(),) if exchangeable else ()
    return (
        LinearExactMethod(),
        *more,
        SaturatedMethod(),
        StructuredMethod(),
        CovarianceMethod(),
        *limited_methods(),
    )


def limited_methods() -> tuple[Method, ...]:
    """Return the methods for limited correlations, the strongest first."""
    return SharpMethod(), IntermediateMethod(), ThesisMethod(), GaussianGeneralMethod()


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
