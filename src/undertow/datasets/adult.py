"""Adult: 32 561 people of the 1994 census, and their hours of work per week.

The hours are a number in 0, ..., 100, and 46.7 % of the people work 40. The counts come
as text, the whole table as Parquet, which needs pyarrow (extra ``data``). The stand-in
for the counts is a mixture that anyone can write down; it is not the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice
from undertow.datasets.folder import read_columns, require_file
from undertow.errors import DataError
from undertow.risk import Prior

__all__ = [
    "HOURS_LIMIT",
    "Adult",
    "Hours",
    "hours_stand_in",
    "load_adult",
    "load_adult_hours",
    "read_parquet",
]

HOURS_LIMIT = 100
"""The largest number of hours a week."""

_PEOPLE = 32_561
# The stand-in: 46.7 % at 40, then round numbers, then everybody else.
_AT_FORTY, _ROUND, _OTHERS = 0.467, 0.333, 0.2
_ROUND_LAW, _OTHER_LAW = (42.0, 15.0), (38.0, 14.0)


@dataclass(frozen=True, eq=False)
class Hours:
    """How many people work 0, 1, ..., 100 hours a week.

    Parameters
    ----------
    counts : ndarray of int, shape (101,)
        People by hours.
    real : bool
        Whether these are the real counts.
    """

    counts: NDArray[np.int64]
    real: bool

    def prior(self) -> Prior:
        """Return the relative frequencies as a prior on 0, ..., 100."""
        return Prior.from_counts(dict(enumerate(self.counts.tolist())))


@dataclass(frozen=True, eq=False)
class Adult:
    """The table, by column.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Fifteen columns: whole numbers as int64, words as objects, None where missing.
    real : bool
        Always true: there is no stand-in for the table.
    """

    columns: dict[str, NDArray[Any]]
    real: bool = True

    def __len__(self) -> int:
        return len(self.columns["age"])


def load_adult_hours(folder: Path) -> Hours:
    """Read ``adult/hours_per_week_counts.csv``; needs no extra.

    Raises
    ------
    DataError
        If the file is missing or does not count the hours 0, ..., 100 in order.
    """
    path = require_file(folder, "adult/hours_per_week_counts.csv")
    columns = read_columns(path, ("hours_per_week", "count"))
    if columns["hours_per_week"] != [str(hour) for hour in range(HOURS_LIMIT + 1)]:
        raise DataError(
            f"{path} must count the hours 0 to {HOURS_LIMIT} in order, "
            f"got {len(columns['count'])} rows."
        )
    return Hours(np.array(columns["count"], dtype=np.int64), real=True)


def hours_stand_in() -> Hours:
    """Return 32 561 people of a mixture; no randomness.

    46.7 % work 40 hours. 33.3 % work another positive multiple of five below 100, in
    proportion to the normal density of mean 42 and deviation 15; 20 % work another
    number from 1 to 99, in proportion to that of mean 38 and deviation 14. Shares are
    rounded to people, and what is missing is put at 40.

    Examples
    --------
    >>> hours = hours_stand_in()
    >>> int(hours.counts.sum()), round(float(hours.prior().pmf[40]), 3), hours.real
    (32561, 0.467, False)
    """
    hours = np.arange(HOURS_LIMIT + 1)
    inside = (hours > 0) & (hours < HOURS_LIMIT)
    fives = inside & (hours % 5 == 0) & (hours != 40)
    share = _ROUND * _bell(hours, fives, _ROUND_LAW)
    share += _OTHERS * _bell(hours, inside & (hours % 5 != 0), _OTHER_LAW)
    counts = np.round(_PEOPLE * share).astype(np.int64)
    counts[40] = _PEOPLE - counts.sum()
    return Hours(counts, real=False)


def load_adult(folder: Path, split: str = "train") -> Adult:
    """Read ``adult/adult_train.parquet`` or ``adult/adult_test.parquet``.

    Parameters
    ----------
    folder : Path
        Folder of the real data.
    split : {"train", "test"}
        32 561 or 16 281 people.

    Raises
    ------
    DataError
        If the file or pyarrow is missing.
    """
    check_choice(split, "split", choices=("train", "test"))
    return Adult(read_parquet(require_file(folder, f"adult/adult_{split}.parquet")))


def read_parquet(
    path: Path, columns: Sequence[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Read columns of a Parquet file: numbers as numbers, the rest as objects.

    Raises
    ------
    DataError
        If pyarrow is missing.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(
            "reading Parquet files needs pyarrow, got none; "
            "install undertow with the extra 'data'."
        ) from None
    table = parquet.read_table(path, columns=columns and list(columns))
    return {name: _column(table[name].to_pylist()) for name in table.column_names}


def _column(values: list[Any]) -> NDArray[Any]:
    if values and all(isinstance(value, int) for value in values):
        return np.array(values, dtype=np.int64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _bell(
    hours: NDArray[np.int64], where: NDArray[np.bool_], law: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the normal density on the chosen hours, scaled to sum 1."""
    mean, deviation = law
    weight = np.where(where, np.exp(-0.5 * ((hours - mean) / deviation) ** 2), 0.0)
    return np.asarray(weight / weight.sum())
