"""Families of mechanisms that differ in one parameter, and their risk curves."""

from undertow.risk.families.base import CoveredFamily, Curve, Family
from undertow.risk.families.central import (
    FAMILIES,
    exponential,
    family,
    finite,
    gaussian,
    gaussian_sum,
    laplace,
    laplace_sum,
    subset,
)
from undertow.risk.families.local import blh, grr, olh, oue, she, ss, sue, the

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
