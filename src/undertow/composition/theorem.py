"""Which statements prove a composed loss, and what they leave unchecked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from undertow.composition.release import Release
from undertow.privacy.exact import format_up
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.domain import Graph, Table
from undertow.spaces.granularity import Bounded, Edit, Unbounded
from undertow.spaces.metric import image_or_values
from undertow.spaces.sensitivity_check import verify_lipschitz
from undertow.spaces.view import Chain, Identity, Lipschitz, Select

__all__ = [
    "CONTINUOUS_NOISE",
    "assumptions_of",
    "theorems_of",
    "verify_constants",
    "warnings_of",
]

# A declared constant is checked on every pair of domains up to this size; beyond, it is
# an assumption of the report.
_CHECKED_DATABASES = 200

# Statements of Guerra-Balboa (2026) are named "thesis", those of Guerra-Balboa,
# Miranda-Pascual, Parra-Arnau and Strufe (2024) "paper".
_COMPOSITION = {
    ("pure", "view"): "thesis, Theorem 4.1 (paper, Theorem V.2)",
    ("pure", "common"): "thesis, Theorem 4.10 (paper, Theorem V.5)",
    ("approx", "view"): "paper, Theorem VI.4",
    ("approx", "common"): "paper, Theorem VI.7, corrected",
    ("zcdp", "view"): "paper, Theorem VI.13",
    ("zcdp", "common"): "paper, Theorem VI.14",
    ("gdp", "view"): "thesis, Theorem 4.16 (paper, Theorem VI.21)",
    ("gdp", "common"): "thesis, Theorem 4.18 (paper, Theorem VI.22)",
}
_SEQUENTIAL = {
    "pure": "thesis, Corollary 4.2",
    "approx": "paper, Theorem VI.5",
    "zcdp": "paper, Theorem VI.15",
    "gdp": "thesis, Corollary 4.17",
}
_BOUNDED_DISJOINT = {
    "pure": "thesis, Corollary 4.12",
    "approx": "paper, Theorem VI.7 at two blocks",
    "zcdp": "paper, Theorem VI.14 at two blocks",
    "gdp": "thesis, Corollary 4.23",
}
_GROUP = {
    "pure": "thesis, Proposition A.7",
    "approx": "paper, Theorem VI.3",
    "zcdp": "paper, Theorem VI.12",
    "gdp": "thesis, Theorem 4.15",
}

CONTINUOUS_NOISE = (
    "noise is continuous, which no computer draws; what is drawn has the loss of the "
    "mechanism's released_loss, in zCDP for Gaussian noise"
)
"""What a plan assumes that holds claims about continuous noise."""

CORRELATION_WARNING = (
    "one person's data is split into several protected units; the guarantee presumes "
    "that these units are independent of each other, and says nothing about what they "
    "reveal together when they are correlated"
)


def theorems_of(
    releases: Sequence[Release], target: Granularity, *, notion: str, domain: Domain
) -> tuple[str, ...]:
    """Return the statements behind the composed loss, the general one first."""
    settings = {claim.setting for release in releases for claim in release.claims}
    names = [_COMPOSITION[notion, setting] for setting in sorted(settings)]
    units = {claim.unit for release in releases for claim in release.claims}
    if all(isinstance(release.view, Identity) for release in releases):
        names.append(_SEQUENTIAL[notion])
    elif settings == {"common"} and isinstance(target, Bounded):
        if units == {target} and _disjoint(releases, domain):
            names.append(_BOUNDED_DISJOINT[notion])
    if settings == {"common"} and isinstance(target, Unbounded | Edit):
        if any(isinstance(unit, Bounded) for unit in units):
            names.append("thesis, Corollary A.14, sharpened to the edit distance")
    if units - {target}:
        names.append(f"{_GROUP[notion]} (steps of a unit other than the target)")
    return tuple(names)


def _disjoint(releases: Sequence[Release], domain: Domain) -> bool:
    if isinstance(domain, Table) and domain.multi:
        return False  # different cells may hold the same record
    seen: set[object] = set()
    for release in releases:
        if not isinstance(release.view, Select):
            return False
        cells = set(release.view.cells)
        if seen & cells:
            return False
        seen |= cells
    return True


def assumptions_of(releases: Sequence[Release], domain: Domain) -> tuple[str, ...]:
    """Return the hypotheses only the owner of data and mechanisms can vouch for."""
    facts = ["every stated loss holds, for every earlier output if steps are adaptive"]
    if any(claim.setting == "common" for r in releases for claim in r.claims):
        facts.append("every common-domain release reads nothing but its view")
    declared = [_constant(r, domain) for r in releases]
    found = dict.fromkeys(text for texts in declared for text in texts)
    return (*facts, *_declared_caps(domain), *found)


def verify_constants(release: Release, domain: Domain) -> None:
    """Check the constants a view declares, where the domain is small enough.

    Raises
    ------
    FalsifiedClaimError
        With the pair that moves further than declared.
    """
    for view, source in _declaring(release.view, domain):
        if source.count() <= _CHECKED_DATABASES:
            verify_lipschitz(view, source)


def _constant(release: Release, domain: Domain) -> list[str]:
    """Return the declared constants that were not checked, in words."""
    return [
        f"{view.name} moves by at most {format_up(view.constant)} ({view.unit_to.name})"
        f" per step ({view.unit_from.name}) (declared)"
        for view, source in _declaring(release.view, domain)
        if source.count() > _CHECKED_DATABASES
    ]


def _declaring(view: View, domain: Domain) -> Iterator[tuple[Lipschitz, Domain]]:
    """Yield the parts of a view that declare a constant, with what they see."""
    if isinstance(view, Lipschitz):
        yield view, domain
    elif isinstance(view, Chain):
        yield from _declaring(view.first, domain)
        yield from _declaring(view.second, image_or_values(view.first, domain))


def _declared_caps(domain: Domain) -> list[str]:
    """Return the limits the domain declares, which the loader must enforce."""
    caps = []
    if isinstance(domain, Table) and domain.max_cells is not None:
        caps.append(f"every record lies in at most {domain.max_cells} cells")
    if isinstance(domain, Table) and domain.max_size is not None:
        caps.append(f"the table has at most {domain.max_size} records")
    if isinstance(domain, Graph) and domain.max_degree is not None:
        caps.append(f"every vertex has at most {domain.max_degree} edges")
    return [f"{cap} (declared; enforce it where the data is loaded)" for cap in caps]


def warnings_of(
    target: Granularity, domain: Domain, *, no_guarantee: bool
) -> tuple[str, ...]:
    """Return what a reader must know before relying on the number."""
    found = []
    if target.splits_person:
        found.append(CORRELATION_WARNING)
    if no_guarantee:
        found.append("delta has reached 1: nothing is promised at this granularity")
    return tuple(found)
