"""What every Gaussian model says of itself, and the worst attacker on its blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.gaussian.shift import (
    MAX_BLOCK,
    Saturation,
    ShiftFactor,
    inversion_error,
    standardised,
    worst_factor,
)
from undertow.correlation.model import Assumptions, Conditional, Model
from undertow.correlation.result import Adversary
from undertow.correlation.theorem import LeakageTheorem, stated_methods
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array

# Conditioning solves a dense system in the known records, and holds their columns.
_LARGEST_CONDITIONING = 50_000_000


@dataclass(frozen=True, slots=True)
class Block:
    """One independent group: its records, in order, and their covariance."""

    records: tuple[int, ...]
    covariance: Array


@dataclass(frozen=True, slots=True)
class Limits:
    """What the closed forms read of a model.

    Parameters
    ----------
    group : int
        Most records that depend on each other, m.
    correlation : float
        Largest absolute correlation inside a group, rho.
    sd_ratio : float
        Largest ratio of standard deviations inside a group; 1 if all are equal.
    """

    group: int
    correlation: float
    sd_ratio: float = 1.0


@dataclass(frozen=True)
class GaussianConditional(Conditional):
    """The Gaussian law of the unknown records given the known ones.

    Parameters
    ----------
    model, known
        As in :class:`~undertow.correlation.model.Conditional`.
    mean : ndarray
        Conditional mean of the unknown records, in order.
    covariance : ndarray
        Their conditional covariance; it does not depend on the known values.
    """

    mean: Array = field(default_factory=lambda: np.empty(0))
    covariance: Array = field(default_factory=lambda: np.empty((0, 0)))


class GaussianModel(Model):
    """A jointly Gaussian law of the records; see the constructors of `Gaussian`."""

    def __init__(self) -> None:
        self._found: dict[Any, ShiftFactor] = {}

    @abstractmethod
    def limits(self) -> Limits:
        """Return group size, largest correlation and ratio of standard deviations.

        Raises
        ------
        NotApplicable
            If the covariance is too large to be looked at.
        """

    @abstractmethod
    def blocks(self, weights: Array | None = None) -> tuple[tuple[Block, Array], ...]:
        """Return the different blocks, each with the weights of its records.

        Copies of a block (with the same weights) are given once.

        Raises
        ------
        NotApplicable
            If a block is too large to be written out.
        """

    @abstractmethod
    def structured(self) -> ShiftFactor:
        """Return the worst factor by structure, without a search over attackers.

        Raises
        ------
        NotApplicable
            If no structure makes the attacker who knows nothing the worst.
        """

    @abstractmethod
    def columns(self, records: Any) -> Array:
        """Return the covariances of all records with the given ones, shape (n, k)."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of records."""

    @property
    @abstractmethod
    def largest_group(self) -> int:
        """Most records that depend on each other."""

    @property
    @abstractmethod
    def mean(self) -> Array:
        """Mean of each record."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the methods that may bound leakage, the strongest first."""
        return stated_methods(self)

    def assumptions(self) -> Assumptions:
        """Return what was checked and what must be trusted."""
        return Assumptions(
            checked=("the covariance is positive definite",),
            unchecked=(
                "the records are jointly Gaussian with the given covariance",
                "a covariance of zero means independence",
            ),
        )

    def remember(self, key: Any, factor: ShiftFactor) -> ShiftFactor:
        """Keep a factor that took long, and return it."""
        self._found[key] = factor
        return factor

    def recall(self, key: Any) -> ShiftFactor | None:
        """Return a factor found before, or None."""
        return self._found.get(key)

    def given(self, known: Mapping[int, Any]) -> GaussianConditional:
        r"""Return the exact law of the other records given the `known` ones.

        .. math:: \mu_U + \Sigma_{UK}\Sigma_K^{-1}(x_K - \mu_K), \qquad
                  \Sigma_U - \Sigma_{UK}\Sigma_K^{-1}\Sigma_{KU}
        """
        places, values = known_values(self, known)
        size = self.size
        unknown = np.setdiff1d(np.arange(size), places)
        self._require_room(size)
        regression, between = self._regression(places)
        mean = self.mean[unknown] + (regression @ (values - self.mean[places]))[unknown]
        covariance = self.columns(unknown)[unknown]
        covariance = covariance - regression[unknown] @ between[unknown].T
        return GaussianConditional(self, dict(known), mean, covariance)

    def sample_given(
        self, known: Mapping[int, Any], count: int, *, rng: np.random.Generator
    ) -> Array:
        """Draw `count` databases given the values of the `known` records.

        Unconditional draws are moved by the regression on the known records; one
        factorisation serves every draw.
        """
        places, values = known_values(self, known)
        draws = self.sample(count, rng=rng)
        regression, _ = self._regression(places)
        draws = draws + (values - draws[:, places]) @ regression.T
        draws[:, places] = values
        return np.asarray(draws)

    def _regression(self, places: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return the coefficients of all records on the known ones, and covariances."""
        from scipy.linalg import cho_factor, cho_solve

        self._require_room(len(places))
        between = self.columns(places)
        if not len(places):
            return between, between
        factor = cho_factor(between[places], lower=True)
        return np.asarray(cho_solve(factor, between.T)).T, between

    def _require_room(self, columns: int) -> None:
        size = self.size
        if columns * size > _LARGEST_CONDITIONING:
            raise ModelError(
                f"conditioning on this model needs {columns} columns of {size} "
                "covariances, which is too many; condition on fewer records."
            )


def known_values(
    model: Model, known: Mapping[int, Any]
) -> tuple[NDArray[np.intp], Array]:
    """Return the indices and values of the known records, in order."""
    checked = model.check_known(known)
    places = np.array(sorted(checked), dtype=np.intp)
    values = np.array([checked[int(j)] for j in places], dtype=float)
    if not np.all(np.isfinite(values)):
        raise ModelError("known records must have finite values, got one that has not.")
    return places, values


def block_limits(covariances: Sequence[Array], *, inverted: bool = False) -> Limits:
    """Return the limits of a collection of independent blocks, rounded up.

    Parameters
    ----------
    covariances : sequence of ndarray
        One for each block.
    inverted : bool
        Whether they were computed from precision matrices, whose inversion they owe.
    """
    group, correlation, ratio = 1, 0.0, 1.0
    for covariance in covariances:
        sds, scaled, spectrum = standardised(covariance)
        group = max(group, len(sds))
        if len(sds) == 1:
            continue
        apart = float(np.abs(scaled - np.diag(np.diag(scaled))).max())
        spread = float(sds.max() / sds.min())
        # Two roots and a division: four roundings.
        slack = 2.0**-50 + (inversion_error(spectrum) if inverted else 0.0)
        correlation = max(
            correlation, apart + slack if inverted else apart * (1 + slack)
        )
        ratio = max(ratio, spread * (1 + slack) if inverted or spread > 1 else 1.0)
    return Limits(group, min(correlation, 1.0), ratio)


def different_rows(rows: Array) -> list[int]:
    """Return where the different rows of a table of weights first occur."""
    if np.all(rows == rows[0]):
        return [0]
    _, firsts = np.unique(rows, axis=0, return_index=True)
    return [int(first) for first in np.sort(firsts)]


# The worst attacker over all blocks of a model, remembered for the next question.


def worst_of_blocks(
    blocks: Iterable[tuple[Block, Array]],
    factor_of: Callable[[Block, Array], ShiftFactor],
) -> ShiftFactor:
    """Return the largest factor of the blocks, its attacker numbered in the model."""
    best: ShiftFactor | None = None
    for block, weights in blocks:
        found = factor_of(block, weights)
        if best is None or found.value > best.value:
            best = _numbered(found, block)
    assert best is not None, "a model has at least one block"
    return best


def searched_factor(
    model: GaussianModel,
    *,
    weights: Array | None = None,
    signed: bool = False,
    saturation: Saturation | None = None,
) -> ShiftFactor:
    """Return the worst factor over all attackers on every block of a model.

    Parameters
    ----------
    model : GaussianModel
        With blocks of at most `MAX_BLOCK` records.
    weights, signed, saturation
        As in :func:`~undertow.correlation.gaussian.shift.worst_factor`; the factor is
        relative to the largest weight of all.

    Raises
    ------
    NotApplicable
        If a block is too large or nearly singular.
    """
    if model.largest_group > MAX_BLOCK:
        raise NotApplicable(
            f"the search over attackers needs blocks of at most {MAX_BLOCK} records, "
            f"got {model.largest_group}; use method='structured', 'sharp' or 'general'."
        )
    key = (None if weights is None else weights.tobytes(), signed, saturation)
    known = model.recall(key)
    if known is not None:
        return known
    largest = 1.0 if weights is None else float(np.abs(weights).max())

    def factor_of(block: Block, own: Array) -> ShiftFactor:
        share = float(np.abs(own).max()) / largest
        if share == 0:  # the query does not read this block
            return ShiftFactor(0.0, Adversary(0))
        found = worst_factor(
            block.covariance, weights=own, signed=signed, saturation=saturation
        )
        if share == 1:
            return found
        return replace(found, value=found.value * share * (1 + 2.0**-50))

    return model.remember(key, worst_of_blocks(model.blocks(weights), factor_of))


def _numbered(found: ShiftFactor, block: Block) -> ShiftFactor:
    local, records = found.adversary, block.records
    assert local is not None, "a search names its attacker"
    known = [records[j] for j in local.known]
    return replace(found, adversary=Adversary(records[local.target], known))
