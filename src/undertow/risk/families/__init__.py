"""Families of mechanisms that differ in one parameter, and their risk curves."""

from undertow.risk.families.base import CoveredFamily, Curve, Family
from undertow.risk.families.local import grr, she
from undertow.risk.families.registry import FAMILIES, family, subset
from undertow.risk.families.scalar import (
    gaussian,
    gaussian_sum,
    laplace,
    laplace_sum,
)
from undertow.risk.families.steps import olh, ss
from undertow.risk.families.tables import exponential, finite
from undertow.risk.families.unary import blh, oue, sue, the

__all__ = [
    "FAMILIES",
    "CoveredFamily",
    "Curve",
    "Family",
    "blh",
    "exponential",
    "family",
    "finite",
    "gaussian",
    "gaussian_sum",
    "grr",
    "laplace",
    "laplace_sum",
    "olh",
    "oue",
    "she",
    "ss",
    "subset",
    "sue",
    "the",
]
