"""Recorded runs as the subject of an audit, and whether runs were drawn anew.

No run is used twice: batches that repeat each other are no evidence.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from undertow._validate import check_count, check_index
from undertow.audit._outcome import Raised, outcome, read_outcomes, read_outputs
from undertow.audit.event import output_labels
from undertow.audit.subject import Subject
from undertow.errors import AuditError, MismatchError

# Independent runs look like copies with probability at most exp(-30), for each sign;
# by how often outputs of all inputs together occur, at most exp(-12).
_CHANCE, _CHANCE_TOGETHER = 30.0, 12.0
# So many outputs with all digits of a float, that occur at most so often on average,
# are copies or a law that the runs do not show.
_SEVERAL, _OFTEN = 5, 16
# Lengths of stretches, powers of two, and shares of copies that are looked at.
_LENGTHS, _SHARES = 64, 30


class RecordedSubject:
    """Runs that were made before, each dealt out once.

    Parameters
    ----------
    inputs : sequence of hashable
        The input of each run.
    outputs : sequence
        What each run ended in, in the same order: a value, None, nan, an exception.
    name, version : str, optional
        For the report.

    Raises
    ------
    MismatchError
        If there is not one output for each input.
    AuditError
        If fewer than two different inputs were recorded, or runs several times; if the
        runs of an input are used up; from `sample`, which an audit of a local protocol
        uses, also if an output is None, nan, an exception or of another type than most.

    Notes
    -----
    `sample` and `outcomes` deal runs out without replacement, so training and test
    share none. For an audit of pairs all that a run can end in is an outcome, as where
    the runs are made. An audit deals from a shuffled copy, which also removes an order
    in time from each half. Runs that were written down several times, all of them or
    some, are refused where they show (`require_once`). Not checkable: that the runs
    were independent and none was left out because of its output.

    Examples
    --------
    >>> subject = RecordedSubject([0, 0, 1], [5.0, 6.0, 7.0])
    >>> list(subject.inputs), subject.available(0)
    ([0, 1], 2)
    >>> subject.sample(0, 2, rng=np.random.default_rng(1))
    array([5., 6.])
    """

    seeded = True
    forkable = False
    times = False
    """Whether every output came with its running time."""
    repeated = 0
    """Outputs with all digits of a float that occur several times on one input."""
    perhaps_copied = False
    """Whether nothing tells them from runs that were copied: they accuse nobody."""

    def __init__(
        self,
        inputs: Sequence[Hashable] | NDArray[Any],
        outputs: Any,
        *,
        name: str = "recorded runs",
        version: str = "",
    ) -> None:
        given = inputs.tolist() if isinstance(inputs, np.ndarray) else list(inputs)
        if len(given) != len(outputs):
            raise MismatchError(
                f"outputs must be one for each of the {len(given)} inputs, got "
                f"{len(outputs)}."
            )
        self.name, self.version = name, version
        self.inputs = tuple(dict.fromkeys(given))
        if len(self.inputs) < 2:
            raise AuditError(
                f"inputs must hold at least two different ones, got {len(self.inputs)}."
            )
        self.vectorised = _is_whole(outputs)
        self._raw = np.array(outputs) if self.vectorised else _told(outputs)
        self._read: NDArray[Any] | None = None
        self._outputs = read_outcomes(self._raw, len(given), name=name)
        place = {value: number for number, value in enumerate(self.inputs)}
        numbers = np.array([place[value] for value in given])
        self._runs = [np.flatnonzero(numbers == k) for k in range(len(self.inputs))]
        self._dealt = [0] * len(self.inputs)
        for runs in self._runs:
            require_once(self._outputs[runs], name=name)
        _require_few_copies([self._outputs[runs] for runs in self._runs], name=name)
        times = [_repeats(self._outputs[runs]) for runs in self._runs]
        self.repeated = sum(map(sum, times))
        self.perhaps_copied = any(map(_perhaps_copied, times))

    def available(self, value: int) -> int:
        """Return how many runs of an input are left."""
        number = check_index(value, "value", size=len(self.inputs))
        return len(self._runs[number]) - self._dealt[number]

    def sample(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Deal out the next `size` runs of one input as values; `rng` is not used."""
        if self._read is None:
            for item in () if self.vectorised else self._raw:
                if isinstance(item, Raised):
                    raise AuditError(
                        f"{self.name} must hold values, got an exception, {item.kind}; "
                        "use audit_pair, to which it is an outcome."
                    )
            self._read = read_outputs(self._raw, len(self._raw), name=self.name)
        return np.asarray(self._read[self._deal(value, size)])

    def outcomes(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Deal out what the next `size` runs of one input ended in."""
        return np.asarray(self._outputs[self._deal(value, size)])

    def _deal(self, value: int, size: int) -> NDArray[np.int64]:
        number = check_index(value, "value", size=len(self.inputs))
        count = check_count(size, "size", minimum=0)
        left = self.available(number)
        if count > left:
            raise AuditError(
                f"{self.name} must hold {count} more runs of input {number}, got "
                f"{left}; ask for fewer trials."
            )
        start = self._dealt[number]
        self._dealt[number] = start + count
        return self._runs[number][start : start + count]

    def shuffled(self, rng: np.random.Generator) -> RecordedSubject:
        """Return a copy with every run still to deal, in random order."""
        copy = object.__new__(RecordedSubject)
        copy.__dict__.update(self.__dict__)
        copy._runs = [rng.permutation(runs) for runs in self._runs]
        copy._dealt = [0] * len(self.inputs)
        return copy

    @classmethod
    def timed(
        cls, subject: Subject, numbers: NDArray[np.int64], runs: NDArray[Any]
    ) -> RecordedSubject:
        """Return runs of a subject that were timed here: none of them is a copy."""
        found = object.__new__(cls)
        found.name, found.version = subject.name, subject.version
        found.inputs = tuple(subject.inputs)
        found.times, found.seeded, found.vectorised = True, False, False
        found._raw = found._outputs = found._read = runs
        found._runs = [np.flatnonzero(numbers == k) for k in range(len(found.inputs))]
        found._dealt = [0] * len(found.inputs)
        return found


def _is_whole(outputs: Any) -> bool:
    """Return whether outputs come as one array, whose type is not that of a run."""
    masked = isinstance(outputs, np.ma.MaskedArray)
    whole = isinstance(outputs, np.ndarray) and not masked
    return whole and outputs.dtype.kind in "biufV"


def _told(outputs: Any) -> list[Any]:
    """Return a copy of a list in which what was raised is what a run ended in."""
    masked = isinstance(outputs, np.ma.MaskedArray)
    listed = outputs.tolist() if masked else list(outputs)
    return [Raised(x) if isinstance(x, BaseException) else x for x in listed]


def require_once(outputs: NDArray[Any], *, name: str) -> None:
    r"""Refuse runs of one input that were written down several times.

    Notes
    -----
    Three things give copies away, whatever the law of the outputs. A file that holds
    earlier exports again, in whole or in part, repeats a stretch of outputs in its
    order (Proposition 8 of the page *Event audits*). Copies in any order leave too many
    outputs that occur k times for those that occur k - 1 and k + 1 times (Proposition
    9). If everything was copied, all outputs occur a multiple of g > 1 times, and in
    stretches of such lengths if row by row: independent runs have s such stretches with
    probability at most :math:`2^{1-s}`, as the length of each but the last is a
    multiple with probability at most a half; and d such numbers with probability at
    most :math:`2^{-d} e \sqrt n`, as if n were Poisson, so would be those numbers,
    independently, each being a multiple with probability at most half of that of not
    being 0 (a multiple is no likelier than its neighbours together). Each of these
    happens to independent runs with probability at most :math:`e^{-30}`.

    Examples
    --------
    >>> runs = np.random.default_rng(1).normal(size=300)
    >>> weekly = np.concatenate([runs[:100], runs[:200], runs])
    >>> require_once(weekly, name="file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    undertow.errors.AuditError: file must hold every run once, got ...
    """
    labels = output_labels(outputs)
    counts = Counter(labels)
    if len(counts) < 2:  # nothing tells copies of one output
        return
    signs = (
        _whole_copies(labels, list(counts.values())),
        _repeated_stretch(labels),
        _copied_share(list(counts.values())),
    )
    for sign in signs:
        _refuse_copies(sign, name)


def _require_few_copies(runs: Sequence[NDArray[Any]], *, name: str) -> None:
    """Refuse files too small for the signs of one input, by those of all of them."""
    numbers = [list(Counter(output_labels(outputs)).values()) for outputs in runs]
    shown = [one for one in numbers if len(one) > 1]
    if shown:
        _refuse_copies(_copied_share(*shown, chance=_CHANCE_TOGETHER), name)


def _repeats(outputs: NDArray[Any]) -> list[int]:
    """Return how often outputs with the digits of noise occur that equal others."""
    counts = Counter(output_labels(outputs))
    return [n for label, n in counts.items() if n > 1 and _has_all_digits(label)]


def _perhaps_copied(times: list[int]) -> bool:
    """Return whether outputs with the digits of noise repeat, but a few times only.

    Noise does not draw a float of all digits twice. A law with few outputs does, and
    shows each of them often; where each occurs a few times only, nothing tells it from
    runs that were copied.
    """
    return len(times) >= _SEVERAL and sum(times) <= _OFTEN * len(times)


def _has_all_digits(label: Any) -> bool:
    """Return whether a number in it is on no lattice of six decimals or twenty bits."""
    parts = label if isinstance(label, tuple) else (label,)
    return any(
        isinstance(x, float) and math.isfinite(x) and round(x, 6) != x and x * 2**20 % 1
        for x in parts
    )


def _refuse_copies(sign: str, name: str) -> None:
    if sign:
        raise AuditError(
            f"{name} must hold every run once, got {sign}, beyond chance; remove "
            "the copies, such as rows of an earlier export, or record runs anew."
        )


def _whole_copies(labels: list[Any], numbers: list[int]) -> str:
    """Say so if every output was written several times, beyond chance."""
    copies = math.gcd(*numbers)
    if copies < 2:
        return ""
    stretches = [len(list(group)) for _, group in itertools.groupby(labels)]
    in_a_row = (len(stretches) - 1) if math.gcd(*stretches) > 1 else 0
    chance = max(
        in_a_row * math.log(2.0), len(numbers) * math.log(2.0) - _slack(labels)
    )
    if chance > _CHANCE or _is_tiled(labels, copies):
        return f"outputs that all occur a multiple of {copies} times"
    return ""


def _slack(runs: Sequence[Any]) -> float:
    r"""Return :math:`\ln(e \sqrt n)`, what it costs that n is no Poisson number."""
    return 1.0 + math.log(len(runs)) / 2.0


def _is_tiled(labels: list[Any], copies: int) -> bool:
    """Return whether a list is several times another one, beyond chance."""
    periods = (len(labels) // k for k in range(2, copies + 1) if copies % k == 0)
    return any(
        labels[p:] == labels[:-p] and order_entropy(labels[:p]) > _CHANCE
        for p in periods
    )


def _repeated_stretch(labels: list[Any]) -> str:
    """Say so if outputs in a row stand there again in their order, beyond chance.

    Looked at are stretches of 2, 4, 8, ... outputs, numbered so that equal ones have
    equal numbers.
    """
    number: dict[Any, int] = {}
    runs = np.array([number.setdefault(label, len(number)) for label in labels])
    ends = np.concatenate([[0], np.cumsum(runs[1:] != runs[:-1])])
    least = _CHANCE + 2.0 * math.log(len(runs)) + math.log(_LENGTHS)
    names, size, longest = runs, 1, 0
    while 3 * size <= len(runs):
        joint = names[:-size] * (int(names.max()) + 1) + names[size:]
        _, names = np.unique(joint, return_inverse=True)
        size *= 2
        first, last = _ends_of_groups(names)
        again = last - first >= size  # apart, so that they are of different runs
        if not (last > first).any():
            break
        changes = ends[first + size - 1] - ends[first] + 1
        for start in first[again & (changes * math.log(size) > least)].tolist():
            stretch = runs[start : start + size].tolist()
            entropy = order_entropy(stretch) / size
            if (1 + ends[start + size - 1] - ends[start]) * entropy > least:
                longest = size
                break
    return f"{longest} outputs or more that stand there again in order" * bool(longest)


def _ends_of_groups(names: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return where each number occurs first and last."""
    size = int(names.max()) + 1
    first, last = np.full(size, len(names)), np.zeros(size, dtype=np.int64)
    places = np.arange(len(names))
    np.minimum.at(first, names, places)
    np.maximum.at(last, names, places)
    return first, last


def _copied_share(*inputs: list[int], chance: float = _CHANCE) -> str:
    r"""Say so if too many outputs occur k times for their neighbours, beyond chance.

    Of Proposition 9 with the B of a half, a quarter, ...; the k are paid for by shares
    :math:`1 / (k (k + 1))`. Runs of several inputs are independent, so that the numbers
    of their outputs add, as does what is paid for each input.
    """
    most = 1 + max(max(numbers) for numbers in inputs)
    seen = np.sum([np.bincount(numbers, minlength=most) for numbers in inputs], axis=0)
    slack = math.log(_SHARES) + sum(_slack(range(sum(runs))) for runs in inputs)
    for k in np.flatnonzero(seen).tolist():
        if k < 2 or (k + 1 < len(seen) and seen[k + 1]):
            continue
        b = 0.5 ** np.arange(1, _SHARES + 1)
        gain = np.log1p(2.0 * np.sqrt(b * k / (k + 1))) * seen[k]
        best = float((gain + np.log1p(-b) * seen[k - 1]).max())
        if best - slack - math.log(k * (k + 1)) > chance:
            return (
                f"{seen[k]} outputs that occur {k} times where {seen[k - 1]} occur "
                f"{k - 1} times and none {k + 1} times"
            )
    return ""


def in_random_order(subject: Any, seed: int) -> Any:
    """Return a subject, if it is recorded a copy that deals its runs in random order.

    A file is often sorted, and the runs of an audit must not be the first of it.

    Examples
    --------
    >>> runs = RecordedSubject([0, 0, 1, 1], [1, 2, 3, 4])
    >>> in_random_order(runs, 1) is runs, in_random_order("other", 1)
    (False, 'other')
    """
    if not isinstance(subject, RecordedSubject):
        return subject
    return subject.shuffled(np.random.default_rng((seed, 2)))


# Whether a subject draws anew: batches that repeat each other are no evidence.

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
