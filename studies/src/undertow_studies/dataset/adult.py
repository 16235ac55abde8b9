"""Adult: 32 561 people of the 1994 census, their hours of work, and one thing hidden.

The hours are a number in 0, ..., 100, and 46.7 % of the people work 40. The counts come
as text, the whole table as Parquet, which needs pyarrow (extra ``data``). The stand-in
for the counts is a mixture that anyone can write down; it is not the data.

With ``race`` or ``sex`` as the sensitive attribute the table stands in for Census19 and
Texas-100X of the thesis, which are not public; so does a latent-class generator, which
needs no file at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice
from undertow.datasets import (
    HOURS_LIMIT,
    Hours,
    read_columns,
    require_file,
)
from undertow.errors import DataError


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


IMPUTED = ("race", "sex")
"""Sensitive attributes: in place of Census19 and of Texas-100X."""

_DROPPED = {
    "race": ("fnlwgt",),
    "sex": ("fnlwgt", "relationship", "marital_status", "occupation"),
}

_SIZE, _BITS = 48_842, 5

# Number of classes, and the share of the favourite one in each latent class.
_LATENT = {"race": (8, 0.81), "sex": (2, 0.73)}


@dataclass(frozen=True, eq=False)
class People:
    """Records with public attributes and a sensitive one.

    Parameters
    ----------
    public : ndarray of int, shape (n, d)
        Public attributes: numbers, or numbers of words.
    sensitive : ndarray of int, shape (n,)
        The sensitive attribute, from 0.
    words : ndarray of bool, shape (d,)
        Which public attributes number words, whose order means nothing.
    name : str
        The sensitive attribute.
    real : bool
        Whether these are real people.
    """

    public: NDArray[np.int64]
    sensitive: NDArray[np.int64]
    words: NDArray[np.bool_]
    name: str
    real: bool

    def __len__(self) -> int:
        return len(self.sensitive)

    @property
    def classes(self) -> int:
        """Number of values of the sensitive attribute."""
        return int(self.sensitive.max()) + 1


def load_people(folder: Path, sensitive: str) -> People:
    """Read Adult, both parts, with one attribute declared sensitive.

    Parameters
    ----------
    folder : Path
        Folder of the real data; needs pyarrow.
    sensitive : {"race", "sex"}
        Five or two classes. The sampling weight is dropped, and for ``"sex"`` the
        three attributes that give it away.
    """
    check_choice(sensitive, "sensitive", choices=IMPUTED)
    parts = [load_adult(folder, split).columns for split in ("train", "test")]
    kept = [name for name in parts[0] if name not in (*_DROPPED[sensitive], sensitive)]
    columns = [np.concatenate([part[name] for part in parts]) for name in kept]
    public = np.stack([_numbered(column) for column in columns], axis=1)
    words = np.array([column.dtype == object for column in columns])
    target = _numbered(np.concatenate([part[sensitive] for part in parts]))
    return People(public, target, words, sensitive, real=True)


def people_stand_in(sensitive: str, *, rng: np.random.Generator) -> People:
    """Draw 48 842 people from 32 latent classes.

    The latent class is uniform and its five bits are the public attributes. In each
    latent class one value of the sensitive attribute has the share 0.81 (eight values,
    in place of Census19) or 0.73 (two, in place of Texas-100X), and the others are
    equally likely: those are the success rates printed for imputation, and the best
    there are. Three latent classes in four favour value 0.

    Examples
    --------
    >>> people = people_stand_in("sex", rng=np.random.default_rng(1))
    >>> len(people), people.classes, people.real
    (48842, 2, False)
    """
    check_choice(sensitive, "sensitive", choices=IMPUTED)
    classes, share = _LATENT[sensitive]
    latent = rng.integers(2**_BITS, size=_SIZE)
    favourite = np.where(latent % 4 > 0, 0, 1 + (latent // 4) % (classes - 1))
    other = (favourite + rng.integers(1, classes, size=_SIZE)) % classes
    value = np.where(rng.random(_SIZE) < share, favourite, other)
    bits = (latent[:, None] >> np.arange(_BITS)) & 1
    words = np.ones(_BITS, dtype=np.bool_)
    return People(
        bits.astype(np.int64), value.astype(np.int64), words, sensitive, False
    )


def _numbered(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return numbers as they are, and words by their alphabetical number."""
    if column.dtype != object:
        return column.astype(np.int64)
    text = np.array(["" if value is None else value for value in column])
    return np.unique(text, return_inverse=True)[1].astype(np.int64)
