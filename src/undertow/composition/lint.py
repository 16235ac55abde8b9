"""Reviewing a design before any data is touched: what cannot be true as claimed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from undertow.errors import VacuousGranularityError
from undertow.numeric.exact import Number, exact, format_up
from undertow.privacy.group import group
from undertow.privacy.loss import Approx, Loss
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.canonical import check_domain
from undertow.spaces.partition import Partition, certificate_for
from undertow.spaces.transfer import transfer_factor

_POSITION_RULES = ("row position", "sorted position")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a design; codes starting with E are errors.

    Parameters
    ----------
    code : str
        Stable, for scripts.
    stage : str
        Where.
    message : str
        One clause.
    source : str
        The statement or example behind it.
    """

    code: str
    stage: str
    message: str
    source: str = ""

    def __str__(self) -> str:
        where = f"  ({self.source})" if self.source else ""
        return f"{self.code} {self.stage}: {self.message}{where}"


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a design and what its authors say it satisfies.

    Parameters
    ----------
    name : str
        How findings call it.
    domain : Domain
        The databases it is meant for.
    granularity : Granularity
        What the claim protects.
    claimed : Loss
        What the authors say it costs.
    parts : tuple of Loss
        The losses of the mechanisms in it; the claim itself by default.
    unit : Granularity, optional
        What the parts protect; the granularity by default.
    partition : Partition, optional
        Present if the parts run on the blocks of a partition and the claim is their
        maximum (parallel composition).
    preprocessing : str, optional
        A step before the mechanism.
    sensitivity : number, optional
        How far that step can stretch one change; unknown counts as infinite.
    """

    name: str
    domain: Domain
    granularity: Granularity
    claimed: Loss
    parts: tuple[Loss, ...] = ()
    unit: Granularity | None = None
    partition: Partition | None = None
    preprocessing: str | None = None
    sensitivity: Number | None = None


def lint(design: Sequence[Stage]) -> list[Finding]:
    """Return everything that is wrong with a design, in order.

    Parameters
    ----------
    design : sequence of Stage
        The steps and their claims.

    Returns
    -------
    list of Finding
        Empty if nothing was found, which proves nothing.

    Examples
    --------
    >>> import undertow as ut
    >>> from undertow.spaces import Partition
    >>> counts = Stage("counts", ut.Table(["N", "S"]), ut.Bounded(), ut.Pure(1),
    ...                parts=(ut.Pure(1), ut.Pure(1)),
    ...                partition=Partition.by_value(["N"], ["S"]))
    >>> lint([counts])[0].code
    'E101'
    """
    checks = (_vacuous, _partition, _preprocessing, _understated, _delta, _correlated)
    return [
        finding
        for stage in design
        for check in checks
        if (finding := check(stage)) is not None
    ]


def _vacuous(stage: Stage) -> Finding | None:
    try:
        check_domain(stage.domain, stage.granularity)
    except VacuousGranularityError:
        return Finding(
            "E104",
            stage.name,
            f"{stage.granularity.name} has no neighbours in this domain: the claim is "
            "vacuous",
            "paper, Example III.4",
        )
    return None


def _partition(stage: Stage) -> Finding | None:
    if stage.partition is None or _vacuous(stage) is not None:
        return None  # what has no neighbours is told by itself
    certificate = certificate_for(
        stage.granularity, stage.partition, domain=stage.domain
    )
    if certificate.verdict == "max":
        return None
    rule, name = stage.partition.rule, stage.granularity.name
    count = certificate.touched
    touched = f"{count} blocks" if count < math.inf else "any number of blocks"
    if rule in _POSITION_RULES:
        return Finding(
            "E102",
            stage.name,
            f"partition by {rule} under {name}: one change touches {touched}",
            certificate.source,
        )
    return Finding(
        "E101",
        stage.name,
        f"parallel composition claimed under {name} with a partition by {rule}: one "
        f"change touches {touched}",
        "thesis, Example 2.16" if rule == "value" else certificate.source,
    )


def _preprocessing(stage: Stage) -> Finding | None:
    if stage.preprocessing is None:
        return None
    known = stage.sensitivity is not None
    stretch = math.inf if stage.sensitivity is None else exact(stage.sensitivity)
    if known and stretch < math.inf:
        return None
    kind = "infinite" if known else "no proved, hence infinite,"
    return Finding(
        "E103",
        stage.name,
        f"preprocessing {stage.preprocessing!r} has {kind} sensitivity from "
        f"{stage.granularity.name}",
        "thesis, Proposition A.3",
    )


def _understated(stage: Stage) -> Finding | None:
    unit = stage.unit
    if unit is None or unit == stage.granularity:
        return None
    factor = transfer_factor(unit, stage.granularity, domain=stage.domain).factor
    parts = stage.parts or (stage.claimed,)
    summed = parts[0]
    for part in parts[1:]:
        summed = summed + part
    actual = math.inf if factor == math.inf else group(summed, factor)
    if isinstance(actual, Loss) and actual.within(stage.claimed):
        return None
    shown = "no finite loss" if not isinstance(actual, Loss) else str(actual)
    return Finding(
        "E105",
        stage.name,
        f"claimed {stage.claimed} at {stage.granularity.name} level from {summed} at "
        f"{unit.name} level: actual {shown}",
        "thesis, Proposition A.7",
    )


def _delta(stage: Stage) -> Finding | None:
    deltas = [p.exact_parameters()[1] for p in stage.parts if isinstance(p, Approx)]
    if sum(deltas) < 1:
        return None
    return Finding(
        "E106",
        stage.name,
        f"delta sums to {format_up(sum(deltas))} over {len(deltas)} releases: no "
        "guarantee",
        "paper, Theorem VI.5",
    )


def _correlated(stage: Stage) -> Finding | None:
    if not stage.granularity.splits_person:
        return None
    return Finding(
        "W201",
        stage.name,
        f"{stage.granularity.name} level presumes that one person's units are "
        "independent of each other",
        "thesis, Section 2.3.2",
    )
