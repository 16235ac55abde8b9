"""Which family a protocol belongs to, and which level its simple attack tells."""

from __future__ import annotations

from typing import Any, SupportsIndex

from undertow.audit.inversion import Inversion, estimate_level
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    hash_buckets,
    subset_size,
    the_threshold,
)

__all__ = ["estimate_protocol_level"]

# Classes whose law is fixed by the categories and epsilon.
_PLAIN = {
    GeneralizedResponse: "grr",
    OptimizedUnary: "oue",
    SummationHistogram: "she",
    SymmetricUnary: "sue",
}


def estimate_protocol_level(
    protocol: Any,
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    confidence: float = 0.99,
) -> Inversion | None:
    """Estimate the level of a protocol by the family that its class belongs to.

    Parameters
    ----------
    protocol : LocalProtocol
        Its class and its sizes are used; its epsilon only to tell whether the sizes and
        the threshold follow the rule of the family.
    successes, trials : int
        Right guesses of the simple attack, of how many; every value equally often.
    confidence : float, optional
        Of the two-sided interval.

    Returns
    -------
    Inversion or None
        None for whatever is no protocol, for an encoding with probabilities of its own,
        and for a threshold other than the best one: no level stands for them.

    Examples
    --------
    >>> fit = estimate_protocol_level(GeneralizedResponse(100, 1), 6945, 100_000)
    >>> fit.family, round(fit.value, 3)
    ('grr', 2.0)
    """
    found = _family_of(protocol)
    if found is None:
        return None
    family, shape = found
    return estimate_level(
        family,
        successes,
        trials,
        categories=protocol.categories,
        shape=shape,
        confidence=confidence,
    )


def _family_of(protocol: Any) -> tuple[str, int | None] | None:
    """Return the family of a protocol, and its sizes if they are not by the rule."""
    if isinstance(protocol, SubsetSelection):
        rule = subset_size(protocol.categories, float(protocol.epsilon))
        return "ss", None if protocol.subset == rule else protocol.subset
    if isinstance(protocol, LocalHashing):
        if protocol.buckets == 2 and not isinstance(protocol, OptimizedHashing):
            return "blh", None
        rule = hash_buckets(float(protocol.epsilon))
        return "olh", None if protocol.buckets == rule else protocol.buckets
    if isinstance(protocol, ThresholdHistogram):
        best = the_threshold(float(protocol.epsilon))
        return ("the", None) if protocol.threshold == best else None
    plain = _PLAIN.get(type(protocol))
    return None if plain is None else (plain, None)
