"""What a computation hands back: a proved `Bound`, a measured `Estimate`, a choice.

A guarantee is never a bare float. A `Bound` names its theorem, which hypotheses were
checked and which must be taken on trust, and the `Witness` that attains it; an
`Estimate` carries its interval, confidence, trials and seed; a `Calibration` the chosen
parameter and why the alternatives were not chosen. Each has ``to_dict()``, a terminal
form and an HTML form.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from undertow.numeric.exact import round_up

# What a terminal renderer reads as markup: a tag, or any other opening bracket.
_MARKUP = re.compile(r"(\\*)(\[[a-z#/@][^[]*?])|\[")


def to_plain(value: Any) -> Any:
    """Turn a result into what JSON can hold: floats rounded up, infinity as ``"inf"``.

    Examples
    --------
    >>> to_plain({"loss": math.inf, "pair": (Fraction(1, 2), frozenset({"b", "a"}))})
    {'loss': 'inf', 'pair': [0.5, ['a', 'b']]}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Fraction):
        return _plain_float(round_up(value))
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [to_plain(item) for item in sorted(value, key=repr)]
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return to_plain(value.tolist())
    if isinstance(value, float):
        return _plain_float(value)
    return str(value)


def _plain_float(value: float) -> float | str:
    if math.isnan(value):
        raise ValueError("a result must be a number, got nan.")
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


class _Shown:
    """Terminal and HTML rendering shared by the results."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        assert is_dataclass(self)
        return {f.name: to_plain(getattr(self, f.name)) for f in fields(self)}

    def __rich__(self) -> str:
        rows = (
            f"[bold]{key}[/bold]  {escape_markup(text)}" for key, text in self._rows()
        )
        return "\n".join([f"[bold underline]{type(self).__name__}[/]", *rows])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(key)}</th>"
            f"<td>{html.escape(text)}</td></tr>"
            for key, text in self._rows()
        )
        return f"<table><caption>{type(self).__name__}</caption>{cells}</table>"

    def _rows(self) -> list[tuple[str, str]]:
        shown = self.to_dict().items()
        return [
            (k.replace("_", " "), _text(v)) for k, v in shown if v not in ([], None)
        ]


def escape_markup(text: str) -> str:
    r"""Return text that a terminal renderer shows as it is, brackets included.

    Examples
    --------
    >>> print(escape_markup("cells [a], [1]"))
    cells \[a], \[1]
    """
    return _MARKUP.sub(_escape_match, text)


def _escape_match(found: re.Match[str]) -> str:
    slashes, tag = found.groups()
    # Before a tag, and only there, two backslashes stand for one.
    return "\\[" if tag is None else f"{slashes}{slashes}\\{tag}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_text(item)}" for key, item in value.items())
    return str(value)


@dataclass(frozen=True, slots=True)
class Witness(_Shown):
    """The concrete pair, change, adversary or event that attains a bound.

    Parameters
    ----------
    kind : str
        What it is: ``"pair"``, ``"change"``, ``"adversary"``, ``"event"``.
    summary : str
        One line a person can read.
    details : mapping, optional
        The object itself, by name.
    """

    kind: str
    summary: str
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Witness, (self.kind, self.summary, dict(self.details))


@dataclass(frozen=True, slots=True)
class Bound(_Shown):
    """A number that is proved.

    Parameters
    ----------
    value : float
        Rounded so that the statement stays true.
    theorem : str
        The statement that proves it, as numbered in its source.
    unchecked : tuple of str
        Hypotheses that cannot be checked here and must be taken on trust.
    checked : tuple of str
        Hypotheses that were checked.
    quantity : str
        What the value is, such as ``"epsilon"``.
    witness : Witness, optional
        What attains it.
    tight : bool, optional
        Whether equality holds; None where that is not known.
    """

    value: float
    theorem: str
    unchecked: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    quantity: str = "epsilon"
    witness: Witness | None = None
    tight: bool | None = None

    def __post_init__(self) -> None:
        _require_number(self.value)


@dataclass(frozen=True, slots=True)
class Estimate(_Shown):
    """A number that was measured.

    Parameters
    ----------
    value : float
        The point estimate.
    low, high : float
        The interval.
    confidence : float
        Probability that the interval covers the truth, in (0, 1).
    trials : int
        Number of trials behind it.
    seed : int, optional
        What reproduces it; None for a run on operating-system entropy.
    method : str
        How the interval was made.
    """

    value: float
    low: float
    high: float
    confidence: float
    trials: int
    seed: int | None = None
    method: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"value must lie in its interval [{self.low}, {self.high}], "
                f"got {self.value}."
            )
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be in (0, 1), got {self.confidence}.")
        if self.trials < 1:
            raise ValueError(f"trials must be positive, got {self.trials}.")


@dataclass(frozen=True, slots=True)
class Alternative(_Shown):
    """A choice that was considered and not taken, with the reason."""

    name: str
    reason: str
    parameter: float | None = None


@dataclass(frozen=True, slots=True)
class Calibration(_Shown):
    """A chosen parameter, what it achieves, and what was not chosen.

    Parameters
    ----------
    parameter : str
        Name of what was chosen, such as ``"scale"``.
    value : float
        The choice, rounded to the private side.
    achieves : Bound
        What it guarantees.
    method : str
        How it was found.
    alternatives : tuple of Alternative
        What else was considered, with why not.
    """

    parameter: str
    value: float
    achieves: Bound
    method: str
    alternatives: tuple[Alternative, ...] = ()

    def __post_init__(self) -> None:
        _require_number(self.value)


def _require_number(value: float) -> None:
    if math.isnan(value):
        raise ValueError("value must be a number, got nan.")
