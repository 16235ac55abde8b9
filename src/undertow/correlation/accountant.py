"""Several releases on correlated data: one DP ledger, converted once."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

from undertow._validate import check_index, check_positive
from undertow.correlation.group import Blocks, general_leakage
from undertow.correlation.leak import leakage
from undertow.correlation.model import Model
from undertow.correlation.query import (
    AnyQuery,
    LinearQuery,
    LipschitzQuery,
    Query,
    Scope,
)
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import best_method
from undertow.errors import (
    AssumptionError,
    BudgetExceeded,
    CompositionError,
    NotApplicable,
)
from undertow.numeric.exact import Number, exact, round_up_decimal
from undertow.results import Witness
from undertow.theorem import select

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Spend:
    """One release in the history of an accountant.

    Parameters
    ----------
    epsilon : float
        Its DP level, rounded up.
    label : str
        What the caller named it.
    blocks : frozenset of int, optional
        Groups it read; None for all.
    clip : pair of float, optional
        Interval its records were clipped to.
    """

    epsilon: float
    label: str = ""
    blocks: frozenset[int] | None = None
    clip: Interval | None = None


class CorrelatedAccountant:
    r"""A Bayesian budget for several releases, kept at the DP level.

    Leakages do not add up (:func:`compose_leakages`). DP levels do: the history is one
    :math:`\sum_j \varepsilon_j`-DP mechanism, and its leakage is found by converting
    that sum once. A correlation surcharge is paid once for all releases.

    Parameters
    ----------
    model : Model
        How the records depend.
    budget : float
        Most that all releases together may leak; positive and finite.
    query : Query, optional
        A clipped :class:`LipschitzQuery` or :class:`LinearQuery` if every release is
        one, which the bounds for Gaussian data need. Releases may still be of different
        queries and noises, so only theorems about the whole class are applied.
    repeats : bool
        Whether every release is Laplace, or two-sided geometric, noise on this one
        `query`. All together are then a post-processing of one such release at the
        summed level, and theorems about the single release apply.
    method : str
        As in :func:`~undertow.correlation.leakage`.

    Notes
    -----
    Sound for mechanisms, levels, groups and clip intervals chosen from earlier outputs,
    since sequential composition of pure DP is adaptive: the ratio of two transcripts is
    a product of ratios of at most :math:`e^{\varepsilon_j}`. Releases on whole groups
    charge these groups only: the others' records do not move them.

    With clip intervals of different widths :math:`M_j`, a pair of secrets g apart
    moves release j by at most :math:`\varepsilon_j/M_j` times
    :math:`\min(M_j, g) + \sum_u \min(M_j, |c_u| g)`, so the Gaussian bound covers pairs
    at most :math:`\min_j M_j` apart, and the result says so.

    Not checkable: the model; that each release is as private as declared.

    Examples
    --------
    >>> families = CorrelatedAccountant(Blocks([3, 2]), budget=3.0)
    >>> families.spend(0.5, label="count").value
    1.5
    >>> families.spend(0.25, blocks=[1]).value  # the pair of records only
    1.5
    >>> families.remaining_epsilon()
    0.5
    """

    def __init__(
        self,
        model: Model,
        budget: float,
        *,
        query: Query | None = None,
        repeats: bool = False,
        method: str = "best",
    ) -> None:
        self._model = model
        self._budget = check_positive(budget, "budget")
        self._repeats = repeats
        self._query = _class_of(query or AnyQuery(), repeats=repeats)
        self._method = method
        self._history: tuple[Spend, ...] = ()
        self._everywhere: Fraction = Fraction(0)
        self._extra: dict[int, Fraction] = {}
        select(model.methods(), method, of=model.summary)

    @property
    def model(self) -> Model:
        """How the records depend."""
        return self._model

    @property
    def budget(self) -> float:
        """Most that all releases together may leak."""
        return self._budget

    @property
    def history(self) -> tuple[Spend, ...]:
        """The releases accepted, in order."""
        return self._history

    @property
    def dp_spent(self) -> float:
        """DP level of all releases together, rounded up: the most of any group."""
        return round_up_decimal(self._everywhere + max(self._extra.values(), default=0))

    def spent(self) -> Leakage:
        """Return what all releases together leak."""
        return self._leakage(self._everywhere, self._extra, self._history)

    def quote(
        self,
        epsilon: Number,
        *,
        blocks: Iterable[int] | None = None,
        clip: Interval | None = None,
    ) -> Leakage:
        """Return what all releases would leak together with this one."""
        return self._try(self._read(epsilon, blocks=blocks, clip=clip), epsilon)[0]

    def spend(
        self,
        epsilon: Number,
        *,
        blocks: Iterable[int] | None = None,
        clip: Interval | None = None,
        label: str = "",
    ) -> Leakage:
        """Charge a release, or refuse and leave everything as it was.

        Parameters
        ----------
        epsilon : int, float, str, Decimal or Fraction
            DP level of the release; added exactly.
        blocks : iterable of int, optional
            Indices of the groups of a :class:`Blocks` model that it reads, no record of
            any other group; by default it reads all.
        clip : pair of float, optional
            Interval its records are clipped to, if not that of the query.
        label : str
            A name for the history.

        Returns
        -------
        Leakage
            What all releases leak together, this one included.

        Raises
        ------
        BudgetExceeded
            If that passes the budget.
        """
        entry = self._read(epsilon, blocks=blocks, clip=clip, label=label)
        after, everywhere, extra = self._try(entry, epsilon)
        if after.value > self._budget:
            raise BudgetExceeded(
                f"epsilon must keep the leakage within {self._budget:g}, got {epsilon} "
                f"and a leakage of {after.value:.6g}; at most "
                f"{self.remaining_epsilon():.6g} is left for a release on all records.",
                witness=after,
            )
        self._history = (*self._history, entry)
        self._everywhere, self._extra = everywhere, extra
        return after

    def remaining_epsilon(self) -> float:
        """Return the DP level that one more release on all records may have.

        It is rounded down so that spending it is accepted; zero if nothing is left.
        """
        allowed = Fraction(exact(self._largest_level()))
        for block, extra in self._extra.items():
            limit = Fraction(exact(self._budget)) / self._size_of(block)
            allowed = min(allowed, limit - extra)
        left = float(max(allowed - self._everywhere, Fraction(0)))
        step = math.ulp(left)
        while left > 0 and not self._fits(left):
            left, step = left - step, 2 * step
        return max(left, 0.0)

    def _read(
        self,
        epsilon: Number,
        *,
        blocks: Iterable[int] | None,
        clip: Interval | None,
        label: str = "",
    ) -> Spend:
        level = exact(epsilon, "epsilon")
        if level == math.inf:
            raise ValueError("epsilon must be finite, got inf.")
        if self._repeats and not (blocks is None and clip is None):
            raise NotApplicable(
                "blocks and clip must be left out where one query repeats, got one of "
                "them; keep an accountant without repeats=True for other releases."
            )
        if clip is not None and self._query.clip is None:
            raise NotApplicable(
                "clip can be given only to an accountant of clipped queries, got "
                f"{self._query.name!r}; give the accountant a LipschitzQuery."
            )
        interval = self._query.clip if clip is None else LipschitzQuery(clip=clip).clip
        groups = None if blocks is None else self._read_blocks(blocks)
        return Spend(round_up_decimal(level), str(label), groups, interval)

    def _read_blocks(self, blocks: Iterable[int]) -> frozenset[int]:
        if not isinstance(self._model, Blocks):
            raise NotApplicable(
                "blocks can be given only for a Blocks model, got "
                f"{self._model.summary}; keep one accountant for each independent part."
            )
        count = self._model.sizes.size
        listed = frozenset(check_index(b, "block", size=count) for b in blocks)
        if not listed:
            raise ValueError("blocks must name at least one group, got none.")
        return listed

    def _try(
        self, entry: Spend, epsilon: Number
    ) -> tuple[Leakage, Fraction, dict[int, Fraction]]:
        everywhere, extra = self._everywhere, dict(self._extra)
        level = Fraction(exact(epsilon))
        if entry.blocks is None:
            everywhere += level
        else:
            for block in entry.blocks:
                extra[block] = extra.get(block, Fraction(0)) + level
        history = (*self._history, entry)
        return self._leakage(everywhere, extra, history), everywhere, extra

    def _fits(self, epsilon: float) -> bool:
        entry = self._read(epsilon, blocks=None, clip=None)
        return self._try(entry, epsilon)[0].value <= self._budget

    def _leakage(
        self,
        everywhere: Fraction,
        extra: dict[int, Fraction],
        history: tuple[Spend, ...],
    ) -> Leakage:
        """Convert the ledger: the worst group decides."""
        if everywhere == 0 and not any(extra.values()):
            return _nothing(self._model)
        query, scope = self._conversion(history)
        worst = _nothing(self._model)
        if everywhere > 0:
            worst = leakage(
                self._model,
                round_up_decimal(everywhere),
                query=query,
                method=self._method,
            )
        if extra:
            block = max(extra, key=lambda b: (everywhere + extra[b]) * self._size_of(b))
            level = round_up_decimal(everywhere + extra[block])
            found = general_leakage(level, self._size_of(block))
            if found.value > worst.value:
                worst = self._of_block(found, block)
        if scope is None or worst.scope.is_every_pair:
            return worst
        return replace(worst, scope=scope)

    def _conversion(self, history: tuple[Spend, ...]) -> tuple[Query, Scope | None]:
        """Return the query to convert with, and the scope if clip intervals differ."""
        if not isinstance(self._query, LipschitzQuery):
            return self._query, None
        clips = {entry.clip for entry in history if entry.clip is not None}
        if len(clips) <= 1:
            clip = next(iter(clips), self._query.interval)
            return LipschitzQuery(self._query.constant, clip=clip), None
        narrow = min(clips, key=lambda clip: clip[1] - clip[0])
        scope = Scope.within(narrow[1] - narrow[0])
        return LipschitzQuery(self._query.constant, clip=narrow), scope

    def _of_block(self, found: Leakage, block: int) -> Leakage:
        assert isinstance(self._model, Blocks)
        trusted = self._model.assumptions()
        first = int((self._model.labels == block).argmax())
        return replace(
            found,
            model=self._model.summary,
            witness=adversary_witness(Adversary(first), note=f"group {block}"),
            checked=trusted.checked,
            unchecked=trusted.unchecked,
        )

    def _size_of(self, block: int) -> int:
        assert isinstance(self._model, Blocks)
        return int(self._model.sizes[block])

    def _largest_level(self) -> float:
        query, _ = self._conversion(self._history)
        try:
            choice = best_method(
                self._model,
                self._method,
                lambda theorem: theorem.invert(self._model, self._budget, query=query),
                query=query,
                rank=operator.neg,
                otherwise="no method reaches the budget",
            )
        except AssumptionError:  # no method has anything to offer
            return 0.0
        return max(0.0, choice.value)


def _nothing(model: Model) -> Leakage:
    return Leakage(
        0.0, "nothing was released", tight=True, method="none", model=model.summary
    )


def _class_of(query: Query, *, repeats: bool) -> Query:
    """Return the class of mechanisms that the query's releases stay in together."""
    if repeats:
        if isinstance(query, AnyQuery):
            raise ValueError("query must say which query repeats, got any.")
        return query
    if isinstance(query, LinearQuery) and query.gap is not None:
        raise NotApplicable(
            "an accountant adds DP levels, got an unclipped linear query, which is not "
            "DP; give it clip=(low, high), or repeats=True if nothing else is released."
        )
    if isinstance(query, LinearQuery) and query.interval is not None:
        return LipschitzQuery(query.largest_weight, clip=query.interval)
    return query if isinstance(query, LipschitzQuery) else AnyQuery()


