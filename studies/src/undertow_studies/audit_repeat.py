"""What the audit studies share: counts of repeated audits, curves and tables.

Reports are also drawn through the samplers and attacked, to see whether the closed
forms are right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from undertow.audit import epsilon_from_success, ldp_auditor_epsilon, success_epsilon
from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    SubsetSelection,
    UnaryEncoding,
)
from undertow.numeric.array import Bools, Ints
from undertow_studies.faults import Fault
from undertow_studies.study import Check, Curve, Inputs, Panel, Study, StudyResult

UNIVERSES = {"Porto": 3052, "Beijing": 5356}
"""Number of crossings of each city: all that an audit with uniform targets reads."""
EPSILON_LABEL = "privacy parameter ε"
ESTIMATE_LABEL = "audited ε"
IDENTITY = "audited = true"
LDP_AUDITOR = "LDP-Auditor"
REPEATS = 5

_TRIALS_PER_RUN = 1000
_PUBLISHED_TRIALS = 1_000_000
_PRINTED_CEILING = 12.25

Values = tuple[float, ...]
Inverse = Callable[["Target", int, int], float]


@dataclass(frozen=True)
class Target:
    """A code under audit that treats all its values alike.

    Parameters
    ----------
    label : str
        Its name.
    epsilon : float
        What it claims.
    categories : int
        The m.
    success : float
        How often the simple attack names a uniform value.
    """

    label: str
    epsilon: float
    categories: int
    success: float

    @property
    def mistake(self) -> float:
        """How often the attack names one given wrong value."""
        return (1.0 - self.success) / (self.categories - 1)

    @property
    def population(self) -> float:
        """The black-box estimate at the true success."""
        return epsilon_from_success(self.success, self.categories)


@dataclass(frozen=True)
class Repeats:
    """The results of one audit, repeated.

    Parameters
    ----------
    values : tuple of float
        One for each repetition; infinite where the audit is undefined.
    """

    values: Values

    @property
    def undefined(self) -> int:
        """How many repetitions have no estimate."""
        return sum(not math.isfinite(v) for v in self.values)

    @property
    def mean(self) -> float:
        """Mean of the defined ones; nan without any."""
        seen = self._seen()
        return math.fsum(seen) / len(seen) if seen else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation of the defined ones; nan for fewer than two."""
        seen = self._seen()
        return float(np.std(seen, ddof=1)) if len(seen) > 1 else math.nan

    def _seen(self) -> list[float]:
        return [v for v in self.values if math.isfinite(v)]


@dataclass(frozen=True)
class Audited:
    """A code, audited several times by reconstruction and by LDP-Auditor."""

    target: Target
    trials: int
    audit: Repeats
    baseline: Repeats

    @property
    def better(self) -> bool:
        """Whether the mean of the audit is nearer the claim."""
        claim = self.target.epsilon
        return abs(self.audit.mean - claim) < abs(self.baseline.mean - claim)


def trials_of(inputs: Inputs) -> int:
    """Return the trials of one audit: a million at the default of 1000 runs."""
    return _TRIALS_PER_RUN * inputs.runs


def black_box(target: Target, right: int, trials: int) -> float:
    """Invert Corollary 5.16 at an observed success; infinite if it is undefined.

    Examples
    --------
    >>> target = Target("GRR", 10, 3052, 0.878337)
    >>> round(black_box(target, 878_337, 10**6), 4)
    10.0
    """
    return epsilon_from_success(right / trials, target.categories)


def audited(
    target: Target,
    *,
    trials: int,
    per_value: int | None = None,
    inverse: Inverse = black_box,
    rng: np.random.Generator,
) -> Audited:
    """Draw the counts of repeated audits from their law, and read them.

    Parameters
    ----------
    trials : int
        Of LDP-Auditor on each of its two values, and of the audit by default.
    per_value : int, optional
        Trials of the audit on each value.
    inverse : callable
        From target, right guesses and trials to an epsilon.
    """
    count = trials if per_value is None else per_value * target.categories
    right = rng.binomial(count, target.success, size=REPEATS)
    true = rng.binomial(trials, target.success, size=REPEATS)
    false = rng.binomial(trials, target.mistake, size=REPEATS)
    estimates = tuple(inverse(target, int(k), count) for k in right)
    others = tuple(
        max(0.0, ldp_auditor_epsilon(int(tp), int(fp), trials=trials))
        for tp, fp in zip(true, false, strict=True)
    )
    return Audited(target, count, Repeats(estimates), Repeats(others))


