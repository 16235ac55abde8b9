"""The runs of the choosing half, and how a checkpoint keeps them.

A subject may take hours for them, and a choice needs them all again. So the outputs
themselves are kept, as long as they are numbers or plain labels and not too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from undertow.audit._checkpoint import UNREADABLE, Section
from undertow.audit._freshness import check_apart, check_steady
from undertow.audit._outcome import Raised, Told
from undertow.audit._pair_chunks import BATCH, Pair
from undertow.audit._pair_contest import Tier
from undertow.audit._pair_draw import (
    Drawer,
    Part,
    decoded,
    encoded,
    generator,
    joined,
)
from undertow.audit._timing import untimed
from undertow.audit.subjects import Subject
from undertow.errors import AuditError

__all__ = ["Kept", "Runs", "Training"]

Runs = dict[int, NDArray[Any]]
"""Outputs by the number of the input."""

# Bytes of outputs that a checkpoint keeps.
_MOST = 1 << 27
# Runs of each input after which a function may be found broken, and the share of them.
_FIRST, _BROKEN = 64, 0.99


class Kept(NamedTuple):
    """What was chosen: a pair, the tier of the score, and what to know of it."""

    pair: Pair
    tier: Tier
    notes: tuple[str, ...] = ()


class Training:
    """Draws the runs of the choosing half, or reads them from a checkpoint.

    Parameters
    ----------
    subject : Subject
        What is run.
    sizes : dict of int to int
        Runs of each input.
    stream : int
        The seed.
    section : Section, optional
        Where the runs are kept, about every second and when they end or are
        interrupted, and then what was chosen.

    Raises
    ------
    AuditError
        If the section does not hold what was saved there.

    Notes
    -----
    Outputs that cannot be kept, or are more than 128 MiB, are drawn again from the
    seed: the result is the same, the time is not saved.
    """

    def __init__(
        self,
        subject: Subject,
        sizes: dict[int, int],
        *,
        stream: int,
        section: Section | None = None,
    ) -> None:
        self.subject, self.sizes, self.stream = subject, sizes, stream
        self.section = section
        self.kept: Kept | None = None
        self._drawer = Drawer(subject)
        self._parts: dict[int, list[Part]] = {}
        state = None if section is None else section.read()
        if section is not None and state is not None:
            try:
                self._restore(state)
            except UNREADABLE as error:
                raise section.damaged(error) from None

    def runs(self) -> Runs:
        """Return the runs of each input, or of the pair that was chosen before."""
        wanted = list(self.sizes) if self.kept is None else list(self.kept.pair)
        before = self._count()
        try:
            if self._drawer.divisible:  # a broken function is told at once
                for given in wanted:
                    self._draw(given, min(_FIRST, self.sizes[given]))
                _check_raised(self.subject.name, self._held(wanted), 1.0)
            for given in wanted:
                self._draw(given, self.sizes[given])
        finally:
            if self._count() > before:
                self._save()
        runs = self._held(wanted)
        plain = {given: untimed(run) for given, run in runs.items()}
        _check_returns(self.subject.name, plain)
        for run in plain.values():
            check_apart(run, name=self.subject.name)
            check_steady(run, name=self.subject.name)
        return runs

    def choose(self, kept: Kept) -> None:
        """Keep what was chosen, and the runs of the two inputs alone."""
        if self.kept is None:
            self.kept = kept
            self._parts = {given: self._parts[given] for given in kept.pair}
            self._save()

    def _held(self, wanted: list[int]) -> Runs:
        return {given: self._joined(given) for given in wanted}

    def _draw(self, given: int, size: int) -> None:
        parts = self._parts.setdefault(given, [])
        done = sum(len(part.outputs) for part in parts)
        rng = self._generator(given, parts[-1].stand if parts else None)
        while done < size:
            left = min(BATCH, size - done)
            for part in self._drawer.parts(given, left, rng=rng):
                # Outputs and what follows them are kept together, or neither is.
                parts.append(part)
                done += len(part.outputs)
                if self.section is not None and self.section.due():
                    self._save()

    def _generator(self, given: int, stand: Any) -> np.random.Generator:
        """Return the generator of an input, where it stands."""

        # Apart from the seeds of the certifying half, whose entropy is the root alone.
        def seed(spawned: int) -> np.random.SeedSequence:
            return np.random.SeedSequence(
                (self.stream, 1), spawn_key=(given,), n_children_spawned=spawned
            )

        return generator(seed, stand)

    def _joined(self, given: int) -> NDArray[Any]:
        outputs = [part.outputs for part in self._parts[given]]
        return joined(outputs, name=self.subject.name)

    def _count(self) -> int:
        return sum(len(p.outputs) for parts in self._parts.values() for p in parts)

    def _save(self) -> None:
        """Keep the runs so far and where their generators stand, if they allow it."""
        held = {k: self._joined(k) for k, parts in self._parts.items() if parts}
        if self.section is None or sum(run.nbytes for run in held.values()) > _MOST:
            return
        kept = {}
        for given, run in held.items():
            text = encoded(run)
            if text is None:
                return
            kept[str(given)] = {**text, "stand": self._parts[given][-1].stand}
        self.section.save({"runs": kept, "kept": self.kept})

    def _restore(self, state: dict[str, Any]) -> None:
        for name, text in state["runs"].items():
            given, run = int(name), decoded(text)
            size = self.sizes[given]
            whole = self._drawer.divisible or not len(run) % BATCH or len(run) == size
            if len(run) > size or not whole:
                raise ValueError("a part of a batch")
            self._generator(given, text["stand"])
            self._parts[given] = [Part(run, text["stand"])]
        if state["kept"] is not None:
            (first, second), tier, notes = state["kept"]
            if tier not in get_args(Tier):
                raise ValueError("no tier")
            pair = (int(first), int(second))
            self.kept = Kept(pair, tier, tuple(str(note) for note in notes))


def _check_returns(name: str, runs: Runs) -> None:
    """Refuse a function that raises, or tells nothing, on every input.

    In fewer runs, or on one input alone, that is an outcome like others.
    """
    _check_raised(name, runs, _BROKEN)
    opaque = [_those(run, _is_opaque) for run in runs.values()]
    if all(opaque) and all(map(_is_whole, opaque, runs.values())):
        kind = type(opaque[0][0].value).__name__
        raise AuditError(
            f"{name} must return outputs that can be compared, got {kind}, which tells "
            "nothing of itself; return numbers, text, or lists or dictionaries of them."
        )
    if all(map(_is_nothing, runs.values())):
        told = "None" if next(iter(runs.values())).dtype == object else "nan"
        raise AuditError(
            f"{name} must return a value, got {told} in every run; look for a missing "
            "return."
        )


def _check_raised(name: str, runs: Runs, most: float) -> None:
    """Refuse a function that raises in more than a share of the runs of every input."""
    found = [_those(run, _is_raised) for run in runs.values()]
    shares = [
        len(some) / len(run) for some, run in zip(found, runs.values(), strict=True)
    ]
    if min(shares) >= most:
        first = found[0][0]
        raise AuditError(
            f"{name} must not raise, got {first.kind}"
            f"{': ' + first.said if first.said else ''}, in {min(shares):.1%} of the "
            "runs or more on every input."
        )


def _those(run: NDArray[Any], is_one: Callable[[Any], bool]) -> list[Any]:
    if run.dtype != object:
        return []
    return [item for item in run.tolist() if is_one(item)]


def _is_raised(item: Any) -> bool:
    return isinstance(item, Raised)


def _is_opaque(item: Any) -> bool:
    return isinstance(item, Told) and item.opaque


def _is_whole(found: list[Any], run: NDArray[Any]) -> bool:
    return len(found) == len(run)


def _is_nothing(run: NDArray[Any]) -> bool:
    """Return whether no run returned a value."""
    if run.dtype == object:
        return all(item is None for item in run.tolist())
    return run.dtype.kind == "f" and bool(run.size and np.isnan(run).all())