# Why leakages are not added.


def compose_leakages(*leakages: Leakage) -> NoReturn:
    r"""Refuse to add leakages, which is no bound, and say what is one.

    Raises
    ------
    CompositionError
        Always. Its witness is a law of two bits and a mechanism that leak 0.7180751
        once and 1.4615494 twice, more than the sum 1.4361502.

    Notes
    -----
    The talk [1]_ lists sequential composition among the properties of BDP; it does not
    hold for sums of leakages. After one output the attacker's law of the other records
    is no longer the model's, so that the second release may tell more than it could
    alone. Proved on the theory page of correlated composition.

    References
    ----------
    .. [1] P. Guerra-Balboa, *Balancing Privacy and Utility in Correlated Data*, talk,
       INRIA Montpellier, 2025.

    Examples
    --------
    >>> from undertow.correlation.group import general_leakage
    >>> try:
    ...     compose_leakages(general_leakage(1, 2), general_leakage(1, 2))
    ... except CompositionError as refusal:
    ...     print(refusal.source)
    Bayesian DP does not compose by adding leakages
    """
    shown = " + ".join(f"{each.value:.6g}" for each in leakages) or "nothing"
    raise CompositionError(
        f"leakages must not be added, got {shown}: two runs can leak 1.4615494 where "
        "each alone leaks 0.7180751; use CorrelatedAccountant, which adds DP levels "
        "and converts once.",
        witness=_counterexample(),
        source="Bayesian DP does not compose by adding leakages",
    )


def _counterexample() -> Witness:
    return Witness(
        "adversary",
        "aims at the first of two bits and knows nothing, seeing twice, at DP level "
        "0.5, the noisy count or each bit through randomized response",
        {
            "joint": ((0.09, 0.01), (0.45, 0.45)),
            "epsilon": 0.5,
            "runs": 2,
            "leakage_once": 0.7180751,
            "leakage_twice": 1.4615494,
        },
    )
