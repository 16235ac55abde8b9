r"""From scores to estimates: the interval that is valid for the design of the draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from undertow._numeric import inflate, nudge_down, nudge_up
from undertow.errors import NotApplicable
from undertow.privacy.result import Estimate
from undertow.risk._draws import Draws
from undertow.risk._score import grid_weights
from undertow.risk.intervals import (
    clopper_pearson,
    empirical_bernstein,
    hoeffding_halfwidth,
    weighted_hoeffding_halfwidth,
)
from undertow.risk.threat import Threat

__all__ = ["Measured"]

Floats = NDArray[np.float64]

# Covers the rounding of an average of values in [-1, 1].
_MARGIN = 1e-12


@dataclass(frozen=True, slots=True)
class Measured:
    """Turns scores into estimates with the interval that fits the design."""

    plan: Draws
    threat: Threat
    confidence: float
    interval: str
    whole: bool  # hits were drawn, not expected

    @property
    def weights(self) -> Floats:
        """The weight of each target, or of each record in the exhaustive design."""
        if self.plan.design == "exhaustive":
            return grid_weights(self.threat.prior.pmf[self.plan.records])
        units = self.plan.total // self.plan.runs
        return np.full(units, 1.0 / units)

    @property
    def counts_are_trials(self) -> bool:
        """Whether hits are independent trials of equal weight, with small tails."""
        if not self.whole or self.plan.design == "clustered":
            return False
        if self.plan.design == "plain":
            return True
        return bool(np.ptp(self.weights) == 0.0 and 1.0 - self.confidence <= 0.5)

    def success(self, hit: Floats) -> Estimate:
        """Return the success probability."""
        if self.interval in ("auto", "clopper-pearson") and self.counts_are_trials:
            low, high = self._counted(hit)
            value = float(hit.sum()) / self.plan.total
            return self._estimate(value, low, high, "Clopper-Pearson")
        return self.mean(hit, 0.0, 1.0)

    def advantage(self, hit: Floats, base: Floats, constant: float | None) -> Estimate:
        """Return success less correction."""
        value = self._difference(hit, base)
        counted = self.counts_are_trials and constant is not None
        if self.interval in ("auto", "clopper-pearson") and counted:
            low, high = self._counted(hit)
            shift = float(constant or 0.0)
            low, high = nudge_down(low - shift), nudge_up(high - shift)
            method = "Clopper-Pearson, less the constant correction"
            return self._estimate(value, low, high, method)
        if self.interval == "clopper-pearson":
            raise NotApplicable(
                "Clopper-Pearson must have independent hits of equal weight and a "
                "correction that is the same for every guess, got another design or "
                "threat; use interval='auto'."
            )
        if constant is not None:
            return self.mean(hit - base, -constant, 1.0 - constant, value=value)
        return self.mean(hit - base, -1.0, 1.0, value=value)

    def mean(
        self,
        values: Floats,
        lowest: float,
        highest: float,
        *,
        value: float | None = None,
    ) -> Estimate:
        """Return a mean of values in an interval."""
        centre = self._average(values) if value is None else value
        units, span = self.plan.unit_means(values), highest - lowest
        stratified = self.plan.design == "exhaustive"
        if stratified and self.interval == "bernstein":
            raise NotApplicable(
                "empirical Bernstein must have targets drawn from the prior, got every "
                "record; use interval='hoeffding'."
            )
        if stratified or self.interval == "hoeffding" or len(units) < 2:
            low, high, method = self._hoeffding(centre, len(units), span)
        else:
            slack = _MARGIN
            low, high = empirical_bernstein(
                units,
                confidence=self.confidence,
                lowest=lowest - slack,
                highest=highest + slack,
            )
            method = "empirical Bernstein, one value per target"
        # The truth lies in the range; a centre outside it is rounding.
        centre = min(max(centre, lowest), highest)
        low, high = max(low, lowest), min(high, highest)
        return self._estimate(centre, min(low, centre), max(high, centre), method)

    def student(self, values: Floats, value: float) -> tuple[float, float] | None:
        """Return the normal approximation around the value, for description only."""
        units, weights = self.plan.unit_means(values), self.weights
        tail = (1.0 + self.confidence) / 2.0
        if self.plan.design != "exhaustive" and len(units) > 1:
            quantile = float(stdtrit(len(units) - 1, tail))
            width = quantile * float(units.std(ddof=1)) / math.sqrt(len(units))
        elif self.plan.design == "exhaustive" and self.plan.runs > 1:
            J = self.plan.runs
            spread = values.reshape(-1, J).var(axis=1, ddof=1)
            width = float(ndtri(tail)) * math.sqrt(float(weights**2 @ spread) / J)
        else:
            return None
        return value - width, value + width

    def _difference(self, hit: Floats, base: Floats) -> float:
        """Return success less correction, exactly 0 if no output matters."""
        if base.min() == base.max():
            return self._average(hit) - float(base[0])
        return self._average(hit - base)

    def _average(self, values: Floats) -> float:
        units = self.plan.unit_means(values)
        if self.plan.design != "exhaustive":
            return math.fsum(units.tolist()) / len(units)
        return math.fsum((self.weights * units).tolist())

    def _counted(self, hit: Floats) -> tuple[float, float]:
        return clopper_pearson(
            int(hit.sum()),
            self.plan.total,
            confidence=self.confidence,
            equal=self.plan.design == "plain",
        )

    def _hoeffding(
        self, centre: float, units: int, span: float
    ) -> tuple[float, float, str]:
        if self.plan.design == "exhaustive":
            collision = min(1.0, inflate(float(self.weights @ self.weights), _MARGIN))
            width = weighted_hoeffding_halfwidth(
                collision, self.plan.runs, confidence=self.confidence, span=span
            )
            method = "Hoeffding, weighted by the prior"
        else:
            width = hoeffding_halfwidth(units, confidence=self.confidence, span=span)
            method = "Hoeffding, one value per target"
        # The average is rounded by less than the margin.
        return centre - width - _MARGIN, centre + width + _MARGIN, method

    def _estimate(self, value: float, low: float, high: float, way: str) -> Estimate:
        return Estimate(value, low, high, self.confidence, self.plan.total, method=way)
