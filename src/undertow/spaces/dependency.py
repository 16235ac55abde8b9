"""Why a mechanism is believed to read only its view.

The common-domain setting divides a metric by the fibres of a view. That needs one proof
no metric can give: that the mechanism reads the view and nothing else. The proof is by
construction or by a named person, and it is an argument, never a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from undertow._validate import check_choice
from undertow.errors import UnprovedDependencyError
from undertow.spaces.base import View

__all__ = ["Dependency", "require_dependencies", "require_dependency"]

_SOURCE = "paper, Definition IV.8"


@dataclass(frozen=True, slots=True)
class Dependency:
    """Why a mechanism is believed to read only its view.

    Parameters
    ----------
    view : View or None
        What it reads; None for a statement about several releases at once, each of
        which reads its own view.
    kind : {"construction", "attestation"}
        The mechanism object receives the view and nothing else, or a person says so.
    by : str
        Who attests; needed for an attestation.
    statement : str
        What was built or checked, in a sentence; needed for an attestation and where
        `view` is None.
    also_reads : tuple of str
        What else it reads: a grand total, a global maximum, a grid built on the data.
        Anything here refuses the proof.

    Raises
    ------
    UnprovedDependencyError
        If the attestation is unsigned, nothing says what was built or checked, or
        the mechanism reads something else too.

    Notes
    -----
    Thesis, Definition 4.9; paper, Definition IV.8. Declare the coarsest statistic:
    depending on a count is worth more than depending on the records behind it.

    Examples
    --------
    >>> Dependency(None, "construction", statement="each count gets its block").kind
    'construction'
    """

    view: View | None
    kind: Literal["construction", "attestation"]
    by: str = field(default="", kw_only=True)
    statement: str = field(default="", kw_only=True)
    also_reads: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", choices=("construction", "attestation"))
        said = self.statement.strip()
        if self.kind == "attestation" and not (self.by.strip() and said):
            raise UnprovedDependencyError(
                "an attestation must say by whom and what was checked, got "
                f"by {self.by!r} and statement {self.statement!r}.",
                source=_SOURCE,
            )
        if self.view is None and not said:
            raise UnprovedDependencyError(
                "statement must say how several releases were built to read only "
                "their views, got ''; say it, or give one proof per view.",
                source=_SOURCE,
            )
        if self.also_reads:
            raise UnprovedDependencyError(
                f"a mechanism must read only {self._shown()}, got one that also reads "
                f"{', '.join(self.also_reads)}; release that on its own.",
                source=_SOURCE,
            )

    def _shown(self) -> str:
        return "its view" if self.view is None else self.view.name


def require_dependency(proof: Dependency | None, view: View) -> Dependency:
    """Return the proof, or raise ``UnprovedDependencyError`` if it does not serve.

    Parameters
    ----------
    proof : Dependency or None
        The proof that came with the release.
    view : View
        The view through which the release is to be composed.
    """
    if not isinstance(proof, Dependency):
        shown = "none" if proof is None else type(proof).__name__
        raise UnprovedDependencyError(
            f"a common-domain release must come with proof that it reads only "
            f"{view.name}, got {shown}; build it on the view, or attest it.",
            source=_SOURCE,
        )
    if proof.view is not None and proof.view != view:
        raise UnprovedDependencyError(
            f"the proof must be about {view.name}, got one about {proof.view.name}.",
            witness=proof,
            source=_SOURCE,
        )
    return proof


def require_dependencies(
    proof: Dependency | Sequence[Dependency] | None, views: Sequence[View | None]
) -> None:
    """Raise ``UnprovedDependencyError`` unless every release has its proof.

    Parameters
    ----------
    proof : Dependency or sequence of Dependency
        One statement for all releases, or one proof per release, in order.
    views : sequence of View or None
        The view of each release; None where the composition does not name it, so that
        only the presence of a proof for it can be checked.

    Notes
    -----
    A single proof about one view serves several releases only if all of them read that
    view, and serves no release whose view is not named.
    """
    if isinstance(proof, Dependency):
        proofs: Sequence[Dependency] = [proof] * len(views)
        if proof.view is not None and None in views:
            raise UnprovedDependencyError(
                "dependency must be about every release, got one about "
                f"{proof.view.name} alone; give one proof per release.",
                witness=proof,
                source=_SOURCE,
            )
    else:
        proofs = _one_each(proof, len(views))
    for one, view in zip(proofs, views, strict=True):
        if view is not None:
            require_dependency(one, view)


def _one_each(given: object, number: int) -> Sequence[Dependency]:
    if given is None:
        shown = "none"
    elif not isinstance(given, list | tuple):
        shown = type(given).__name__
    elif len(given) != number:
        shown = f"{len(given)} for {number} releases"
    elif not all(isinstance(one, Dependency) for one in given):
        shown = "something else among them"
    else:
        return given
    raise UnprovedDependencyError(
        "dependency must show that each release reads only its view, got "
        f"{shown}; give Dependency(None, 'construction', statement=...), or one proof "
        "per release.",
        source=_SOURCE,
    )
