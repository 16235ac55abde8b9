"""The bound that needs nothing but group sizes: m times epsilon."""

from __future__ import annotations

from typing import ClassVar

from undertow._numeric import nudge_down
from undertow._validate import check_count
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.method import Method, check_level
from undertow.correlation.model import Model
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable
from undertow.privacy.exact import exact, round_up_decimal

__all__ = ["GeneralMethod", "general_budget", "general_leakage"]


def general_leakage(epsilon: float, group: int) -> Leakage:
    r"""Bound the leakage when at most `group` records depend on each other.

    .. math:: \mathrm{BDPL} \le m\,\varepsilon

    Parameters
    ----------
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    group : int
        Most records in one dependent group, m.

    Notes
    -----
    Theorem 6.3 of [1]_ (Theorem 4.2 of [2]_): an average over the unknown members of
    the group lies between its extremes, the group differs in at most m records, and
    group privacy finishes. Tight: some law and some mechanism attain it in the limit.
    Checked: nothing. Not checkable: groups are *mutually* independent.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> general_leakage(0.5, 4).value
    2.0
    """
    epsilon, group = check_level(epsilon), check_count(group, "group")
    value = round_up_decimal(exact(epsilon) * group)
    return Leakage(
        value,
        "Theorem 6.3 (general bound)",
        unchecked=(f"groups of at most {group} records are mutually independent",),
        witness=adversary_witness(
            Adversary(0), note=f"{group - 1} other records move with it"
        ),
        tight=True if group == 1 else None,
        method="general",
    )


def general_budget(target: float, group: int) -> float:
    r"""Return the DP level :math:`B/m` that keeps the leakage within `target`.

    Examples
    --------
    >>> general_budget(1.0, 5)
    0.2
    """
    target, group = check_level(target), check_count(group, "group")
    level = float(exact(target) / group)
    while exact(level) * group > exact(target):
        level = nudge_down(level)
    return level


class GeneralMethod(Method):
    """The general bound, for any model that limits its groups."""

    name: ClassVar[str] = "general"
    theorem: ClassVar[str] = "Theorem 6.3 (general bound)"

    def leakage(self, model: Model, epsilon: float, *, query: Query) -> Leakage:
        """Return m times `epsilon`, for any query."""
        return general_leakage(epsilon, self._group(model, query))

    def budget(self, model: Model, target: float, *, query: Query) -> float:
        """Return `target` over m."""
        return general_budget(target, self._group(model, query))

    @staticmethod
    def _group(model: Model, query: Query) -> int:
        if isinstance(query, LinearQuery) and query.gap is not None:
            raise NotApplicable(
                "the general bound needs a DP release, got an unclipped linear query, "
                "which other records move without limit; give it clip=(low, high)."
            )
        if model.largest_group is None:
            raise NotApplicable(
                "the general bound needs a number of records, got a model of any "
                "length; give the model its length."
            )
        return model.largest_group
