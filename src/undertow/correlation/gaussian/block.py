"""Gaussian records in blocks of a known structure, up to millions of them.

Groups of interchangeable members, copies of few small blocks, sparse precision
matrices, and stationary series: what the constructors of
:class:`~undertow.correlation.gaussian.model.Gaussian` return.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_finite, check_positive
from undertow.correlation.gaussian.law import (
    Block,
    GaussianModel,
    Limits,
    block_limits,
    different_rows,
    known_values,
    worst_of_blocks,
)
from undertow.correlation.gaussian.shift import (
    Saturation,
    ShiftFactor,
    Spectrum,
    check_covariance,
    check_mean,
    connected_blocks,
    rounding_margin,
)
from undertow.correlation.gaussian.structure import (
    BandedPrecision,
    autoregressive_factor,
    dense_structured_factor,
    precision_factor,
    toeplitz_factor,
)
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import inflate, nudge_up

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
        self.spectrum = _class_spectrum(self.correlation, self.counts)

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


def _class_spectrum(rho: Array, counts: tuple[int, ...]) -> Spectrum:
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


# Many independent copies of few small Gaussian blocks, such as families.


class RepeatedGaussian(GaussianModel):
    """Independent copies of blocks, each given once.

    Parameters
    ----------
    templates : sequence of array_like
        Covariance of each kind of block, symmetric positive definite.
    counts : sequence of int
        Copies of each; the records are in this order, copy after copy.
    means : sequence of array_like, optional
        Mean of each kind of block; zero by default.

    Notes
    -----
    Everything is computed once for each template, so a million records cost no more
    than one family.

    Examples
    --------
    >>> trio = [[1.0, 0.1, 0.3], [0.1, 1.0, 0.3], [0.3, 0.3, 1.0]]
    >>> RepeatedGaussian([trio], [1000]).summary
    '3000 Gaussian records in 1000 independent groups of at most 3'
    """

    def __init__(
        self,
        templates: Sequence[ArrayLike],
        counts: Sequence[int],
        *,
        means: Sequence[ArrayLike] | None = None,
    ) -> None:
        super().__init__()
        if not len(templates) or len(templates) != len(counts):
            raise ModelError(
                "counts must be one for each template, got "
                f"{len(counts)} counts for {len(templates)} templates."
            )
        self._templates = [check_covariance(t, "template") for t in templates]
        self._counts = [check_count(c, "count") for c in counts]
        given = [None] * len(counts) if means is None else list(means)
        if len(given) != len(counts):
            raise ModelError(
                f"means must be one for each template, got {len(given)} means for "
                f"{len(templates)} templates."
            )
        self._means = [
            check_mean(mean, len(t))
            for mean, t in zip(given, self._templates, strict=True)
        ]
        lengths = [
            len(t) * c for t, c in zip(self._templates, self._counts, strict=True)
        ]
        self._starts = np.concatenate([[0], np.cumsum(lengths)])

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self._starts[-1])

    @property
    def mean(self) -> Array:
        """Mean of each record."""
        pairs = zip(self._means, self._counts, strict=True)
        return np.concatenate([np.tile(mean, count) for mean, count in pairs])

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return max(len(template) for template in self._templates)

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return (
            f"{self.size} Gaussian records in {sum(self._counts)} independent groups "
            f"of at most {self.largest_group}"
        )

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        return block_limits(self._templates)

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return each template once, or once for each different row of weights."""
        found: list[tuple[Block, Array]] = []
        for kind, template in enumerate(self._templates):
            start, stop = int(self._starts[kind]), int(self._starts[kind + 1])
            width = len(template)
            rows = np.ones((1, width))
            if weights is not None:
                rows = weights[start:stop].reshape(-1, width)
            for copy in different_rows(rows):
                first = start + copy * width
                block = Block(tuple(range(first, first + width)), template)
                found.append((block, rows[copy]))
        return tuple(found)

    def structured(self) -> ShiftFactor:
        """Return the worst factor by structure of every template."""
        return worst_of_blocks(
            self.blocks(), lambda block, _: dense_structured_factor(block.covariance)
        )

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        out = np.zeros((self.size, len(places)))
        for column, place in enumerate(places):
            kind = int(np.searchsorted(self._starts, place, side="right")) - 1
            width = len(self._templates[kind])
            within = int(place - self._starts[kind]) % width
            first = int(place) - within
            out[first : first + width, column] = self._templates[kind][:, within]
        return out

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` databases; one row each, one column a record."""
        count = check_count(count, "count")
        parts = []
        for template, copies in zip(self._templates, self._counts, strict=True):
            noise = rng.standard_normal((count, copies, len(template)))
            root = np.linalg.cholesky(template)
            parts.append((noise @ root.T).reshape(count, -1))
        return np.asarray(self.mean + np.concatenate(parts, axis=1))


# Gaussian records given by a sparse inverse covariance, up to millions of them.

# Entries of the covariances of all blocks that are written out at most.
_MOST_DENSE_ENTRIES = 20_000_000


class SparseGaussian(GaussianModel):
    r"""Gaussian records with the precision matrix :math:`\Lambda = \Sigma^{-1}`.

    Parameters
    ----------
    precision : array_like or scipy.sparse array of shape (n, n)
        Symmetric positive definite; of narrow band after reordering if n is large.
        Exact zeros are structural.
    mean : array_like of shape (n,), optional
        Zero by default.

    Raises
    ------
    ModelError
        If the matrix is not symmetric positive definite, or too wide to factor.

    Examples
    --------
    >>> from scipy.sparse import diags
    >>> walk = diags([[-0.4], [1.0], [-0.4]], offsets=[-1, 0, 1], shape=(9, 9))
    >>> SparseGaussian(walk).summary
    '9 Gaussian records of sparse precision in groups of at most 9'
    """

    def __init__(self, precision: Any, mean: ArrayLike | None = None) -> None:
        super().__init__()
        self._precision = _check_precision(precision)
        self._mean = check_mean(mean, self.size)
        self._factored = BandedPrecision(self._precision)
        self._groups = connected_blocks(self._precision)
        self._largest = max(len(group) for group in self._groups)

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self._precision.shape[0])

    @property
    def precision(self) -> Any:
        """The precision matrix, as a sparse array."""
        return self._precision

    @property
    def mean(self) -> Array:
        """Mean of each record, read-only."""
        return self._mean

    @property
    def largest_group(self) -> int:
        """Most records that depend on each other."""
        return self._largest

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return (
            f"{self.size} Gaussian records of sparse precision in groups of at most "
            f"{self.largest_group}"
        )

    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations."""
        covariances = [block.covariance for block, _ in self.blocks()]
        return block_limits(covariances, inverted=True)

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return the different blocks, each with the weights of its records."""
        if self.size * self.largest_group > _MOST_DENSE_ENTRIES:
            raise NotApplicable(
                "the covariances of the blocks must have at most "
                f"{_MOST_DENSE_ENTRIES} entries to be written out, got "
                f"{self.size * self.largest_group}; use method='structured' or "
                "'general'."
            )
        a = np.ones(self.size) if weights is None else weights
        sizes = np.array([len(group) for group in self._groups])
        found: list[tuple[Block, Array]] = []
        for size in np.unique(sizes).tolist():
            chosen = np.array([self._groups[j] for j in np.flatnonzero(sizes == size)])
            found.extend(self._blocks_of(chosen, a))
        return tuple(found)

    def _blocks_of(self, groups: NDArray[np.intp], a: Array) -> list[Any]:
        """Return the different blocks among groups (rows of records) of one size."""
        count, size = groups.shape
        label = np.full(self.size, -1)
        label[groups.ravel()] = np.repeat(np.arange(count), size)
        place = np.zeros(self.size, dtype=np.intp)
        place[groups.ravel()] = np.tile(np.arange(size), count)
        entries = self._precision.tocoo()
        rows, columns = entries.row, entries.col
        mine = label[rows] >= 0
        dense = np.zeros((count, size, size))
        dense[label[rows[mine]], place[rows[mine]], place[columns[mine]]] = (
            self._precision.data[mine]
        )
        table = np.concatenate([dense.reshape(count, -1), a[groups]], axis=1)
        _, firsts = np.unique(table, axis=0, return_index=True)
        return [
            (Block(tuple(groups[j].tolist()), _inverse(dense[j])), a[groups[j]])
            for j in np.sort(firsts)
        ]

    def structured(self) -> ShiftFactor:
        """Return the worst factor from the signs of the precision matrix."""
        return precision_factor(self._precision, factored=self._factored)

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        units = np.zeros((self.size, len(places)))
        units[places, np.arange(len(places))] = 1.0
        return self._factored.solve(units)

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` databases; one row each, one column a record."""
        count = check_count(count, "count")
        return self._mean + self._factored.sample(count, rng=rng)

    def sample_given(
        self, known: Mapping[int, Any], count: int, *, rng: np.random.Generator
    ) -> Array:
        """Draw `count` databases given the values of the `known` records.

        The unknown records have the precision of their own rows and columns, which is
        as sparse; nothing dense is formed.
        """
        count = check_count(count, "count")
        places, values = known_values(self, known)
        unknown = np.setdiff1d(np.arange(self.size), places)
        draws = np.empty((count, self.size))
        draws[:, places] = values
        if len(unknown):
            rows = self._precision[unknown]
            factored = BandedPrecision(rows[:, unknown])
            pull = rows[:, places] @ (values - self._mean[places])
            centre = self._mean[unknown] - factored.solve(pull)
            draws[:, unknown] = centre + factored.sample(count, rng=rng)
        return draws


def _check_precision(precision: Any) -> Any:
    from scipy.sparse import csr_array, issparse

    matrix: Any = precision if issparse(precision) else np.atleast_2d(precision)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise ModelError(
            f"precision must be a square matrix, got an array of shape {matrix.shape}."
        )
    sparse: Any = csr_array(matrix).astype(float)
    sparse.sum_duplicates()
    if not np.all(np.isfinite(sparse.data)):
        raise ModelError("precision must be finite, got an entry that is not.")
    skew = abs(sparse - sparse.T)
    if skew.nnz and skew.max() > 1e-9 * np.abs(sparse.diagonal()).max():
        raise ModelError(
            f"precision must be symmetric, got entries that differ by {skew.max():.3g}."
        )
    if skew.nnz and skew.max() > 0:
        sparse = csr_array((sparse + sparse.T) / 2)
    sparse.eliminate_zeros()
    return sparse


def _inverse(precision: Array) -> Array:
    """Return the covariance of one block, which the search over attackers needs."""
    from scipy.linalg import cho_factor, cho_solve

    covariance = cho_solve(cho_factor(precision, lower=True), np.eye(len(precision)))
    return np.asarray((covariance + covariance.T) / 2)


# Stationary Gaussian series: given autocovariance, or AR(1).

# Longest series whose covariance matrix is written out.


class StationaryGaussian(GaussianModel):
    """A stationary Gaussian series with a given autocovariance.

    Parameters
    ----------
    first_row : array_like of shape (n,)
        Covariance at lag 0, 1, ..., n-1: the first row of the Toeplitz covariance.
    mean : float or array_like of shape (n,), optional
        Zero by default.

    Raises
    ------
    ModelError
        If the Toeplitz matrix is not positive definite. Beyond 2000 records this is
        shown by its circulant embedding or by diagonal dominance, and a series for
        which neither holds is refused.

    Examples
    --------
    >>> StationaryGaussian([1.0, 0.5, 0.1, 0.0]).summary
    'stationary Gaussian series of 4 records'
    """

    def __init__(self, first_row: ArrayLike, mean: ArrayLike | None = None) -> None:
        super().__init__()
        self._lags = _check_lags(first_row)
        self._mean = check_mean(mean, len(self._lags))

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self._lags)

    @property
    def autocovariance(self) -> Array:
        """Covariance at each lag, read-only."""
        return self._lags

    @property
    def mean(self) -> Array:
        """Mean of each record, read-only."""
        return self._mean

    @property
    def largest_group(self) -> int:
        """The whole series, unless no lag is correlated."""
        return self.size if np.any(self._lags[1:]) else 1

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return f"stationary Gaussian series of {self.size} records"

    def limits(self) -> Limits:
        """Return group size and largest correlation; all variances are equal."""
        largest = float(np.abs(self._lags[1:]).max(initial=0.0)) / float(self._lags[0])
        return Limits(self.largest_group, min(largest * (1 + 2.0**-50), 1.0))

    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return the series as one block."""
        from scipy.linalg import toeplitz

        if self.size > _LARGEST_DENSE:
            raise NotApplicable(
                f"a series must have at most {_LARGEST_DENSE} records for its "
                f"covariance to be written out, got {self.size}; use "
                "method='structured' or 'general'."
            )
        a = np.ones(self.size) if weights is None else weights
        return ((Block(tuple(range(self.size)), toeplitz(self._lags)), a),)

    def structured(self) -> ShiftFactor:
        """Return the worst factor by the row sums of the Toeplitz matrix."""
        return toeplitz_factor(self._lags)

    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones."""
        places = np.asarray(records, dtype=np.intp)
        apart = np.abs(np.arange(self.size)[:, None] - places[None, :])
        return np.asarray(self._lags[apart])

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` series, one row each: exactly, by Cholesky or by Fourier."""
        from scipy.linalg import toeplitz

        count = check_count(count, "count")
        if self.size <= _LARGEST_DENSE:
            root = np.linalg.cholesky(toeplitz(self._lags))
            noise = rng.standard_normal((count, self.size))
            return np.asarray(self._mean + noise @ root.T)
        return self._mean + _embedded_sample(self._lags, count, rng=rng)


