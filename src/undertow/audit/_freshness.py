"""Whether a subject draws anew: batches that repeat each other are no evidence."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from undertow.audit._outcome import outcome
from undertow.audit.events import output_labels
from undertow.errors import AuditError

__all__ = [
    "Freshness",
    "Mark",
    "check_apart",
    "check_steady",
    "clumping",
    "lingering",
    "order_entropy",
    "probe",
]

Draw = Callable[[int, int, np.random.Generator], NDArray[Any]]
"""From an input, a size and a generator to outputs."""

Mark = tuple[int, bytes]
"""An input, and a digest of how a batch of it began."""

# Two independent batches agree so well with probability at most exp(-60), hence any
# two of a million with probability below 1e-13.
_REPETITION = 60.0
_LONGEST = 2048
# Runs in a row that are looked at for noise they share: of a batch, of all together,
# and of how many inputs.
_HEAD, _IN_A_ROW, _HEADED = 256, 4096, 16
# Coordinates of which it is looked at whether they linger.
_COORDINATES = 8
# Digests that are kept.
_KEPT = 200_000
# Runs of each of two batches at the start; 256 coins are beyond chance. The other
# number keeps their streams apart from those of the audit.
_PROBES = 256
_PROBE = 0x70726F6265


def order_entropy(outputs: Any) -> float:
    r"""Return :math:`m H` of m outputs, with H the entropy of their frequencies.

    Independent runs of any one law repeat the outputs in this order with probability at
    most :math:`e^{-mH}`: Proposition 6 of the page *Event audits*.

    Examples
    --------
    >>> round(order_entropy(np.array([0, 1, 0, 1])), 6)
    2.772589
    """
    labels = outputs if isinstance(outputs, list) else output_labels(outputs)
    counts = np.array(list(Counter(labels).values()))
    return float(-(counts * np.log(counts / max(1, counts.sum()))).sum())


def clumping(outputs: Any) -> float:
    r"""Return how far beyond chance equal outputs stand side by side, in nats.

    Notes
    -----
    If runs are independent and of one law, all orders of the same outputs are equally
    likely: :math:`m! / \prod n_i!` of them for m outputs, d of them different. At most
    :math:`d (d-1)^{s-1} \binom{m-1}{s-1}` have s stretches of equal outputs: s - 1
    places where a stretch ends, and what each one holds. So r stretches or fewer
    have at most the probability :math:`e^{-c}`, with c what is returned: the log of the
    first number less that of the sum of the others up to r.

    Examples
    --------
    >>> noise = np.repeat([0.3, -1.2], 256)  # one draw for each batch of two
    >>> clumping(noise) > 300, clumping(np.random.default_rng(1).permutation(noise)) > 0
    (True, False)
    """
    keys = outputs if isinstance(outputs, list) else _keys(outputs)
    counts = np.array(list(Counter(keys).values()), dtype=np.float64)
    return _beyond_chance(counts, 1 + sum(a != b for a, b in itertools.pairwise(keys)))


def lingering(outputs: NDArray[Any]) -> float:
    r"""Return how far beyond chance numbers stay on one side of their middle, in nats.

    The largest over the first eight coordinates of vectors; 0 for what is no number.

    Notes
    -----
    As in `clumping`, for the sides of the median. It depends on the numbers and not on
    their order, so that given the numbers all orders are equally likely still.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=1000)
    >>> lingering(noise) > 0, lingering(noise.cumsum()) > 300
    (False, True)
    """
    if outputs.dtype.kind not in "iuf" or not outputs.size:
        return 0.0
    columns = outputs.reshape(len(outputs), -1)[:, :_COORDINATES].T
    return max(_one_sided(column) for column in columns)


def _one_sided(numbers: NDArray[Any]) -> float:
    above = numbers > np.sort(numbers)[(len(numbers) - 1) // 2]
    many = int(np.count_nonzero(above))
    if not many:
        return 0.0
    stretches = 1 + int(np.count_nonzero(above[1:] != above[:-1]))
    return _beyond_chance(np.array([many, len(above) - many]), stretches)


def _beyond_chance(counts: NDArray[Any], stretches: int) -> float:
    """Return the c of `clumping` for so many outputs of each kind."""
    m, d = int(counts.sum()), len(counts)
    if d < 2:
        return 0.0
    s = np.arange(1, stretches + 1, dtype=np.float64)
    places = gammaln(m) - gammaln(s) - gammaln(m - s + 1)
    few = logsumexp(places + np.log(d) + (s - 1) * np.log(d - 1))
    return float(gammaln(m + 1) - gammaln(counts + 1).sum() - few)


def check_apart(outputs: Any, *, name: str) -> None:
    """Refuse runs of one input in a row that share their noise.

    Such are those of a function that draws once for a whole array, of a program that
    seeds itself for each line with a clock in seconds, or of one that keeps answers.
    """
    if clumping(outputs[:_IN_A_ROW]) > _REPETITION:
        raise AuditError(
            f"{name} must draw anew for every run, got stretches of equal outputs "
            "beyond chance; give each run noise of its own."
        )


def check_steady(outputs: NDArray[Any], *, name: str) -> None:
    """Refuse runs of one input in a row whose numbers follow those before them.

    Such are counters and time stamps, and noise that is partly kept from run to run.
    """
    if lingering(outputs[:_IN_A_ROW]) > _REPETITION:
        raise AuditError(
            f"{name} must draw anew for every run, got numbers that stay above or "
            "below their middle beyond chance; give each run noise of its own, and "
            "leave counters and times out of the output."
        )


class Freshness:
    """Remembers how the batches of each input began, and refuses a repetition.

    Parameters
    ----------
    name : str
        Of the subject, for the message.

    Notes
    -----
    Compared are the first 2048, 1024, ... outputs, as far as their order is beyond
    chance. A program that seeds itself with a constant, or with a clock that has not
    moved on, is found, and one that draws once for many runs, and numbers that
    linger; other dependence is not.
    What workers find is handed to the process that started them: `drain` there,
    `admit` here.
    """

    def __init__(self, name: str, *, remote: bool = False) -> None:
        self.name, self._remote = name, remote
        self._seen: set[Mark] = set()
        self._new: list[Mark] = []
        self._heads: dict[int, list[int]] = {}
        self._numbers: dict[int, NDArray[Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy for a worker starts empty, and keeps what it is to hand over.
        return functools.partial(Freshness, remote=True), (self.name,)

    def check(self, given: int, outputs: NDArray[Any]) -> None:
        """Remember a batch of one input, or raise if it has been there before."""
        marks = [(given, mark) for mark in _beginnings(outputs)]
        self.admit(marks)
        if self._remote:
            self._new += marks
        self._check_heads(given, outputs)

    def _check_heads(self, given: int, outputs: NDArray[Any]) -> None:
        """Refuse batches that are each of one draw, by the first runs of them."""
        if given not in self._heads and len(self._heads) == _HEADED:
            return
        heads = self._heads.setdefault(given, [])
        if len(heads) < _IN_A_ROW:
            # By value, whatever the type or width of the array in which a batch came.
            heads += map(hash, map(outcome, output_labels(outputs[:_HEAD])))
            check_apart(heads, name=self.name)
            self._check_numbers(given, outputs[:_HEAD])

    def _check_numbers(self, given: int, outputs: NDArray[Any]) -> None:
        """Refuse numbers that linger, from batch to batch too."""
        before = self._numbers.get(given, outputs[:0])
        if before.shape[1:] == outputs.shape[1:] and outputs.dtype.kind in "iuf":
            held = np.concatenate([before, outputs])
            self._numbers[given] = held
            check_steady(held, name=self.name)

    def drain(self) -> list[Mark]:
        """Return the marks of the batches since the last call."""
        found, self._new = self._new, []
        return found

    def admit(self, marks: Iterable[Mark]) -> None:
        """Remember marks, or raise if one of them has been there before."""
        found = set(marks)
        if found & self._seen:
            raise AuditError(
                f"{self.name} must draw anew in every batch, got the same outputs in "
                "the same order; do not seed it with a constant or with the time."
            )
        if len(self._seen) < _KEPT:
            self._seen |= found


def probe(draw: Draw, given: int, *, trials: int, name: str) -> None:
    """Draw two batches of equal size and refuse a subject that repeats the first.

    They have seeds of their own and enter no count. A program with a constant seed may
    draw otherwise in batches of other sizes; of one size it repeats itself exactly. One
    that draws once for a whole batch shows by both together.
    """
    guard = Freshness(name)
    for word in range(2):
        rng = np.random.default_rng(np.random.SeedSequence((_PROBE, word, _PROBE)))
        guard.check(given, draw(given, min(_PROBES, trials), rng))


def _beginnings(outputs: NDArray[Any]) -> list[bytes]:
    keys, marks = _keys(outputs[:_LONGEST]), []
    size = 1 << max(0, len(keys).bit_length() - 1)
    while size > 1 and order_entropy(keys[:size]) > _REPETITION:
        digest = hashlib.sha256(b"\0".join(keys[:size])).digest()
        marks.append(size.to_bytes(2, "big") + digest[:14])
        size //= 2
    return marks


def _keys(outputs: NDArray[Any]) -> list[bytes]:
    """Return some bytes for each output, equal for equal outputs of one type."""
    if outputs.dtype.kind == "O":
        return [repr(item).encode(errors="replace") for item in outputs.tolist()]
    return [np.ascontiguousarray(row).tobytes() for row in outputs]
