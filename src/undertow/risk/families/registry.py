"""The families by the names of the command line.

One constructor each; those on categories take their number, those on numbers the
answers, sums the ends of the range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from undertow._validate import check_choice
from undertow.risk.families.base import Family
from undertow.risk.families.local import grr, she
from undertow.risk.families.scalar import gaussian, gaussian_sum, laplace, laplace_sum
from undertow.risk.families.steps import olh, ss
from undertow.risk.families.tables import exponential
from undertow.risk.families.unary import blh, oue, sue, the

__all__ = ["FAMILIES", "family", "subset"]

subset = ss

FAMILIES: Mapping[str, Callable[..., Family]] = MappingProxyType(
    {
        "grr": grr,
        "sue": sue,
        "oue": oue,
        "ss": ss,
        "blh": blh,
        "olh": olh,
        "she": she,
        "the": the,
        "laplace": laplace,
        "gaussian": gaussian,
        "laplace-sum": laplace_sum,
        "gaussian-sum": gaussian_sum,
        "exponential": exponential,
    }
)
"""Constructors of the families, by command-line name."""


def family(name: str, *arguments: Any, **options: Any) -> Family:
    """Return a family by its command-line name.

    Parameters
    ----------
    name : str
        A key of `FAMILIES`.
    *arguments, **options
        What its constructor takes.

    Raises
    ------
    ValueError
        If there is no family of that name.

    Examples
    --------
    >>> family("oue", 10)
    <Family oue: 10 records, by epsilon>
    """
    check_choice(name, "name", choices=tuple(FAMILIES))
    return FAMILIES[name](*arguments, **options)