def expected_baseline(target: Target, *, trials: int) -> float:
    """Return the mean of LDP-Auditor, its true positives at their expectation."""
    from scipy.stats import binom

    law = (trials, target.mistake)
    seen = np.arange(binom.ppf(1e-9, *law), binom.ppf(1 - 1e-9, *law) + 1)
    # The log of a ratio: what the true positives lose is the same for all others.
    true = round(trials * target.success)
    lost = _ceiling(0, trials) - ldp_auditor_epsilon(true, 0, trials=trials)
    values = [max(0.0, _ceiling(int(false), trials) - lost) for false in seen]
    return float(np.average(values, weights=binom.pmf(seen, *law)))


@lru_cache(maxsize=4096)
def _ceiling(false: int, trials: int) -> float:
    return ldp_auditor_epsilon(trials, false, trials=trials)


def certified(target: Target, *, trials: int) -> float:
    """Return what is certified at 99 % where the right guesses are as expected."""
    right = round(trials * target.success)
    return success_epsilon(right, trials, target.categories).value


def identity_curve(levels: Sequence[float]) -> Curve:
    """Return the diagonal: an audit that finds exactly what is claimed."""
    return Curve(IDENTITY, tuple(levels), tuple(levels), kind="baseline")


def line(label: str, targets: Iterable[Target], value: Callable[..., float]) -> Curve:
    """Return a line of some value of each target."""
    found = tuple((t.epsilon, value(t)) for t in targets)
    return Curve(label, tuple(e for e, _ in found), tuple(v for _, v in found))


def markers(label: str, points: Mapping[float, Repeats]) -> Curve:
    """Return the means of repeated audits, with their standard deviations."""
    means = tuple(found.mean for found in points.values())
    spread = tuple(found.deviation for found in points.values())
    return Curve(
        f"{label}, measured", tuple(points), means, kind="measured", spread=spread
    )


def baseline_curves(
    label: str, found: Sequence[Audited], *, trials: int
) -> tuple[Curve, Curve]:
    """Return the expected line of LDP-Auditor and its markers."""
    expected = line(
        label,
        [f.target for f in found],
        lambda target: expected_baseline(target, trials=trials),
    )
    points = {f.target.epsilon: f.baseline for f in found}
    return expected, markers(label, points)


def compared(where: str, found: Sequence[Audited], *, note: str = "") -> Check:
    """Return the check that the audit is nearer the claim than LDP-Auditor.

    Levels at which no repetition has an estimate are left out.
    """
    seen = [f for f in found if f.audit.undefined < len(f.audit.values)]
    worse = [f"{f.target.epsilon:g}" for f in seen if not f.better]
    return Check(
        f"the audit is nearer the true ε than LDP-Auditor, {where}",
        "at every ε",
        "at every ε" if not worse else f"not at ε = {', '.join(worse)}",
        "differs" if worse else "match",
        note,
    )


def ceiling_checks() -> list[Check]:
    """Return the checks of the largest value LDP-Auditor can report."""
    n = _PUBLISHED_TRIALS
    code = ldp_auditor_epsilon(n, 0, trials=n)
    paper = ldp_auditor_epsilon(n, 0, trials=n, tail="half")
    return [
        Check(
            "largest value of LDP-Auditor, a million trials, α = 0.01",
            _PRINTED_CEILING,
            code,
            "erratum",
            f"{code:.4f} as coded, with tails of α/4; {paper:.4f} as printed, with "
            "tails of α/2; no reading gives 12.25",
            "RE25",
        )
    ]


def audit_result(
    study: Study,
    panels: Sequence[Panel],
    checks: Sequence[Check],
    *,
    repeats: Mapping[tuple[str, str], Mapping[float, Repeats]],
    data: str,
) -> StudyResult:
    """Return a result whose table has the deviation of every repeated point.

    Parameters
    ----------
    repeats : mapping
        From names of panel and curve to the repeated audits at each level.
    """
    header = ("panel", "curve", "kind", "x", "y", "deviation", "undefined")
    rows: list[tuple[Any, ...]] = []
    for panel in panels:
        for curve in panel.curves:
            known = repeats.get((panel.name, curve.label), {})
            for x, y in zip(curve.x, curve.y, strict=True):
                spread: tuple[Any, ...] = ("", "")
                if x in known:
                    spread = (known[x].deviation, known[x].undefined)
                rows.append((panel.name, curve.label, curve.kind, x, y, *spread))
    return StudyResult(
        study.name,
        study.title,
        study.source,
        tuple(panels),
        header,
        tuple(rows),
        tuple(checks),
        data,
    )


# Reports drawn through the samplers and attacked: whether the closed forms are right.
#
# Fewer than the counts of the audit studies, which come from their exact law.

_FALSE_ALARM = 1e-6
# Cells of a support table held at a time, and values a subject is asked for.
_CELLS, _ASKED = 1 << 21, 20

# Trials of a protocol by what the attack reads, at a time.
_BLOCK = 1 << 16


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
