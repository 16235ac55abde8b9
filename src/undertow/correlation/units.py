"""Records of units that are independent of each other, whatever happens inside of one.

Where a mechanism is private about *all* records of a unit at once, it does not matter
how these depend on each other: the leakage is the DP level.
"""

from __future__ import annotations

from typing import ClassVar

from undertow.correlation.independent import Lawless
from undertow.correlation.method import Method, check_level
from undertow.correlation.model import Assumptions, Model
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import ModelError, NotApplicable

__all__ = ["IndependentUnits", "WholeUnitsMethod"]

_UNITS = "units are mutually independent: records depend inside of a unit only"


class IndependentUnits(Lawless):
    """Units with several records each: independent units, any dependence inside.

    DP levels given to this model are about replacing *all* records of a unit, as at
    user level. The leakage is then the level, about one record, several or all of a
    unit, to everyone who knows any of the other records: those of the same unit too.

    Parameters
    ----------
    inside : Model, optional
        How the records of one unit depend on each other; any law if not given. It is
        named in results and changes no number.

    Notes
    -----
    Theorem 1 of the theory page *Release accounting*. Not checkable: the units are
    mutually independent. A family whose members depend on each other is one unit here,
    or a group of :class:`Blocks`.

    Examples
    --------
    >>> from undertow.correlation import MarkovChain, leakage
    >>> steps = MarkovChain([[0.9, 0.1], [0.2, 0.8]], length=24)
    >>> round(leakage(steps, 1.0).value, 3), leakage(IndependentUnits(steps), 1.0).value
    (4.322, 1.0)
    """

    def __init__(self, inside: Model | None = None) -> None:
        if inside is not None and not isinstance(inside, Model):
            raise ModelError(f"inside must be a model, got {type(inside).__name__}.")
        self._inside = inside

    @property
    def inside(self) -> Model | None:
        """The model of the records of one unit; None for any law."""
        return self._inside

    @property
    def size(self) -> None:
        """None: there may be any number of units, each with any number of records."""
        return None

    @property
    def largest_group(self) -> int:
        """The number 1: no unit depends on another."""
        return 1

    @property
    def summary(self) -> str:
        """The model in words."""
        words = "independent units with any dependence inside of each"
        return words + ("" if self._inside is None else f": {self._inside.summary}")

    def __repr__(self) -> str:
        return f"IndependentUnits({'' if self._inside is None else repr(self._inside)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndependentUnits):
            return NotImplemented
        return self._inside == other._inside

    def __hash__(self) -> int:
        return hash((IndependentUnits, self._inside))

    def methods(self) -> tuple[Method, ...]:
        """Return the one method: leakage is the DP level about whole units."""
        return (WholeUnitsMethod(),)

    def assumptions(self) -> Assumptions:
        """Return what must be trusted: that units are independent of each other."""
        return Assumptions(unchecked=(_UNITS,))


class WholeUnitsMethod(Method):
    """Independent units: the leakage is the DP level about all records of a unit.

    Proved on the theory page of release accounting. The level must be one about whole
    units, so that a query of single records is refused: how far it moves with a unit is
    not in the model.
    """

    name: ClassVar[str] = "whole-units"
    theorem: ClassVar[str] = "Theorem 1 of release accounting (whole units)"
    published: ClassVar[bool] = False

    def leakage(
        self, model: IndependentUnits, epsilon: float, *, query: Query
    ) -> Leakage:
        """Return `epsilon` itself."""
        self._require_any(query)
        return Leakage(
            check_level(epsilon),
            self.theorem,
            tight=True,
            method=self.name,
            mechanisms="every mechanism that is epsilon-DP for replacing all records "
            "of a unit",
            attackers="anyone who knows any subset of the other records, those of the "
            "same unit included",
            scope=query.scope(),
        )

    def budget(self, model: IndependentUnits, target: float, *, query: Query) -> float:
        """Return `target` itself."""
        self._require_any(query)
        return check_level(target)

    @staticmethod
    def _require_any(query: Query) -> None:
        if not isinstance(query, AnyQuery):
            raise NotApplicable(
                "the whole-units bound needs a level about all records of a unit, got "
                f"a {query.name} query of single records; leave the query out, and "
                "scale the noise by what a unit moves."
            )
