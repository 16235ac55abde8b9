"""What a plan costs at one granularity, with the evidence."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from undertow.privacy.conversion import convert
from undertow.privacy.exact import Number
from undertow.privacy.loss import Approx, Loss
from undertow.privacy.result import Witness, escape_markup, to_plain

__all__ = ["Report", "reports_table"]

_PARAMETERS = ("epsilon", "delta", "rho", "mu")


@dataclass(frozen=True, slots=True)
class Report:
    """The composed loss of a plan at one granularity.

    Parameters
    ----------
    granularity : str
        The name of the protected unit.
    loss : Pure, Approx, ZCDP or GDP
        The composed loss; infinite where nothing can be promised.
    witness : Witness or None
        The change that costs most; None if there is no release.
    contributions : mapping of str to Loss
        What each release costs at the witness, the untouched left out.
    sequential : Loss
        The baseline: each release at its own worst case, added up.
    theorems : tuple of str
        The statements that prove the loss.
    unprotected : tuple of str
        What the granularity publishes in the clear.
    warnings : tuple of str
        What a reader must know before relying on the number.
    assumptions : tuple of str
        Hypotheses that were declared and cannot be checked here.
    tight : bool
        Whether a pair of databases attains the loss through these bounds.
    profile : tuple of Approx
        For approximate losses, the pairs that hold together; `loss` is their maximum
        coordinate by coordinate.
    """

    granularity: str
    loss: Loss
    witness: Witness | None
    contributions: Mapping[str, Loss] = field(hash=False)
    sequential: Loss
    theorems: tuple[str, ...]
    unprotected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    tight: bool = True
    profile: tuple[Approx, ...] = ()

    def to_approx(self, delta: Number) -> Approx:
        r"""Return the loss as one :math:`(\varepsilon, \delta)` statement.

        Examples
        --------
        >>> from undertow.privacy import GDP
        >>> report = Report("bounded", GDP(1) + GDP(1), None, {}, GDP(1), ())
        >>> round(report.to_approx("1e-5").epsilon, 6)
        6.57297
        """
        converted = convert(self.loss, Approx, delta=delta)
        assert isinstance(converted, Approx)
        return converted

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values; losses not of its notion are None."""
        shown = self.loss.to_dict()
        record: dict[str, Any] = {
            "granularity": self.granularity,
            "notion": self.loss.notion,
            **{name: to_plain(shown.get(name)) for name in _PARAMETERS},
            "witness": None if self.witness is None else self.witness.to_dict(),
            "contributions": to_plain(self.contributions),
            "sequential": to_plain(self.sequential),
            "theorems": list(self.theorems),
            "unprotected": list(self.unprotected),
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
            "tight": self.tight,
        }
        if len(self.profile) > 1:
            record["profile"] = to_plain(self.profile)
        return record

    def __rich__(self) -> str:
        rows = self._rows()
        return "\n".join(f"[bold]{key}[/bold]  {escape_markup(v)}" for key, v in rows)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(key)}</th>"
            f"<td>{html.escape(text)}</td></tr>"
            for key, text in self._rows()
        )
        return f"<table>{cells}</table>"

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("granularity", self.granularity), ("loss", str(self.loss))]
        if self.witness is not None:
            rows.append(("at worst", self.witness.summary))
        rows.append(("without views", str(self.sequential)))
        rows += [("theorem", text) for text in self.theorems]
        rows += [("not protected", text) for text in self.unprotected]
        rows += [("assumed", text) for text in self.assumptions]
        rows += [("warning", text) for text in self.warnings]
        return rows


def reports_table(reports: Sequence[Report]) -> str:
    """Lay reports side by side as plain text, one line a granularity."""
    header = ("granularity", "loss", "without views", "at worst")
    lines = [header] + [
        (
            report.granularity,
            str(report.loss),
            str(report.sequential),
            "" if report.witness is None else report.witness.summary,
        )
        for report in reports
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[3]])
        for line in lines
    ).rstrip()
