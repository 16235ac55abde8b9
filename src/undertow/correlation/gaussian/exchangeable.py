"""Groups made of classes of interchangeable members: count the known ones only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate, nudge_up
from undertow._validate import check_count
from undertow.correlation.adversary import Adversary
from undertow.correlation.gaussian.covariance import (
    Spectrum,
    check_mean,
    rounding_margin,
)
from undertow.correlation.gaussian.law import (
    Block,
    GaussianModel,
    Limits,
    different_rows,
)
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.structure import dense_structured_factor
from undertow.correlation.gaussian.sweep import Saturation
from undertow.errors import ModelError, NotApplicable

__all__ = ["ExchangeableGaussian", "exchangeable_factor"]

Array = NDArray[np.float64]

# Numbers of known members tried at most; each is a small linear system.
_LARGEST_SEARCH = 2_000_000
_LARGEST_DENSE = 2000


class ExchangeableGaussian(GaussianModel):
    """Independent groups, each made of classes of interchangeable members.

    Parameters
    ----------
    counts : sequence of int
        Members of each class in one group, such as 1 father, 1 mother, 15 children.
    correlation : array_like of shape (c, c)
        Between classes; on the diagonal, within a class (unused for single members).
    sds : float or array_like of shape (c,)
        Standard deviation in each class.
    groups : int
        Number of independent groups.
    mean : float or array_like of shape (c,), optional
        Mean in each class.

    Raises
    ------
    ModelError
        If the covariance of a group is not positive definite.

    Examples
    --------
    >>> family = ExchangeableGaussian(
    ...     [1, 1, 15],
    ...     correlation=[[1, 0.07, 0.28], [0.07, 1, 0.2], [0.28, 0.2, 0.4]],
    ...     sds=[2.470, 2.307, 3.583],
    ... )
    >>> family.summary
    '17 Gaussian records in 1 groups of 17 members in 3 classes'
    """

    def __init__(
        self,
        counts: Sequence[int],
        *,
        correlation: ArrayLike,
        sds: ArrayLike = 1.0,
        groups: int = 1,
        mean: ArrayLike | None = None,
    ) -> None:
        super().__init__()
        self.counts = tuple(check_count(count, "count") for count in counts)
        if not self.counts:
            raise ModelError("counts must name at least one class, got none.")
        self.correlation = _check_classes(correlation, self.counts)
        self.sds = _check_sds(sds, len(self.counts))
        self.groups = check_count(groups, "groups")
        self._class_mean = check_mean(mean, len(self.counts))
        self.spectrum = _spectrum(self.correlation, self.counts)

    @property
    def size(self) -> int:
        """Number of records."""
        return self.groups * self.largest_group

    @property
    def largest_group(self) -> int:
        """Members of one group."""
        return sum(self.counts)

    @property
    def mean(self) -> Array:
        """Mean of each record."""
        return np.tile(np.repeat(self._class_mean, self.counts), self.groups)

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return (
            f"{self.size} Gaussian records in {self.groups} groups of "
            f"{self.largest_group} members in {len(self.counts)} classes"
        )

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        largest = np.abs(self.correlation).max()
        ratio = float(self.sds.max() / self.sds.min())
        ratio = inflate(ratio, 2.0**-52) if ratio > 1 else 1.0
        return Limits(self.largest_group, float(largest), ratio)

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return one group written out, once for each different row of weights."""
        if self.largest_group > _LARGEST_DENSE:
            raise NotApplicable(
                f"a group must have at most {_LARGEST_DENSE} members for its "
                f"covariance to be written out, got {self.largest_group}; use "
                "method='exchangeable' or 'general'."
            )
        width, covariance = self.largest_group, self._group_covariance()
        rows = np.ones((1, width)) if weights is None else weights.reshape(-1, width)
        return tuple(
            (Block(tuple(range(j * width, (j + 1) * width)), covariance), rows[j])
            for j in different_rows(rows)
        )

    def _group_covariance(self) -> Array:
        labels = np.repeat(np.arange(len(self.counts)), self.counts)
        matrix = self.correlation[np.ix_(labels, labels)]
        np.fill_diagonal(matrix, 1.0)
        return matrix * np.outer(self.sds[labels], self.sds[labels])

    def structured(self) -> ShiftFactor:
        """Return the worst factor by structure of one group."""
        ((block, _),) = self.blocks()
        return dense_structured_factor(block.covariance)

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        width, group = self.largest_group, self._group_covariance()
        out = np.zeros((self.size, len(places)))
        for column, place in enumerate(places):
            first = int(place) // width * width
            out[first : first + width, column] = group[:, int(place) - first]
        return out

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` databases; one row each, one column a record."""
        count = check_count(count, "count")
        root = np.linalg.cholesky(self._group_covariance())
        noise = rng.standard_normal((count, self.groups, self.largest_group))
        return self.mean + (noise @ root.T).reshape(count, -1)


def exchangeable_factor(
    model: ExchangeableGaussian,
    *,
    signed: bool = False,
    saturation: Saturation | None = None,
) -> ShiftFactor:
    r"""Return the worst factor over all attackers, by how many of each class they know.

    Parameters
    ----------
    model : ExchangeableGaussian
        With any number of members.
    signed : bool
        Whether shifts may cancel; for the *unclipped* plain sum only.
    saturation : Saturation, optional
        Caps on the contribution of one record, for clipped releases.

    Raises
    ------
    NotApplicable
        If there are more than two million ways to count the known members, or if the
        covariance is nearly singular.

    Notes
    -----
    Lemma 6.10 of [1]_. The covariance is unchanged when members of a class are
    permuted, so attackers who know equally many of each class, and aim at the same
    class, learn the same: :math:`c \prod (n_c + 1)` attackers instead of
    :math:`m\,2^{m-1}`, each a c by c linear system.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> siblings = ExchangeableGaussian([30], correlation=[[0.4]])
    >>> round(exchangeable_factor(siblings).value, 9)
    12.6
    """
    if signed and saturation is not None:
        raise ValueError(
            "signed must be False for a clipped release, got True; clipping can freeze "
            "the record whose shift cancels."
        )
    model.spectrum.require_regular()
    known = _known_counts(model.counts)
    phi = saturation if saturation is not None else Saturation()
    best, place = -math.inf, (0, 0)
    for target in range(len(model.counts)):
        scores = _scores(model, known, target, phi, signed)
        row = int(scores.argmax())
        if scores[row] > best:
            best, place = float(scores[row]), (target, row)
    stretch = float(model.sds.max() / model.sds.min()) * phi.slope
    margin = rounding_margin(model.spectrum, stretch)
    return ShiftFactor(
        nudge_up(best + margin),
        _adversary(model.counts, place[0], known[place[1]]),
        margin,
        "every number of known members of each class was tried",
    )


def _known_counts(counts: tuple[int, ...]) -> NDArray[np.intp]:
    if math.prod(count + 1 for count in counts) > _LARGEST_SEARCH:
        raise NotApplicable(
            f"the exchangeable search needs at most {_LARGEST_SEARCH} numbers of known "
            f"members, got {math.prod(c + 1 for c in counts)}; use method='structured' "
            "or 'general'."
        )
    ranges = [range(count + 1) for count in counts]
    return np.array(list(itertools.product(*ranges)), dtype=np.intp)


def _scores(
    model: ExchangeableGaussian,
    known: NDArray[np.intp],
    target: int,
    phi: Saturation,
    signed: bool,
) -> Array:
    """Return the objective for a target of one class, -inf where all are known."""
    free = np.array(model.counts) - known
    free[:, target] -= 1
    covariance, variance = _conditional(model.correlation, known, target)
    shifts = covariance / variance[:, None] * (model.sds / model.sds[target])
    if signed:
        scores = np.abs(1 + (free * shifts).sum(axis=1))
    else:
        scores = phi.own + (free * phi(np.abs(shifts))).sum(axis=1)
    return np.where(free[:, target] >= 0, scores, -math.inf)


def _conditional(
    rho: Array, known: NDArray[np.intp], target: int
) -> tuple[Array, Array]:
    """Return conditional covariances of each class with the target, and its variance.

    Known members enter through their class sums, scaled by the root of their number so
    that the system stays symmetric: (1 - w_c) z_c + sum_d sqrt(k_c k_d) rho_cd z_d =
    sqrt(k_c) rho_ct.
    """
    roots = np.sqrt(known)
    system = roots[:, :, None] * rho * roots[:, None, :]
    system = system + np.diag(1 - np.diag(rho))
    right = roots * rho[:, target]
    weights = np.linalg.solve(system, right[:, :, None])[:, :, 0] * roots
    explained = weights @ rho
    covariance = rho[target] - explained
    return covariance, 1.0 - explained[:, target]


def _adversary(counts: tuple[int, ...], target: int, known: Array) -> Adversary:
    firsts = np.concatenate([[0], np.cumsum(counts)])
    aim = int(firsts[target + 1]) - 1  # the last member, so that the first are known
    records = [int(firsts[c]) + j for c, k in enumerate(known) for j in range(int(k))]
    return Adversary(aim, records)


def _check_classes(correlation: ArrayLike, counts: tuple[int, ...]) -> Array:
    matrix = np.array(correlation, dtype=float)
    if matrix.shape != (len(counts),) * 2 or not np.all(np.isfinite(matrix)):
        raise ModelError(
            f"correlation must be a finite {len(counts)} by {len(counts)} matrix, one "
            f"row for each class, got an array of shape {matrix.shape}."
        )
    if not np.array_equal(matrix, matrix.T):
        raise ModelError("correlation must be symmetric, got one that is not.")
    single = np.array(counts) == 1
    matrix[single, single] = 0.0  # within a class of one there is nothing to correlate
    return matrix


def _check_sds(sds: ArrayLike, classes: int) -> Array:
    vector = np.array(sds, dtype=float)
    if vector.ndim == 0:
        vector = np.full(classes, float(vector))
    if vector.shape != (classes,) or not np.all((vector > 0) & np.isfinite(vector)):
        raise ModelError(
            f"sds must be one positive number for each of the {classes} classes, "
            f"got {vector.tolist()}."
        )
    return vector


def _spectrum(rho: Array, counts: tuple[int, ...]) -> Spectrum:
    """Return the spectrum of the correlation matrix of a group, from its classes."""
    roots = np.sqrt(np.array(counts, dtype=float))
    within = 1 - np.diag(rho)
    between = roots[:, None] * rho * roots[None, :] + np.diag(within)
    values = np.concatenate([np.linalg.eigvalsh(between), within[np.array(counts) > 1]])
    if values.min() <= 0:
        raise ModelError(
            "correlation must give a positive definite covariance of a group, got a "
            f"least eigenvalue of {values.min():.6g}."
        )
    return Spectrum(float(values.min()), float(values.max()), sum(counts))
