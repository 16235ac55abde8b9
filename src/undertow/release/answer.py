"""Noisy whole numbers become tables of estimates with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from undertow.mechanisms import NoiseSource
from undertow.release.budget import Share
from undertow.release.discovery import kept_cells
from undertow.release.intervals import IntegerNoise
from undertow.release.job import Aggregates
from undertow.release.measure import Encoding, Integers

__all__ = ["Noised", "QueryAnswer", "add_noise", "answer_table"]

_ENDS = ("estimate", "low", "high")


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The table of one query, safe to publish if the noise was secure.

    Parameters
    ----------
    name : str
        The query's name.
    columns : tuple of str
        Keys, what tells answers of one cell apart, then estimate, low and high.
    rows : list of tuple
        One row per answer.
    confidence : float
        Of each interval by itself.
    notes : tuple of str
        What a reader must know.
    simulated : bool
        Whether the noise was seeded; such answers may not be published.
    deviation : float
        Standard deviation of the noise of one whole number.
    nodes : dict of str to list of list of int
        Noisy nodes released in this run of a running total, to be stored with the
        output: later runs add them up.
    types : tuple of str
        Types of the columns in the words of JSON Schema; they do not depend on the
        rows.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    confidence: float
    notes: tuple[str, ...] = ()
    simulated: bool = False
    deviation: float = 0.0
    nodes: dict[str, list[list[int]]] = field(default_factory=dict)
    types: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, dates as text."""
        return {
            "name": self.name,
            "columns": list(self.columns),
            "types": list(self.types),
            "rows": [[_plain(value) for value in row] for row in self.rows],
            "confidence": self.confidence,
            "notes": list(self.notes),
            "simulated": self.simulated,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Noised:
    """Noisy whole numbers of the cells that are published.

    Parameters
    ----------
    cells : tuple of tuple
        The keys of the cells.
    numbers : ndarray
        One row per cell, one column per number of the encoding.
    simulated : bool
        Whether the noise was seeded.
    """

    cells: tuple[tuple[Any, ...], ...]
    numbers: Integers
    simulated: bool


def add_noise(
    aggregates: Aggregates,
    *,
    encoding: Encoding,
    share: Share,
    keys: Share | None,
    threshold: int | None,
    source: NoiseSource | None,
) -> Noised:
    """Draw the noise of one query, once.

    Parameters
    ----------
    aggregates : Aggregates
        What the engine returned.
    encoding : Encoding
        The whole numbers of a cell.
    share : Share
        Their noise.
    keys, threshold : Share and int, optional
        How keys are chosen where they are discovered; the same share as `share` where
        the numbers of units are the answer.
    source : NoiseSource, optional
        Operating-system entropy by default.
    """
    if threshold is None:
        values = encoding.vector(aggregates)
        cells = tuple(cell[: _width(cell, encoding)] for cell in aggregates.cells)
        noisy, seeded = _noisy(values, share.noise, source)
        return Noised(cells[:: encoding.bins], noisy, seeded)
    assert keys is not None
    units = np.array(
        [int(k) for k in aggregates.measures["units"]], dtype=np.object_
    ).reshape(-1, 1)
    counted, seeded = _noisy(units, keys.noise, source)
    kept = kept_cells(counted[:, 0], threshold)
    cells = tuple(aggregates.cells[at] for at in kept)
    if keys is share:
        return Noised(cells, counted[kept], seeded)
    noisy, seeded = _noisy(encoding.vector(aggregates)[kept], share.noise, source)
    return Noised(cells, noisy, seeded)


def answer_table(
    noised: Noised, *, encoding: Encoding, noise: IntegerNoise, beta: float
) -> list[tuple[Any, ...]]:
    """Return keys, estimate and interval of every published answer."""
    estimates = (
        encoding.read(noised.numbers, noise=noise, beta=beta) if noised.cells else []
    )
    keys = [cell + label for cell in noised.cells for label in encoding.labels]
    return [(*key, *found) for key, found in zip(keys, estimates, strict=True)]


def answer_columns(by: Sequence[str], encoding: Encoding) -> tuple[str, ...]:
    """Return the names of the columns of an answer."""
    return (*by, *encoding.label_columns, *_ENDS)


def stored_nodes(earlier: Mapping[str, Sequence[Any]]) -> dict[str, Integers]:
    """Read nodes stored with earlier outputs."""
    return {
        name: np.array([[int(k) for k in row] for row in rows], dtype=np.object_)
        for name, rows in earlier.items()
    }


def _noisy(
    values: Integers, noise: IntegerNoise, source: NoiseSource | None
) -> tuple[Integers, bool]:
    if values.size == 0:
        return values, bool(source is not None and source.simulated)
    draw = noise.add_to(values, source=source)
    return draw.values, draw.simulated


def _width(cell: tuple[Any, ...], encoding: Encoding) -> int:
    """Return how many keys of an engine cell are keys of the query."""
    return len(cell) - (1 if encoding.label_columns else 0)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)
