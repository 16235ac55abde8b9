"""What a composition says about its parts: necessary conditions, cheap to check.

If the joint output is private then so is each output, because dropping the others is
post-processing. One part without protection therefore sinks the whole. The converse
direction stops at the outputs: nothing follows for a step under inputs that never
occur, nor for the mechanism inside a view.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.composition.finite import FiniteEngine, Specialised
from undertow.composition.finite_claim import ReleaseLike
from undertow.errors import AssumptionError, MismatchError
from undertow.numeric.exact import Exact, ext_max
from undertow.privacy.divergence import exact_loss_matrix
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity

# Float rounding of the logarithms of a probability table.
_LOG_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class UnprotectedPart:
    """A part that has no protection where the whole would need it.

    Parameters
    ----------
    part : hashable
        The name or number of the release, or the earlier output of an adaptive step.
    loss : Loss or float
        What the part loses there.
    witness : object
        The pair of databases, or of their indices, that shows it.
    source : str
        The statement that makes it a violation.
    """

    part: Hashable
    loss: Loss | float
    witness: Any
    source: str


def reciprocal_lower_bound(exact_losses: Iterable[Exact]) -> Exact:
    """Return what an independent composition loses at least, between two databases.

    Parameters
    ----------
    exact_losses : iterable of numbers in [0, inf]
        The true loss of each part, not a bound on it.

    Returns
    -------
    int, Fraction or float
        The largest; zero without parts.

    Notes
    -----
    Thesis, Theorem 4.25; paper, Theorem VII.2. Every notion here survives
    post-processing, and forgetting all outputs but one is post-processing.

    Examples
    --------
    >>> reciprocal_lower_bound([0.5, 1.0, 0.2])
    1.0
    """
    return ext_max(exact_losses)


def check_reciprocal(
    releases: Sequence[ReleaseLike],
    target: Granularity,
    *,
    domain: Domain,
    loss_of: Callable[[ReleaseLike], Specialised] | None = None,
) -> list[UnprotectedPart]:
    """Return the releases that are infinitely costly at `target` on their own.

    Parameters
    ----------
    releases : sequence of objects with ``loss``, ``unit``, ``view`` and ``setting``
        The plan.
    target : Granularity
        What the whole is meant to protect.
    domain : Domain
        Enumerable, unless `loss_of` is given.
    loss_of : callable, optional
        How to find the loss of one release at `target`; by default the exact engine.

    Returns
    -------
    list of UnprotectedPart
        Empty if no release by itself rules out a finite loss.

    Notes
    -----
    The contrapositive of thesis, Theorem 4.25 and paper, Theorem VII.2. The claims are
    taken as tight: a release whose claims are infinite at `target` may still be
    private there for a reason nobody stated. It is the release with its view that
    fails; nothing follows for the mechanism inside the view.
    """

    def exactly(release: ReleaseLike) -> Specialised:
        engine = FiniteEngine([release], domain)
        return engine.specialise(target, on_infinite="report")

    found = []
    for number, release in enumerate(releases):
        result = (loss_of or exactly)(release)
        if result.loss.is_infinite:
            name = getattr(release, "name", number)
            found.append(
                UnprotectedPart(
                    name, result.loss, result.witness, "paper, Theorem VII.2"
                )
            )
    return found


def check_adaptive_step(
    tables: Mapping[Hashable, npt.ArrayLike],
    declared: Iterable[Hashable],
    *,
    bound: npt.ArrayLike,
) -> list[UnprotectedPart]:
    """Return the declared earlier outputs for which a step breaks its guarantee.

    Parameters
    ----------
    tables : mapping from earlier output to array_like of shape (n, outputs)
        The output law of the step, per database.
    declared : iterable of hashable
        The output space declared for the earlier steps: part of the hypothesis.
    bound : array_like of shape (n, n)
        The claimed metric.

    Returns
    -------
    list of UnprotectedPart
        One per declared output at which some pair loses more than claimed.

    Notes
    -----
    Thesis, Theorem 4.1 and paper, Theorem V.2 need the guarantee for every declared
    earlier output, also one that never occurs. Thesis, Theorem 4.26 and paper, Theorem
    VII.3 give back only the marginal outputs of the run, not the step for every input.
    """
    claimed = np.asarray(bound, dtype=float)
    if not (claimed >= 0).all():
        raise ValueError("bound must hold distances in [0, inf], got another entry.")
    found = []
    for output in declared:
        if output not in tables:
            raise MismatchError(
                f"tables must hold every declared output, got none for {output!r}."
            )
        losses = exact_loss_matrix(tables[output])
        if losses.shape != claimed.shape:
            raise MismatchError(
                f"bound must have shape {losses.shape}, one row per database, got "
                f"{claimed.shape}."
            )
        excess = losses > claimed + _LOG_SLACK
        if excess.any():
            row, column = (int(i) for i in np.argwhere(excess)[0])
            found.append(
                UnprotectedPart(
                    output,
                    float(losses[row, column]),
                    (row, column),
                    "paper, Theorem V.2",
                )
            )
    return found


def after_post_processing(loss: Loss, *, reads_data: bool) -> Loss:
    """Return the loss of a function of a release: the same loss.

    Parameters
    ----------
    loss : Loss
        What the release costs, in any notion and any metric.
    reads_data : bool
        Whether the function looks at the data again, be it only to remove noise.

    Raises
    ------
    AssumptionError
        If it does: then it is a further release with a loss of its own.

    Notes
    -----
    Thesis, Propositions 2.2 and 4.24; paper, Theorem VII.1. Deterministic functions,
    and randomised ones with coins of their own.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> after_post_processing(Pure(1), reads_data=False)
    Pure(epsilon=1)
    """
    if reads_data:
        raise AssumptionError(
            "post-processing must not read the data again, got reads_data=True; "
            "enter it as a release with its own loss.",
            source="paper, Theorem VII.1",
        )
    return loss
