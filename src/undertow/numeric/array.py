"""Array types, arrays that users hand in, and sums over a law without cancellation."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Array = NDArray[np.float64]
Matrix = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]
Levels = TypeVar("Levels", float, Floats)
"""One level, or an array of them."""


def functions_of(level: float | Floats) -> Any:
    """Return where a formula finds exp: math for a float, numpy for an array.

    The two differ in the last digit, so that one number is not read as an array of one.
    """
    return np if isinstance(level, np.ndarray) else math


def read_floats(
    values: Any, name: str, *, error: type[ValueError] = ValueError
) -> Floats:
    """Copy numbers into an array of floats, in the order of their rows.

    Text, truth values and rows of different lengths are refused; nan is left to the
    check of range that follows.

    Examples
    --------
    >>> read_floats([1, 2.5], "pmf").tolist()
    [1.0, 2.5]
    """
    try:
        given = np.asarray(values)
        kinds = given.dtype.kind
        if kinds == "O":  # fractions, decimals, large integers
            mixed = any(isinstance(v, str | bytes | bool) for v in given.ravel())
            kinds = "U" if mixed else "f"
        array = np.array(given, dtype=np.float64, order="C") if kinds in "iuf" else None
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None:
        raise error(
            f"{name} must be an array of numbers, got {type(values).__name__} with "
            "other entries or uneven rows."
        )
    return array


def read_law(
    values: Any,
    name: str,
    *,
    tolerance: float,
    normalised: bool = True,
    error: type[ValueError] = ValueError,
    remedy: str = "divide by the sum",
) -> Floats:
    """Read the probabilities of a law: a vector of chances that sum to 1.

    Parameters
    ----------
    values : array_like of shape (m,)
        The probabilities; m at least 1.
    name : str
        The argument's name, for the error message.
    tolerance : float
        By how much the sum, added up without rounding, may miss 1.
    normalised : bool, optional
        Whether what is missing is shared out in proportion; otherwise the values are
        returned as they are.
    error : type, optional
        What is raised.
    remedy : str, optional
        The way out that the error message names.

    Examples
    --------
    >>> read_law([0.25, 0.75], "prior", tolerance=1e-9).tolist()
    [0.25, 0.75]
    """
    masses = read_floats(values, name, error=error)
    if masses.ndim != 1 or not masses.size:
        raise error(
            f"{name} must be a vector of at least one probability, got shape "
            f"{masses.shape}."
        )
    least, most = float(masses.min()), float(masses.max())
    # Sums beyond the floats, and infinities that cancel, are not formed.
    total = math.fsum(masses.tolist()) if 0 <= least <= most <= 2 else math.nan
    if not abs(total - 1.0) <= tolerance:
        wrong = f"entries from {least} to {most}"
        if not math.isnan(total):
            wrong = f"the sum {total}"
        raise error(f"{name} must be non-negative and sum to 1, got {wrong}; {remedy}.")
    return np.asarray(masses / total) if normalised and total != 1.0 else masses


def complements(pmf: Floats) -> Floats:
    """Return the mass of all other records for each one of a law.

    For the likeliest record the others are added up: 1 minus its probability has no
    digits left where that rounds to 1.

    Examples
    --------
    >>> complements(np.array([1.0, 1e-20])).tolist()
    [1e-20, 1.0]
    """
    others = np.maximum(0.0, 1.0 - pmf)
    top = int(pmf.argmax())
    others[top] = math.fsum(np.delete(pmf, top).tolist())
    return np.asarray(others)


def disagreement(pmf: Floats) -> float:
    r"""Return :math:`1 - \kappa = \sum \pi (1 - \pi)`, to a relative :math:`2^{-49}`.

    Examples
    --------
    >>> disagreement(np.array([1.0, 1e-20]))
    2e-20
    """
    return math.fsum((pmf * complements(pmf)).tolist())
