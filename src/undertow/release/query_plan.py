"""One query of a release: its jobs, its noise, and how its answer is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from undertow.composition import Release
from undertow.errors import PlanError
from undertow.mechanisms import NoiseSource
from undertow.release.answer import (
    Noised,
    QueryAnswer,
    add_noise,
    answer_columns,
    answer_table,
    stored_nodes,
)
from undertow.release.budget import Share
from undertow.release.column_types import answer_types
from undertow.release.consistency import settle_rows
from undertow.release.discovery import published_intervals, published_radius
from undertow.release.job import Aggregates, Job, Slice
from undertow.release.measure import Encoding, OneNumber
from undertow.release.running import Node, running_nodes, running_total
from undertow.release.sensitivity import ClaimUnit
from undertow.release.totals import total_radius
from undertow.spaces.base import View

__all__ = ["QueryPlan", "Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """One query to the engine.

    Parameters
    ----------
    job : Job
        What is asked.
    slice : Slice or None
        Which times it reads.
    view : View
        What that is to the accounting.
    node : Node or None
        Of a running total.
    """

    job: Job
    slice: Slice | None
    view: View
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query with its noise.

    Parameters
    ----------
    name, select : str
        As in the release file.
    tasks : tuple of Task
        What the engine is asked in this run: one, for a running total that of its node.
    encoding : Encoding
        The whole numbers of a cell.
    share : Share
        The noise of these numbers and what it costs.
    keys : Share or None
        The noise of the numbers of units that choose keys; `share` itself where these
        numbers are the answer.
    threshold : int or None
        From which noisy number of units a key is published.
    cells : int or None
        Number of cells; None where keys are discovered.
    confidence, beta : float
        Of the intervals, and one minus it.
    consistent : tuple of str
        What is done after the noise.
    run : int or None
        Number of the run of a running total.
    unit : ClaimUnit
        What one step of the claims is.
    """

    name: str
    select: str
    tasks: tuple[Task, ...]
    encoding: Encoding
    share: Share
    keys: Share | None
    threshold: int | None
    cells: int | None
    confidence: float
    beta: float
    consistent: tuple[str, ...]
    run: int | None
    unit: ClaimUnit

    @property
    def job(self) -> Job:
        """The job of the first task."""
        return self.tasks[0].job

    @property
    def slice(self) -> Slice | None:
        """The times that the first task reads."""
        return self.tasks[0].slice

    @property
    def mechanism(self) -> str:
        """The noise in words."""
        noise = self.share.noise
        if noise.law == "laplace":
            text = f"discrete Laplace noise of scale {float(noise.parameter):.6g}"
        else:
            sigma = float(noise.parameter) ** 0.5
            text = f"discrete Gaussian noise of sigma {sigma:.6g}"
        step = self.step
        return text if step == 1 else f"{text} in steps of {float(step):.6g}"

    @property
    def step(self) -> Fraction:
        """What a whole number of noise stands for: rows, units, or of the column.

        The step of the lattice for sums and means, its square for variances.
        """
        value = self.job.value
        if value is None:
            return Fraction(1)
        return value.step**2 if self.select == "variance" else value.step

    @property
    def nodes(self) -> int:
        """How many noisy numbers the answer of this run adds up."""
        return 1 if self.run is None else len(running_nodes(self.run))

    @property
    def expected_error(self) -> dict[str, Any]:
        """The error of a cell, before any data is read.

        `deviation` is that of the noise in a released number, in the unit of the column
        (its square for variances); a running total adds up several nodes, whose own is
        `node_deviation`. `step` is what a whole number of noise stands for.
        `half_width` is that of the interval in the answer, before it is made
        consistent; of discovered numbers of units, that of its upper part, because the
        lower end is 1 near the threshold. Where `unit` says so it is divided by the
        noisy number of rows, and then a bound to first order.
        """
        nodes, (width, unit) = self.nodes, self._half_width()
        deviation = self.share.noise.deviation * float(self.step)
        return {
            "name": self.name,
            "select": self.select,
            "cells": self.cells,
            "loss": [share.loss.to_dict() for share in self.shares],
            "mechanism": self.mechanism,
            "step": float(self.step),
            "deviation": deviation * math.sqrt(nodes),
            "node_deviation": None if self.run is None else deviation,
            "half_width": width,
            "unit": unit,
            "confidence": self.confidence,
            "threshold": self.threshold,
        }

    def _half_width(self) -> tuple[float, str]:
        noise = self.share.noise
        if isinstance(self.encoding, OneNumber):
            return self.encoding.width(self.radius)
        return self.encoding.half_width(noise, self.beta)

    @property
    def radius(self) -> int:
        """How far the interval of one released whole number reaches, in steps.

        The plan and the answer both take it from here.
        """
        noise = self.share.noise
        if self.run is not None:
            return total_radius(noise, self.nodes, beta=self.beta)
        if self.keys is self.share:
            return published_radius(noise, beta=self.beta)
        return noise.radius(self.beta)

    @property
    def shares(self) -> tuple[Share, ...]:
        """The noise of everything the query releases, that of its keys first."""
        if self.keys is None or self.keys is self.share:
            return (self.share,)
        return (self.keys, self.share)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What this run releases, for the composition engine."""
        views = [task.view for task in self.tasks]
        return tuple(
            release
            for share in self.shares
            for release in share.releases(views, self.unit)
        )

    def answer(
        self,
        aggregates: Aggregates | Sequence[Aggregates],
        *,
        source: NoiseSource | None = None,
        earlier: Mapping[str, Sequence[Any]] | None = None,
        settle: bool = True,
    ) -> QueryAnswer:
        """Draw the noise and return the table of answers.

        Parameters
        ----------
        aggregates : Aggregates or sequence of Aggregates
            What the engine returned for each task.
        source : NoiseSource, optional
            Operating-system entropy by default.
        earlier : mapping, optional
            Stored nodes of earlier runs of a running total.
        settle : bool
            Whether to make the answers consistent; else they are as the noise left
            them, for :meth:`settled`.

        Notes
        -----
        Every call draws fresh noise and is a release of its own: charge before, call
        once, and store what comes back.
        """
        given = [aggregates] if isinstance(aggregates, Aggregates) else list(aggregates)
        if len(given) != len(self.tasks):
            raise PlanError(
                f"query {self.name!r} must get {len(self.tasks)} results of the "
                f"engine, got {len(given)}."
            )
        noised = [self._noised(result, source) for result in given]
        if self.tasks[0].node is not None:
            found = self._running(noised, earlier or {})
        else:
            found = self._single(noised[0], given[0].kinds)
        return self.settled(found) if settle else found

    def settled(self, answer: QueryAnswer) -> QueryAnswer:
        """Make every answer consistent by itself, as the query asks."""
        rows, notes = settle_rows(
            answer.rows, self.consistent, non_negative=self.encoding.non_negative
        )
        return replace(answer, rows=rows, notes=(*answer.notes, *notes))

    def _single(self, noised: Noised, kinds: Sequence[str]) -> QueryAnswer:
        if self.keys is self.share:
            rows = self._published(noised)
        else:
            noise = self.share.noise
            rows = answer_table(
                noised, encoding=self.encoding, noise=noise, beta=self.beta
            )
        return self._table(rows, simulated=noised.simulated, kinds=kinds)

    def _published(self, noised: Noised) -> list[tuple[Any, ...]]:
        """Return numbers of units that were chosen by their own noise."""
        assert self.threshold is not None
        found = published_intervals(
            [int(row[0]) for row in noised.numbers],
            noise=self.share.noise,
            threshold=self.threshold,
            beta=self.beta,
        )
        pairs = zip(noised.cells, found, strict=True)
        return [(*cell, *interval) for cell, interval in pairs]

    def _noised(self, result: Aggregates, source: NoiseSource | None) -> Noised:
        return add_noise(
            result,
            encoding=self.encoding,
            share=self.share,
            keys=self.keys,
            threshold=self.threshold,
            source=source,
        )

    def _running(
        self, noised: Sequence[Noised], earlier: Mapping[str, Sequence[Any]]
    ) -> QueryAnswer:
        assert self.run is not None
        fresh = {
            str(task.node): part.numbers
            for task, part in zip(self.tasks, noised, strict=True)
        }
        known = {**stored_nodes(earlier), **fresh}
        flat = {name: numbers[:, 0].tolist() for name, numbers in known.items()}
        totals = running_total(flat, self.run).reshape(-1, 1)
        assert isinstance(self.encoding, OneNumber)
        estimates = self.encoding.around(totals, self.radius)
        pairs = zip(noised[0].cells, estimates, strict=True)
        rows = [(*cell, *found) for cell, found in pairs]
        table = self._table(rows, simulated=any(part.simulated for part in noised))
        stored = {name: numbers.tolist() for name, numbers in fresh.items()}
        return replace(table, nodes=stored)

    def _table(
        self,
        rows: list[tuple[Any, ...]],
        *,
        simulated: bool,
        kinds: Sequence[str] = (),
    ) -> QueryAnswer:
        told = [self.encoding.note] if self.encoding.note else []
        if self.threshold is not None:
            told.append(
                f"keys with a noisy number of units below {self.threshold} are left out"
            )
        return QueryAnswer(
            self.name,
            answer_columns(self.job.by, self.encoding),
            rows,
            self.confidence,
            tuple(told),
            simulated,
            self.share.noise.deviation,
            types=answer_types(
                self.job, self.encoding, kinds=kinds, consistent=self.consistent
            ),
        )
