"""Tables with one sensitive attribute, for attacks that impute it from the others.

The tables of the thesis, Census19 and Texas-100X, are not public. Two things stand in
for them: Adult with ``race`` or ``sex`` as the sensitive attribute, whose records are
real, and a latent-class generator, which needs no file at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice
from undertow.datasets.adult import load_adult

__all__ = ["IMPUTED", "People", "load_people", "people_stand_in"]

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
