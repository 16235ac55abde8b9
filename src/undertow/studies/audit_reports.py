"""Reports drawn through the samplers and attacked: whether the closed forms are right.

Fewer than the counts of the audit studies, which come from their exact law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit.faults import Fault
from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    SubsetSelection,
    UnaryEncoding,
)
from undertow.studies.audit_common import Target
from undertow.studies.base import Check

__all__ = [
    "Sampled",
    "reports_check",
    "sample_fault",
    "sample_protocol",
    "sample_reading",
]

_FALSE_ALARM = 1e-6
# Cells of a support table held at a time, and values a subject is asked for.
_CELLS, _ASKED = 1 << 21, 20

# Trials of a protocol by what the attack reads, at a time.
_BLOCK = 1 << 16

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sampled:
    """How often the attack was right on reports drawn through a sampler."""

    target: Target
    reports: int
    right: int

    @property
    def likely(self) -> bool:
        """Whether so many right guesses are no less likely than the false alarm."""
        from scipy.stats import binom

        s = self.target.success
        low = binom.cdf(self.right, self.reports, s)
        high = binom.sf(self.right - 1, self.reports, s)
        return bool(min(low, high) > _FALSE_ALARM / 2)


def sample_protocol(
    target: Target, protocol: LocalProtocol, *, reports: int, rng: np.random.Generator
) -> Sampled:
    """Draw reports of uniform values, attack each, and count the right guesses."""
    m = protocol.categories
    step = _CELLS if isinstance(protocol, GeneralizedResponse) else max(1, _CELLS // m)
    right = 0
    for start in range(0, reports, step):
        truths = rng.integers(m, size=min(step, reports - start))
        drawn = protocol.sample(truths, source=SimulatedSource(rng)).values
        right += int(_hits(protocol, drawn, truths, rng).sum())
    return Sampled(target, reports, right)


def sample_fault(
    target: Target, fault: Fault, *, reports: int, rng: np.random.Generator
) -> Sampled:
    """Run broken code on 20 of its values, equally often, attack and count."""
    each, right = max(1, reports // _ASKED), 0
    step = max(1, _CELLS // target.categories)
    for value in rng.integers(target.categories, size=_ASKED).tolist():
        for start in range(0, each, step):
            size = min(step, each - start)
            drawn = np.asarray(fault.broken.subject.sample(value, size, rng=rng))
            truths = np.full(size, value)
            right += int(_hits(fault.reader, drawn, truths, rng).sum())
    return Sampled(target, each * _ASKED, right)


def sample_reading(
    target: Target, protocol: LocalProtocol, *, trials: int, rng: np.random.Generator
) -> Sampled:
    """Draw what the simple attack reads of each report, attack, and count.

    It reads whether the report supports the value, and how many others it supports;
    both have known laws, so that no report is drawn. This presumes that the code is
    the protocol, and for hashing an ideal hash: black boxes need `sample_protocol`.
    """
    right = 0
    for start in range(0, trials, _BLOCK):
        held, others = _reading(protocol, min(_BLOCK, trials - start), rng)
        chance = held / (1.0 + others)
        chance[~held & (others == 0)] = 1.0 / protocol.categories
        right += int(np.count_nonzero(rng.random(len(held)) < chance))
    return Sampled(target, trials, right)


def _reading(
    protocol: LocalProtocol, size: int, rng: np.random.Generator
) -> tuple[Bools, Ints]:
    """Draw whether a report supports its value, and how many others."""
    held = rng.random(size) < float(protocol.keep)
    if isinstance(protocol, UnaryEncoding | LocalHashing):
        others = rng.binomial(protocol.categories - 1, float(protocol.noise), size)
    elif isinstance(protocol, SubsetSelection):
        others = protocol.subset - held
    elif isinstance(protocol, GeneralizedResponse):
        others = 1 - held
    else:
        raise TypeError(
            "protocol must report a set of values, got "
            f"{type(protocol).__name__}; use sample_protocol."
        )
    return held, others


def _hits(reader: Any, reports: Any, truths: Any, rng: np.random.Generator) -> Bools:
    """Draw whether a uniform element of the support of each report is the truth."""
    if reader is None or isinstance(reader, GeneralizedResponse):
        return np.asarray(reports == truths)
    table = reader.support(reports)
    sizes = table.sum(axis=1)
    held = table[np.arange(len(truths)), truths]
    chance = np.where(sizes > 0, held / np.maximum(sizes, 1), 1 / table.shape[1])
    return np.asarray(rng.random(len(truths)) < chance)


def reports_check(where: str, points: Sequence[Sampled]) -> Check:
    """Return the check that sampled reports have the success of the closed form."""
    good = all(p.likely for p in points)
    sizes = sorted({p.reports for p in points})
    span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return Check(
        f"attacks on reports from the sampler succeed as the closed form says, {where}",
        None,
        "yes" if good else "no",
        "not published" if good else "differs",
        f"{span} reports at each of {len(points)} points, "
        f"{sum(p.right for p in points)} right guesses in all",
    )
