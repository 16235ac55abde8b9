r"""A small paid count before a release: whether it would find rows at all.

A release that finds no rows looks like any other. A count with noise of its own, a
stated sliver of the budget, is drawn first, and a run that finds too little stops
before the main charge. What is counted is the least number of units (or rows) that
count in any query: adding or removing what one unit has moves every one of these
numbers by at most :math:`\Delta`, and so the least of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.composition import Release
from undertow.errors import PlanError
from undertow.mechanisms import NoiseSource
from undertow.privacy.conversion import zcdp_to_approx
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.release.engine.job import Aggregates, Job, Measure, Slice
from undertow.release.plan._budget import (
    Need,
    Promise,
    Share,
    calibrate_noise,
    calibrate_rho,
    round_down_long,
)
from undertow.release.plan.noise import ClaimUnit, Reach
from undertow.release.plan.planned_query import QueryShape
from undertow.release.plan.timeline import Timeline
from undertow.spaces import Identity, User

if TYPE_CHECKING:
    from undertow.release.document.release_document import ReleaseDocument


# An empty table may pass at most this often; otherwise the count checks nothing.
_PASSING = 0.05
# By so much a converted level is lowered: conversions are exact up to their last bits.
_MARGIN = 1 - Fraction(1, 2**40)
_WHOLE = ClaimUnit(User(add_remove=True), User())
_OF_TIMES = frozenset({"start", "time", "type of time", "window"})


@dataclass(frozen=True, slots=True)
class SanityCount:
    """What is counted before a release, and what that costs.

    Parameters
    ----------
    measure : {"units", "rows"}
        What is counted.
    least : int
        The noisy count from which on the release is made.
    part : Fraction
        The part of the budget of one count.
    tries : int
        How many such counts of a run the budget has room for.
    share : Share
        The noise and what one count costs.
    jobs : tuple of Job
        What the engine is asked, query by query.
    slice : Slice or None
        Which times are read.
    whole : bool
        Whether units are counted over several windows. It is then nothing to the
        accounting what a window is, or as what the time is read.
    releases : tuple of Release
        One count, for the ledger.
    covered : tuple of Release
        All counts that the promise covers.
    """

    measure: Measure
    least: int
    part: Fraction
    tries: int
    share: Share
    jobs: tuple[Job, ...]
    slice: Slice | None
    whole: bool
    releases: tuple[Release, ...]
    covered: tuple[Release, ...]

    def frame(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """Return what units and times stand for in a count, of those of its release."""
        drop = _OF_TIMES if self.whole else frozenset()
        return {name: value for name, value in frame.items() if name not in drop}

    @property
    def empty_passes(self) -> float:
        """Return how often a release that finds nothing passes, rounded up."""
        return math.exp(self.share.noise.log_tail(self.least))

    @property
    def double_stops(self) -> float:
        """Return how often one that finds twice the limit is stopped, rounded up."""
        return math.exp(self.share.noise.log_tail(self.least + 1))

    def noisy(
        self, counted: Sequence[Aggregates], *, source: NoiseSource | None = None
    ) -> int:
        """Draw the noise of the count, once, and return the noisy count.

        Parameters
        ----------
        counted : sequence of Aggregates
            What the engine returned for each of `jobs`.
        source : NoiseSource, optional
            Operating-system entropy by default.
        """
        found = min(int(part.measures[str(self.measure)][0]) for part in counted)
        values = np.array([[found]], dtype=np.object_)
        return int(self.share.noise.add_to(values, source=source).values[0, 0])

    def to_dict(self) -> dict[str, Any]:
        """Return the count as plain values."""
        noise = self.share.noise
        return {
            "measure": self.measure,
            "at_least": self.least,
            "share": str(self.part),
            "tries": self.tries,
            "loss": self.share.loss.to_dict(),
            "law": noise.law,
            "deviation": noise.deviation,
            "half_width": float(noise.radius(_PASSING)),
            "confidence": 1 - _PASSING,
            "empty_passes": self.empty_passes,
            "double_stops": self.double_stops,
        }

    def words(self) -> str:
        """Say what is counted and how often the count is wrong."""
        radius = self.share.noise.radius(_PASSING)
        return (
            f"stops below {self.least:,} {self.measure}, ± {radius} (95 %): "
            f"{_percent(self.empty_passes)} of runs that find none pass, "
            f"{_percent(self.double_stops)} of those that find {2 * self.least:,} are "
            f"stopped; {float(100 * self.part):.4g} % of the budget, room for "
            f"{self.tries} in all"
        )


def _percent(probability: float) -> str:
    """Return a probability in percent, rounded up."""
    if probability < 1e-8:
        return "less than 0.000001 %"
    digits = 1 - math.floor(math.log10(100 * probability))
    unit = 10.0 ** max(0, digits)
    return f"at most {math.ceil(100 * probability * unit) / unit:g} %"


def split_promise(
    promise: Promise, part: Fraction, *, runs: int
) -> tuple[Promise, Promise]:
    """Divide a promise into one for counts and one for everything else.

    Parameters
    ----------
    promise : Promise
        What the two keep together, also where each is charged by itself.
    part : Fraction
        The part of the budget for counts, in (0, 1).
    runs : int
        How many runs the promise covers.

    Returns
    -------
    tuple of Promise
        That of the counts, and the rest.

    Notes
    -----
    Pure and zCDP losses add up; in Gaussian DP the squares of mu do. A promise in
    (epsilon, delta) keeps its delta for the rest, and the counts are pure; but where
    several runs are charged in zCDP, counts are too, and share its rho.
    """
    total, rest = promise.total, 1 - part
    if not isinstance(total, Approx):
        level = Fraction(total.exact_parameters()[0])  # of mu, its square
        builds: dict[type[Loss], Callable[[Fraction], Loss]]
        builds = {Pure: Pure, ZCDP: ZCDP, GDP: GDP.from_square}
        made = builds[type(total)]
        counts, others = (made(level * some) for some in (part, rest))
        return (
            promise.spending(counts, law=promise.law),
            promise.spending(others, law=promise.law),
        )
    epsilon, delta = (Fraction(x) for x in total.exact_parameters())
    if runs == 1 or promise.keys_delta:
        return (
            promise.spending(Pure(epsilon * part), law="laplace"),
            promise.spending(Approx(epsilon * rest, delta), law=promise.law),
        )
    rho = calibrate_rho(epsilon, promise.conversion_delta)
    left = zcdp_to_approx(
        ZCDP(rho * rest), delta=promise.conversion_delta, method="optimal"
    )
    level = round_down_long(Fraction(left.exact_parameters()[0]) * _MARGIN)
    return (
        promise.spending(ZCDP(rho * part), law="gaussian"),
        promise.spending(Approx(level, delta), law=promise.law),
    )


def sanity_count(
    document: ReleaseDocument,
    shapes: Sequence[QueryShape],
    *,
    timeline: Timeline,
    promise: Promise,
) -> SanityCount:
    """Return what is counted before a release of some queries.

    Parameters
    ----------
    document : ReleaseDocument
        With a `check`.
    shapes : sequence of QueryShape
        The queries.
    timeline : Timeline
        What a run reads.
    promise : Promise
        What all counts that it covers may lose, from :func:`split_promise`.

    Raises
    ------
    PlanError
        If a release that finds nothing would pass too often.
    """
    stated = document.check
    assert stated is not None
    measure: Measure = "rows" if stated.units_at_least is None else "units"
    least = stated.rows_at_least or stated.units_at_least
    assert least is not None
    moved = 1
    if measure == "rows":
        moved = max(shape.contribution.row_reach().total for shape in shapes)
    reach = Reach(moved, moved**2, 1).of_one_sign(cells=1, most=moved)
    unit, views, view = timeline.unit, timeline.views(), timeline.view()
    windows = timeline.windows_read if timeline.kind == "window" else 1
    whole = measure == "units" and windows > 1
    if whole:  # a unit moves it by one, however many windows it is in
        unit, views, view = _WHOLE, (Identity(),), Identity()
    need = Need("check", reach, Fraction(1), views * stated.tries)
    [share] = calibrate_noise(
        [need], domain=timeline.domain, unit=unit, promise=promise
    )
    enough = share.noise.radius(2 * _PASSING) + 1
    if least < enough:
        raise PlanError(
            f"check.{measure}_at_least must be at least {enough} for its share of the "
            f"budget, got {least}: a release that finds nothing would pass too often; "
            "raise it, or state a larger check.share."
        )
    return SanityCount(
        measure,
        least,
        stated.share,
        stated.tries,
        share,
        tuple(_job(shape.job, measure) for shape in shapes),
        timeline.slice,
        whole,
        share.releases([view], unit),
        share.releases(need.views, unit),
    )


def _job(job: Job, measure: Measure) -> Job:
    """Return the job that counts all rows, or units, that count in a query."""
    return replace(job, measures=(measure,), total=True)
