r"""The risk of one release under one threat, with every bound to compare it with.

The advantage of the best attack and its success, the total variation of the output law,
and what the bounds say that know only the guarantee: stated by a family, or read off
the table of a channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import NotApplicable
from undertow.numeric.rounding import inflate, nudge_up
from undertow.privacy.loss import Loss, Pure
from undertow.results import _Shown
from undertow.risk.bounds import variation_matrix
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, success_rate
from undertow.risk.families.base import Family, closed_view, uniform_prior
from undertow.risk.families.central import FiniteFamily
from undertow.risk.finite import Risk
from undertow.risk.selector import BoundRow, best_bound, named_bound
from undertow.risk.threat import Threat

# Covers the rounding of a total variation and of a loss read off a table.
_MARGIN = 1e-12


@dataclass(frozen=True, slots=True)
class RiskAssessment(_Shown):
    """The risk of one release under one threat, and what it can be compared with.

    Parameters
    ----------
    release : str
        What is released, in words.
    risk : Risk
        The advantage of the best attack, or an upper bound on it.
    baseline : float
        Best success without any output, from prior and knowledge.
    success : float, optional
        Success of the best attack, never rounded down; None where it is not known.
    success_reason : str
        How the success is known, or why it is not.
    variation : float, optional
        Largest total variation between two records, rounded up; None where the table
        is too large.
    variation_reason : str
        Why there is none, or empty.
    bounds : tuple of BoundRow
        Every bound on the advantage, with its value or the reason why it has none; the
        last one is the advantage itself, where it is exact.
    """

    release: str
    risk: Risk
    baseline: float
    success: float | None
    success_reason: str
    variation: float | None
    variation_reason: str
    bounds: tuple[BoundRow, ...]

    @property
    def exact(self) -> bool:
        """Whether an attack attains the advantage."""
        return self.risk.tight is True


def assess_risk(
    source: Family | Channel, threat: Threat, *, parameter: float | None = None
) -> RiskAssessment:
    """Assess a release: its advantage, what attains it, and every bound on it.

    Parameters
    ----------
    source : Family or Channel
        What is released; a family needs its `parameter`.
    threat : Threat
        Whom the risk is about.
    parameter : float, optional
        Of the family.

    Returns
    -------
    RiskAssessment
        No number is rounded to the unsafe side.

    Raises
    ------
    TypeError
        If a family comes without a parameter, a channel with one, or anything else.

    Notes
    -----
    The bounds are those of :func:`best_bound` for the guarantee of the family, or for
    that of :func:`channel_guarantee`, else for the total variation of the table; and
    Theorem 5.2 of the thesis for the total variation of the output law itself. For
    exact success, a uniform prior and no knowledge, the best attack succeeds as often
    as a blind guess, and the advantage more often. Not checkable: independent records.

    Examples
    --------
    >>> from undertow.risk import Prior
    >>> seen = assess_risk(Channel([[0.8, 0.2], [0.3, 0.7]]), Threat(Prior.uniform(2)))
    >>> round(seen.risk.value, 6), round(seen.success, 6), round(seen.variation, 6)
    (0.25, 0.75, 0.5)
    >>> seen.bounds[-1].name, seen.exact
    ('exact advantage', True)
    """
    if not isinstance(source, Family | Channel):
        raise TypeError(
            f"source must be a Family or a Channel, got {type(source).__name__}; of "
            "others advantage and risk_card state the risk."
        )
    if isinstance(source, Family) != (parameter is not None):
        raise TypeError(
            "parameter must be given for a family and only then, got "
            f"{parameter!r} for {type(source).__name__}."
        )
    law: Any = source
    guarantee: Loss | None = None
    if isinstance(source, Channel):
        risk = advantage(source, threat)
    else:
        assert parameter is not None
        risk = source.risk(parameter, threat)
        law = source.source(source.level(parameter), threat)
        guarantee = source.loss(parameter)
    if guarantee is None and isinstance(law, Channel):
        guarantee = channel_guarantee(law)
    success, how = _success(law, threat, risk)
    variation, missing = _variation(source, law, parameter)
    known = _known(guarantee, variation)
    return RiskAssessment(
        _release(source, parameter),
        risk,
        threat.informed_guess,
        success,
        how,
        variation,
        missing,
        _bounds(threat, risk, known, variation),
    )


def channel_guarantee(channel: Channel) -> Pure | None:
    r"""Return the pure guarantee that a finite channel has, read off its table.

    .. math:: \varepsilon = \max_\theta \ln
       \frac{\max_x p(\theta \mid x)}{\min_x p(\theta \mid x)}

    over the outputs that some record can have.

    Parameters
    ----------
    channel : Channel
        The law of the output for each record.

    Returns
    -------
    Pure, optional
        For replacing one record of the channel by another; raised by 1e-12, which
        covers the rounding of the logarithms. None where some output has probability 0
        for one record and not for another: no finite epsilon holds then.

    Notes
    -----
    This is the definition: every event is a union of outputs, the ratio of two sums is
    at most the largest ratio of their terms, and one output attains it. So no smaller
    epsilon holds. Not checkable: that the table is the law of what is released.

    Examples
    --------
    >>> round(channel_guarantee(Channel([[0.75, 0.25], [0.25, 0.75]])).epsilon, 6)
    1.098612
    >>> channel_guarantee(Channel([[1, 0], [0.5, 0.5]])) is None
    True
    """
    seen = channel.matrix[:, channel.matrix.max(axis=0) > 0]
    if seen.min() <= 0:
        return None
    ratios = np.log(seen.max(axis=0)) - np.log(seen.min(axis=0))
    return Pure(float(ratios.max()) + _MARGIN)


def _success(law: Any, threat: Threat, risk: Risk) -> tuple[float | None, str]:
    """Return how often the best attack succeeds, or why that is not known."""
    if threat.informed_guess >= 1.0:
        return 1.0, "a guess without the output is always right"
    if risk.tight is True and closed_view(threat) == "none" and uniform_prior(threat):
        blind = 1.0 / len(threat.prior)
        return min(1.0, nudge_up(blind + risk.value)), "blind guess plus advantage"
    if law is None:
        return None, (
            "needs a list of all outputs, which are too many here; the advantage needs "
            "none"
        )
    try:
        return success_rate(law, threat).value, "the exact engine"
    except NotApplicable as refusal:
        return None, str(refusal)


def _variation(
    source: Family | Channel, law: Any, parameter: float | None
) -> tuple[float | None, str]:
    """Return the largest total variation between two records, rounded up."""
    # Of families given as a function, only the table of a level tells the variation.
    tabulated = isinstance(source, Channel | FiniteFamily)
    if tabulated and isinstance(law, Channel):
        try:
            return float(variation_matrix(law.matrix).max()), ""
        except ValueError as refusal:
            return None, str(refusal)
    assert isinstance(source, Family)
    assert parameter is not None
    level = np.array([source.level(parameter)])
    value = float(source.variation(level)[0])
    return min(1.0, inflate(value, _MARGIN)), ""


def _known(guarantee: Loss | None, variation: float | None) -> Loss | float:
    """Return what bounds start from: the guarantee, else the total variation."""
    if guarantee is not None:
        return guarantee
    return 1.0 if variation is None else variation


def _bounds(
    threat: Threat, risk: Risk, known: Loss | float, variation: float | None
) -> tuple[BoundRow, ...]:
    rows = best_bound(known, threat).rows
    # The selector was not told the law; what the law gives replaces its last row.
    kept = tuple(row for row in rows if row.name != "exact advantage")
    by_law = "total variation of the law"
    if variation is None:
        own = BoundRow(by_law, False, "needs the total variation, too large to list")
    else:
        bound = named_bound(variation, threat, name="total variation")
        own = BoundRow(by_law, True, "has the output law", bound)
    exact = risk.tight is True
    last = BoundRow(
        "exact advantage",
        exact,
        "has the output law" if exact else "no exact route under this threat",
        risk if exact else None,
    )
    return (*kept, own, last)


def _release(source: Family | Channel, parameter: float | None) -> str:
    if isinstance(source, Channel):
        return f"a channel of {source.size} records and {source.outputs} outputs"
    return f"{source.name} with {source.parameter} {parameter:.6g}"
