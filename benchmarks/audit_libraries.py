"""Audit the mechanisms of other libraries, and print the tables of the documentation.

``python -m benchmarks.audit_libraries`` audits what is installed of OpenDP and
diffprivlib at the level that a mechanism states of itself, at that level divided by 1.3
and at twice that level, and prints one table in Markdown for each library (``--json``:
one JSON value for all). A library that is missing is named. Both draw from the
operating system, so that another run differs by some hundredths.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, metadata
from typing import Any, NamedTuple

from undertow.audit.claim import Claim
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import DiffprivlibSubject, OpenDPSubject, Subject

FACTORS = (1.0, 1 / 1.3, 2.0)
CONFIDENCE = 0.99
TRIALS = 100_000


class Case(NamedTuple):
    """A mechanism, the level it states of itself, and what is looked at besides."""

    name: str
    subject: Subject
    stated: float
    score: str | None = None


class Library(NamedTuple):
    """A library, what else decides its numbers, and its mechanisms."""

    name: str
    modules: tuple[str, ...]
    cases: Callable[[], Iterator[Case]]


def opendp_cases() -> Iterator[Case]:
    """Yield randomised response, and Laplace noise on floats and on integers."""
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    coin = OpenDPSubject(dp.m.make_randomized_response_bool(0.75), [False, True])
    yield Case("`make_randomized_response_bool(0.75)`", coin, coin.stated(1))
    laplace = OpenDPSubject(dp.m.make_laplace(*floats, scale=1.0), [0.0, 1.0])
    name = "`make_laplace` on floats, scale 1"
    yield Case(name, laplace, laplace.stated(1.0))
    yield Case(f'{name}, `score="bits"`', laplace, laplace.stated(1.0), "bits")
    geometric = OpenDPSubject(dp.m.make_laplace(*whole, scale=1.0), [0, 1])
    name = "`make_laplace` on integers (geometric), scale 1"
    yield Case(name, geometric, geometric.stated(1))


def diffprivlib_cases() -> Iterator[Case]:
    """Yield mechanisms that are made for epsilon 1."""
    made: Any = import_module("diffprivlib.mechanisms")
    laplace = DiffprivlibSubject(made.Laplace(epsilon=1, sensitivity=1), [0.0, 1.0])
    geometric = DiffprivlibSubject(made.Geometric(epsilon=1), [0, 1])
    binary = made.Binary(epsilon=1, value0="no", value1="yes")
    yield Case("`Laplace`", laplace, 1.0)
    yield Case("`Geometric`", geometric, 1.0)
    yield Case("`Binary`", DiffprivlibSubject(binary, ["no", "yes"]), 1.0)
    yield Case('`Laplace`, `score="bits"`', laplace, 1.0, "bits")


LIBRARIES = (
    Library("opendp", ("opendp", "numpy"), opendp_cases),
    Library("diffprivlib", ("diffprivlib", "scikit-learn", "numpy"), diffprivlib_cases),
)


def audited(case: Case, *, trials: int) -> list[dict[str, Any]]:
    """Audit one mechanism at every level; with a score at the level it states."""
    rows = []
    for factor in FACTORS if case.score is None else FACTORS[:1]:
        claim = Claim.pure(case.stated * factor)
        found = audit_pair(
            case.subject,
            claim,
            trials=trials,
            confidence=CONFIDENCE,
            score=case.score or "values",
        )
        rows.append(
            {
                "mechanism": case.name,
                "claim": claim.level,
                "stated": factor == 1,
                "certified": found.certified,
                "estimate": found.epsilon_estimate,
                "verdict": found.verdict,
            }
        )
    return rows


def table(library: Library, *, trials: int) -> dict[str, Any]:
    """Audit a library; if it is not there, or not usable, say so and why."""
    try:
        cases = list(library.cases())
    except ImportError as error:
        return {"library": library.name, "missing": str(error)}
    return {
        "library": library.name,
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in library.modules},
        },
        "trials": trials,
        "confidence": CONFIDENCE,
        "rows": [row for case in cases for row in audited(case, trials=trials)],
    }


def markdown(found: dict[str, Any]) -> str:
    """Return the table of one library as the documentation shows it."""
    if "missing" in found:
        return f"{found['library']} cannot be audited here: {found['missing']}."
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    lines = [
        f"{versions}; {found['trials']:,} trials, confidence {found['confidence']:g}.",
        "",
        "| mechanism | claim | certified | estimate | verdict |",
        "|---|---|---|---|---|",
    ]
    before = None
    for row in found["rows"]:
        name = f"{row['mechanism']} " if row["mechanism"] != before else ""
        claim = f"{row['claim']:.5g}{', stated' if row['stated'] else ''}"
        cells = (claim, f"{row['certified']:.3f}", f"{row['estimate']:.3f}")
        lines.append(f"| {name}| {' | '.join((*cells, row['verdict']))} |")
        before = row["mechanism"]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Audit the libraries that are asked for and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [library.name for library in LIBRARIES]
    parser.add_argument("library", nargs="*", help=f"{' or '.join(names)}; default all")
    parser.add_argument(
        "--trials", type=int, default=TRIALS, help="default %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.library) - set(names)):
        parser.error(f"library must be {' or '.join(names)}, got {unknown[0]!r}")
    asked = [one for one in LIBRARIES if one.name in (given.library or names)]
    found = [table(library, trials=given.trials) for library in asked]
    print(json.dumps(found) if given.json else "\n\n".join(map(markdown, found)))
    return 0 if all("missing" not in one for one in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
