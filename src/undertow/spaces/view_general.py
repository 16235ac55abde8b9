"""Views that fit any domain: the whole data, declared maps and chains.

A view is a pure function of the canonical database. The `stretch` of a view between two
metrics is a proved or declared bound on how far one unit of the first moves its output
in the second; where nothing is known it is infinite, never one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from undertow.errors import MismatchError
from undertow.privacy.exact import Exact, Number, exact
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.domain import record_order
from undertow.spaces.metric import image_or_values

__all__ = [
    "Chain",
    "Identity",
    "Lipschitz",
    "declared_stretch",
    "named",
    "require_kind",
    "sensitivity_chain",
]


def named(values: Iterable[Hashable]) -> str:
    """Return up to six values as text, in stable order."""
    shown = [str(value) for value in sorted(values, key=record_order)]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:5], f"{len(shown)} in all"])


def require_kind(view: View, domain: Domain, kinds: Iterable[str]) -> None:
    """Raise ``MismatchError`` unless the domain is of one of the `kinds`."""
    kinds = tuple(kinds)
    if domain.kind not in kinds:
        raise MismatchError(
            f"view {view.name} must see a domain of kind {' or '.join(kinds)}, "
            f"got {domain.kind}."
        )


def sensitivity_chain(*constants: Number) -> Exact:
    r"""Bound the sensitivity of a composed map by the product of the factors.

    .. math:: \Delta(g \circ f) \le \Delta f \cdot \Delta g

    Parameters
    ----------
    *constants : int, float, str, Decimal or Fraction
        The sensitivities, in ``[0, inf]``.

    Returns
    -------
    Exact
        The product; infinite as soon as one factor is, even beside a zero.

    Notes
    -----
    Paper, Proposition III.8. Often not tight: where the domain can be enumerated,
    :func:`undertow.spaces.sensitivity.sensitivity` of the composed view is.

    Examples
    --------
    >>> sensitivity_chain(2, "0.5", 3), sensitivity_chain(0, math.inf)
    (Fraction(3, 1), inf)
    """
    factors = [exact(constant, "constant") for constant in constants]
    if math.inf in factors:
        return math.inf
    return math.prod(factors, start=exact(1))


def declared_stretch(view: View, source: Metric, target: Metric) -> Exact:
    """Return what is proved or declared about a view's sensitivity, else infinity."""
    stretch = getattr(view, "stretch", None)
    return math.inf if stretch is None else stretch(source, target)


@dataclass(frozen=True, slots=True)
class Identity(View):
    """The whole database."""

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "whole data"

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the database."""
        return database

    def image(self, domain: Domain) -> Domain | None:
        """Return the domain."""
        return domain

    def require_domain(self, domain: Domain) -> None:
        """Accept every domain."""

    def fills_image(self, domain: Domain) -> bool:
        """Return True."""
        return True

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return 1 between equal metrics; unknown, hence infinite, otherwise."""
        return 1 if source == target else math.inf


@dataclass(frozen=True, slots=True)
class Lipschitz(View):
    """A map given as a function, with a declared bound on its sensitivity.

    Parameters
    ----------
    name : str
        The name used in reports.
    function : callable
        Takes a canonical database, returns a hashable value; deterministic. Lists and
        arrays are turned into tuples.
    constant : int, float, str, Decimal or Fraction
        The declared sensitivity from `unit_from` to `unit_to`; left out it is infinite.
    unit_from, unit_to : Metric
        The metrics between which the constant is declared.

    Notes
    -----
    On an enumerated domain :func:`undertow.spaces.sensitivity.verify_lipschitz` checks
    the constant and refuses a false one with the pair that shows it.
    """

    name: str = field()  # a bare annotation would inherit the property as default
    function: Callable[[Any], Any]
    constant: Exact
    unit_from: Metric
    unit_to: Metric

    def __init__(
        self,
        name: str,
        function: Callable[[Any], Any],
        *,
        unit_from: Metric,
        unit_to: Metric,
        constant: Number = math.inf,
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "constant", exact(constant, "constant"))
        object.__setattr__(self, "unit_from", unit_from)
        object.__setattr__(self, "unit_to", unit_to)

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the function's value as a hashable object."""
        return _frozen(self.function(database))

    def image(self, domain: Domain) -> Domain | None:
        """Return None: plain values come out."""
        return None

    def require_domain(self, domain: Domain) -> None:
        """Require that the source metric makes sense on the domain."""
        check = getattr(self.unit_from, "require_domain", None)
        if check is not None:
            check(domain)

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return the declared constant between its own units, else infinity."""
        declared = source == self.unit_from and target == self.unit_to
        return self.constant if declared else math.inf


@dataclass(frozen=True, slots=True)
class Chain(View):
    """One view after another: `second` sees what `first` shows.

    Examples
    --------
    >>> from undertow.spaces.domain import Rows
    >>> from undertow.spaces.view_bound import Clip
    >>> Chain(Clip(0, 3), Clip(1, 5)).apply((0, 9), Rows(2))
    (1, 3)
    """

    first: View
    second: View

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.first.name}, then {self.second.name}"

    def apply(self, database: Database, domain: Domain) -> Any:
        """Return the second view of the first view."""
        inner = self.first.apply(database, domain)
        return self.second.apply(inner, image_or_values(self.first, domain))

    def image(self, domain: Domain) -> Domain | None:
        """Return the image of the second view on the image of the first."""
        return self.second.image(image_or_values(self.first, domain))

    def require_domain(self, domain: Domain) -> None:
        """Require that both views fit."""
        self.first.require_domain(domain)
        self.second.require_domain(image_or_values(self.first, domain))

    def fills_image(self, domain: Domain) -> bool:
        """Return whether both views take every value of their images."""
        return self.first.fills_image(domain) and self.second.fills_image(
            image_or_values(self.first, domain)
        )

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return whether the second view does, on all that the first can show."""
        return self.first.fills_image(domain) and self.second.keeps_chains(
            unit, image_or_values(self.first, domain)
        )

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return the least product over the units either part declares."""
        between = [source, target]
        between += [v.unit_to for v in (self.first,) if isinstance(v, Lipschitz)]
        between += [v.unit_from for v in (self.second,) if isinstance(v, Lipschitz)]
        return min(
            sensitivity_chain(
                declared_stretch(self.first, source, unit),
                declared_stretch(self.second, unit, target),
            )
            for unit in between
        )


def _frozen(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(_frozen(part) for part in value)
    return value