class AutoregressiveGaussian(StationaryGaussian):
    r"""A stationary AR(1) series: covariance :math:`\sigma^2 \varphi^{|i-j|}`.

    Parameters
    ----------
    phi : float
        Correlation of neighbours, in (-1, 1).
    length : int
        Number of records.
    sd : float
        Standard deviation of each record.
    mean : float or array_like, optional
        Zero by default.

    Examples
    --------
    >>> round(AutoregressiveGaussian(0.5, 8).structured().value, 9)
    2.8125
    """

    def __init__(
        self,
        phi: float,
        length: int,
        *,
        sd: float = 1.0,
        mean: ArrayLike | None = None,
    ) -> None:
        GaussianModel.__init__(self)
        self.phi = check_finite(phi, "phi")
        if not abs(self.phi) < 1:
            raise ModelError(f"phi must be in (-1, 1), got {phi}.")
        self.sd = check_positive(sd, "sd")
        if not 1e-150 < self.sd < 1e150:
            raise ModelError(
                f"sd must be between 1e-150 and 1e150, got {sd}; measure the records "
                "in another unit."
            )
        length = check_count(length, "length")
        self._lags = self.sd**2 * np.power(self.phi, np.arange(length))
        self._lags.setflags(write=False)
        self._mean = check_mean(mean, length)

    @property
    def largest_group(self) -> int:
        """The whole series, unless neighbours are independent."""
        return self.size if self.phi else 1

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return f"Gaussian AR(1) series of {self.size} records, phi = {self.phi:g}"

    def structured(self) -> ShiftFactor:
        """Return the worst factor in closed form."""
        return autoregressive_factor(self.phi, self.size)

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` series by the recursion, from a stationary start."""
        from scipy.signal import lfilter

        count = check_count(count, "count")
        noise = rng.standard_normal((count, self.size))
        noise[:, 1:] *= np.sqrt((1 - self.phi) * (1 + self.phi))
        return self._mean + self.sd * lfilter([1.0], [1.0, -self.phi], noise, axis=1)


def _check_lags(first_row: ArrayLike) -> Array:
    from scipy.linalg import toeplitz

    lags = np.array(first_row, dtype=float)
    if lags.ndim != 1 or not lags.size or not np.all(np.isfinite(lags)):
        raise ModelError(
            "first_row must be a vector of finite covariances, got an array of shape "
            f"{lags.shape}."
        )
    if len(lags) <= _LARGEST_DENSE:
        check_covariance(toeplitz(lags), "the Toeplitz covariance")
    elif not _shown_positive(lags):
        raise ModelError(
            "the Toeplitz covariance of a long series must have a positive circulant "
            "embedding or dominant diagonal, got neither; give its precision to "
            "Gaussian.from_precision, or a shorter series."
        )
    lags.setflags(write=False)
    return lags


def _spectrum(lags: Array) -> Array:
    """Return the eigenvalues of the circulant matrix that embeds the series."""
    ring = np.concatenate([lags, lags[-2:0:-1]])
    return np.asarray(np.fft.rfft(ring).real)


def _shown_positive(lags: Array) -> bool:
    if lags[0] > 2 * np.abs(lags[1:]).sum() * (1 + 1e-12):
        return True
    values = _spectrum(lags)
    rounding = 1e-14 * len(lags) ** 0.5 * float(np.abs(lags).sum())
    return bool(values.min() > rounding)


def _embedded_sample(lags: Array, count: int, *, rng: np.random.Generator) -> Array:
    values = _spectrum(lags)
    if values.min() < 0:
        raise ModelError(
            "sampling a long series needs a positive circulant embedding, got a least "
            f"eigenvalue of {values.min():.3g}; sample a shorter series."
        )
    size = 2 * (len(lags) - 1)
    white = np.fft.rfft(rng.standard_normal((count, size)), axis=1)
    return np.asarray(np.fft.irfft(white * np.sqrt(values), n=size, axis=1))[
        :, : len(lags)
    ]
