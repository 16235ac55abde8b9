"""The runs of the choosing half, and how a checkpoint keeps them.

A subject may take hours for them, and a choice needs them all again. So the outputs
themselves are kept, as long as they are numbers or plain labels and not too large.
"""

from __future__ import annotations

import ast
import base64
import io
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from undertow.audit._checkpoint import Section
from undertow.audit._pair_outcome import BATCH, Pair, draw_outputs
from undertow.audit.subjects import AuditError, Subject

__all__ = ["Runs", "Training", "decoded", "encoded"]

Runs = dict[int, NDArray[Any]]
"""Outputs by the number of the input."""

# Bytes of outputs that a checkpoint keeps.
_MOST = 1 << 27
_UNREADABLE = (
    ValueError, KeyError, TypeError, AttributeError, SyntaxError, EOFError,
    OverflowError, RecursionError,
)  # fmt: skip


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
        interrupted, and then the pair that was chosen.

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
        self.pair: Pair | None = None
        self._parts: dict[int, list[_Part]] = {}
        state = None if section is None else section.read()
        if section is not None and state is not None:
            try:
                self._restore(state)
            except _UNREADABLE as error:
                raise section.damaged(error) from None

    def runs(self) -> Runs:
        """Return the runs of each input, or of the pair that was chosen before."""
        wanted = list(self.sizes) if self.pair is None else list(self.pair)
        before = self._count()
        try:
            for given in wanted:
                self._draw(given)
        finally:
            if self._count() > before:
                self._save()
        runs = {given: _joined(self._parts[given]) for given in wanted}
        _check_kinds(self.subject.name, runs)
        return runs

    def choose(self, pair: Pair) -> None:
        """Keep the pair that was chosen, and the runs of its two inputs alone."""
        if self.pair is None:
            self.pair = (min(pair), max(pair))
            self._parts = {given: self._parts[given] for given in self.pair}
            self._save()

    def _draw(self, given: int) -> None:
        parts, size = self._parts.setdefault(given, []), self.sizes[given]
        done = sum(len(part.outputs) for part in parts)
        rng = self._generator(given, parts[-1].stand if parts else None)
        while done < size:
            draw = draw_outputs(self.subject, given, min(BATCH, size - done), rng)
            # Outputs and what follows them are kept together, or neither is.
            parts.append(_Part(draw, _stand(rng)))
            done += len(draw)
            if self.section is not None and self.section.due():
                self._save()

    def _generator(self, given: int, stand: Any) -> np.random.Generator:
        """Return the generator of an input, where it stands."""
        # Apart from the seeds of the certifying half, whose entropy is the root alone.
        state, spawned = (None, 0) if stand is None else stand
        seed = np.random.SeedSequence(
            (self.stream, 1), spawn_key=(given,), n_children_spawned=spawned
        )
        rng = np.random.default_rng(seed)
        if state is not None:
            rng.bit_generator.state = state
        return rng

    def _count(self) -> int:
        return sum(len(p.outputs) for parts in self._parts.values() for p in parts)

    def _save(self) -> None:
        """Keep the runs so far and where their generators stand, if they allow it."""
        held = {k: _joined(parts) for k, parts in self._parts.items() if parts}
        if self.section is None or sum(run.nbytes for run in held.values()) > _MOST:
            return
        kept = {}
        for given, run in held.items():
            text = encoded(run)
            if text is None:
                return
            kept[str(given)] = {**text, "stand": self._parts[given][-1].stand}
        self.section.save({"runs": kept, "pair": self.pair})

    def _restore(self, state: dict[str, Any]) -> None:
        for name, text in state["runs"].items():
            given, run = int(name), decoded(text)
            size = self.sizes[given]
            if len(run) > size or (len(run) % BATCH and len(run) != size):
                raise ValueError("a part of a batch")
            self._generator(given, text["stand"])
            self._parts[given] = [_Part(run, text["stand"])]
        if state["pair"] is not None:
            first, second = (int(given) for given in state["pair"])
            self.pair = (first, second)


class _Part(NamedTuple):
    """Outputs, and where their generator stands after them."""

    outputs: NDArray[Any]
    stand: Any


def _stand(rng: np.random.Generator) -> Any:
    seed: Any = rng.bit_generator.seed_seq
    return rng.bit_generator.state, seed.n_children_spawned


def _joined(parts: list[_Part]) -> NDArray[Any]:
    return np.concatenate([part.outputs for part in parts])


def encoded(outputs: NDArray[Any]) -> dict[str, Any] | None:
    """Return outputs in a form that JSON holds; None if there is none.

    Examples
    --------
    >>> decoded(encoded(np.array([1.5, 2.0])))
    array([1.5, 2. ])
    >>> encoded(np.array([object()])) is None
    True
    """
    if not outputs.dtype.hasobject:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, outputs, allow_pickle=False)
        return {"array": base64.b64encode(buffer.getvalue()).decode("ascii")}
    items = outputs.tolist()
    if all(type(item) is str for item in items):
        return {"labels": items}
    text = repr(items)
    try:
        # Equal words are equal values of equal types.
        same = repr(ast.literal_eval(text)) == text
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return {"literals": text} if same else None


def decoded(kept: dict[str, Any]) -> NDArray[Any]:
    """Return the outputs that `encoded` has written."""
    if "array" in kept:
        buffer = io.BytesIO(base64.b64decode(kept["array"], validate=True))
        return np.asarray(np.lib.format.read_array(buffer, allow_pickle=False))
    items = kept["labels"] if "labels" in kept else ast.literal_eval(kept["literals"])
    labels = np.empty(len(items), dtype=np.object_)
    for place, item in enumerate(items):
        labels[place] = item
    return labels


def _check_kinds(name: str, runs: Runs) -> None:
    shapes = {(_group(run.dtype), run.shape[1:]) for run in runs.values()}
    if len(shapes) > 1:
        listed = " and ".join(sorted(f"{k} of shape {s}" for k, s in shapes))
        raise AuditError(
            f"{name} must return one type of output, got {listed} on different inputs."
        )


def _group(kind: np.dtype[Any]) -> str:
    return "numbers" if kind.kind in "iuf" else kind.name
