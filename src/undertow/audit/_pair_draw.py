"""How the runs of one input are drawn: in batches, of slow functions part by part.

A function that is called once for each run draws the same numbers however its runs are
grouped. So its batches are drawn in parts of about a quarter of a second, after each of
which its outputs and its generator can be kept; no result depends on the clock.
"""

from __future__ import annotations

import ast
import base64
import io
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from undertow.audit.outputs import read_outcomes
from undertow.audit.subject_callable import CallableSubject
from undertow.audit.subjects import Subject

__all__ = [
    "Drawer",
    "Part",
    "decoded",
    "draw_outputs",
    "encoded",
    "generator",
    "is_divisible",
    "joined",
]

# A part takes about between these seconds.
_SHORT, _LONG = 0.1, 0.4


class Part(NamedTuple):
    """Outputs, and where their generator stands after them."""

    outputs: NDArray[Any]
    stand: Any


class Drawer:
    """Draws batches of one subject, part by part where parts are no other runs.

    Parameters
    ----------
    subject : Subject
        What is run.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.divisible = subject, is_divisible(subject)
        self._pace = 1

    def parts(
        self, given: int, size: int, *, rng: np.random.Generator
    ) -> Iterator[Part]:
        """Draw so many runs of an input and yield them as they come."""
        left = size
        while left:
            outputs = self._timed(given, left, rng)
            yield Part(outputs, _stand(rng))
            left -= len(outputs)

    def _timed(self, given: int, left: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw a part, and adapt the size of the next one to its time."""
        if not self.divisible:
            return draw_outputs(self.subject, given, left, rng)
        start = time.monotonic()
        outputs = draw_outputs(self.subject, given, min(left, self._pace), rng)
        taken = time.monotonic() - start
        if taken > _LONG:
            self._pace = max(1, self._pace // 2)
        elif taken < _SHORT and len(outputs) == self._pace:
            self._pace *= 2
        return outputs


def is_divisible(subject: Subject) -> bool:
    """Return whether a subject is a function that is called once for each run.

    Examples
    --------
    >>> flip = CallableSubject(lambda bit, rng: bit ^ (rng.random() < 0.25), [0, 1])
    >>> is_divisible(flip)
    True
    """
    return isinstance(subject, CallableSubject) and not subject.vectorised


def draw_outputs(
    subject: Subject, given: int, size: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Run a subject and return whatever its runs ended in."""
    run = getattr(subject, "outcomes", subject.sample)
    return read_outcomes(run(given, size, rng=rng), size, name=subject.name)


def joined(outputs: Sequence[NDArray[Any]], *, name: str) -> NDArray[Any]:
    """Return the outputs of several parts as if they had been drawn at once.

    Examples
    --------
    >>> joined([np.array([1]), np.array([0.5])], name="f")
    array([1, 0.5], dtype=object)
    """
    kinds = {(part.dtype, part.shape[1:]) for part in outputs}
    if len(kinds) == 1 and not outputs[0].dtype.hasobject:
        return np.concatenate(outputs)
    items = [part.tolist() if part.ndim == 1 else list(part) for part in outputs]
    listed = list(itertools.chain.from_iterable(items))
    return read_outcomes(listed, len(listed), name=name)


def generator(
    seed: Callable[[int], np.random.SeedSequence], stand: Any
) -> np.random.Generator:
    """Return a generator where it stood.

    Parameters
    ----------
    seed : callable
        From a number of children that were spawned to the seed of the generator.
    stand : pair or None
        Of the generator when it was left: its state and the children it had spawned.
    """
    state, spawned = (None, 0) if stand is None else stand
    rng = np.random.default_rng(seed(spawned))
    if state is not None:
        rng.bit_generator.state = state
    return rng


def _stand(rng: np.random.Generator) -> Any:
    seed: Any = rng.bit_generator.seed_seq
    return rng.bit_generator.state, seed.n_children_spawned


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
