"""From options to a claim and to what is audited."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from undertow._validate import check_choice, check_count, check_positive
from undertow.audit import Claim
from undertow.audit.claim import Adjacency
from undertow.audit.outputs import shortened
from undertow.audit.subjects import Subject, draws_apart, is_seeded
from undertow.cli.audit_progress import printing_aside
from undertow.cli.json_values import read_json
from undertow.cli.risk_inputs import read_threat
from undertow.cli.risk_records import read_records, read_weights
from undertow.errors import ModelError
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.risk import Threat

__all__ = [
    "PROTOCOLS",
    "check_copies",
    "check_place",
    "check_size",
    "package_version",
    "read_attacker",
    "read_claim",
    "read_function",
    "read_input_list",
    "read_neighbours",
    "read_pairs",
    "read_protocol",
    "read_report_path",
    "read_scores",
]

PROTOCOLS: dict[str, Callable[[int, float], LocalProtocol]] = {
    "blh": BinaryHashing,
    "grr": GeneralizedResponse,
    "olh": OptimizedHashing,
    "oue": OptimizedUnary,
    "she": SummationHistogram,
    "ss": SubsetSelection,
    "sue": SymmetricUnary,
    "the": ThresholdHistogram,
}
"""Local protocols by their names on the command line."""

# Values beyond which a chunk of reports does not fit into memory.
_CATEGORIES = 100_000
_TRIALS = 10**11
_WORKERS = 256
# A larger one would need more trials than can be run.
_LEVEL = 100.0


def read_claim(
    *, epsilon: float | None, delta: float | None, mu: float | None, adjacency: str
) -> Claim:
    """Return the claim that is to be refuted."""
    check_choice(adjacency, "adjacency", choices=("replace", "add-remove", "local"))
    change = cast("Adjacency", adjacency)
    if (epsilon is None) == (mu is None):
        given = "neither" if epsilon is None else "both"
        raise ModelError(f"the claim must be one of --claim and --mu, got {given}.")
    if mu is not None:
        if delta is not None:
            raise ModelError(f"delta must be left out beside --mu, got {delta:g}.")
        return Claim.gaussian(_level(mu, "mu"), adjacency=change)
    assert epsilon is not None
    if epsilon == 0 and delta is not None and delta > 0:  # total variation
        return Claim.approx(0, delta, adjacency=change)
    level = _level(epsilon, "claim")
    return Claim.approx(level, 0 if delta is None else delta, adjacency=change)


def read_neighbours(
    claim: Claim, inputs: Sequence[Any], *, pairs: Any, stated: str | None
) -> tuple[Claim, tuple[str, ...]]:
    """Return the claim for inputs as they are, and what to tell of that.

    Parameters
    ----------
    claim : Claim
        As it was stated.
    inputs : sequence
        What is compared.
    pairs : list of pairs, or "auto"
        Which of them.
    stated : str, optional
        What two inputs are: ``one-apart`` or ``replaced``.

    Raises
    ------
    ModelError
        If the claim is about adding or removing a record, and it is neither stated nor
        to be read off the inputs whether one of two has a record more.
    """
    if stated is not None:
        check_choice(stated, "--neighbours", choices=("one-apart", "replaced"))
    if claim.adjacency != "add-remove":
        if stated is not None:
            raise ModelError(
                f"--neighbours must come with --adjacency add-remove, got {stated} "
                f"beside {claim.adjacency}; leave it out."
            )
        return claim, ()
    listed = itertools.combinations(range(len(inputs)), 2) if pairs == "auto" else pairs
    seen = {
        _difference(inputs[a], inputs[b])
        for a, b in listed
        if 0 <= min(a, b) <= max(a, b) < len(inputs)  # others are refused later
    }
    read = next(iter(seen)) if len(seen) == 1 else None
    if stated is None and read is None:
        raise ModelError(
            "--adjacency add-remove must come with --neighbours one-apart (one of two "
            "inputs has a record more) or --neighbours replaced (the claim is then "
            "tested at its price for replacing a record), got inputs from which this "
            "cannot be read."
        )
    how = "were said to be" if stated else "are lists of records, taken to be"
    if (stated or read) == "one-apart":
        told = f"the inputs {how} one record apart: the claim is tested as it stands"
        return replace(claim, adjacency="one-apart"), (told,)
    told = (
        f"the inputs {how} alike but for the value of a record: the claim is tested at "
        "its price for replacing one; if one of them has a record more, say "
        "--neighbours one-apart"
    )
    return claim, (told,)


def _difference(first: Any, second: Any) -> str | None:
    """Return how two tables differ; None if they are no tables, or differ otherwise."""
    tables = [_records(given) for given in (first, second)]
    if None in tables:
        return None
    one, two = (Counter(table or ()) for table in tables)
    gone, come = (one - two).total(), (two - one).total()
    return {(0, 1): "one-apart", (1, 0): "one-apart", (1, 1): "replaced"}.get(
        (gone, come)
    )


def _records(given: Any) -> list[str] | None:
    """Return the records of a list, or of an object of equally long columns."""
    if isinstance(given, dict) and given:
        columns = list(given.values())
        if all(isinstance(c, list) and len(c) == len(columns[0]) for c in columns):
            given = [list(row) for row in zip(*columns, strict=True)]
    if not isinstance(given, list):
        return None
    return [json.dumps(record, sort_keys=True) for record in given]


def _level(value: float, name: str) -> float:
    number = check_positive(value, name)
    if number > _LEVEL:
        raise ModelError(
            f"{name} must be at most {_LEVEL:g}, got {value:g}; no number of trials "
            "refutes a larger one."
        )
    return number


def check_size(*, trials: int | None, workers: int) -> None:
    """Refuse a size of a run that cannot be meant."""
    if trials is not None and check_count(trials, "trials") > _TRIALS:
        raise ModelError(f"trials must be at most {_TRIALS:.0e}, got {trials}.")
    if check_count(workers, "workers") > _WORKERS:
        raise ModelError(f"workers must be at most {_WORKERS}, got {workers}.")


def read_protocol(
    name: str | None, *, categories: int | None, epsilon: float | None
) -> LocalProtocol:
    """Return the protocol of a name at a level."""
    for option, value in (("protocol", name), ("categories", categories)):
        if value is None:
            raise ModelError(f"--{option} must be given, got none; or name a --fault.")
    if epsilon is None:
        raise ModelError("--epsilon must be given, got none.")
    assert name is not None
    assert categories is not None
    check_choice(name, "protocol", choices=tuple(PROTOCOLS))
    size = check_count(categories, "categories", minimum=2)
    if size > _CATEGORIES:
        raise ModelError(f"categories must be at most {_CATEGORIES}, got {size}.")
    return PROTOCOLS[name](size, check_positive(epsilon, "epsilon"))


def read_attacker(
    categories: int, *, prior: str, aux: str, tolerance: float | None, loss: str | None
) -> Threat | None:
    """Return the threat of a local audit; None for exact guesses of uniform values."""
    if (prior, aux) == ("uniform", "none") and not tolerance and loss is None:
        return None
    weights = read_weights(prior)
    described = read_records(
        categories=categories, span=None, answers=None, weights=weights
    )
    return read_threat(
        described, weights=weights, aux=aux, tolerance=tolerance, loss=loss
    )


def read_scores(names: list[str] | None) -> str | tuple[str, ...] | None:
    """Return what an event audit looks at besides the outputs themselves."""
    if not names:
        return None
    for name in names:
        check_choice(name, "--score", choices=("bits", "learned", "time", "values"))
    listed = tuple(dict.fromkeys(names))
    return listed[0] if len(listed) == 1 else listed


def check_copies(
    subject: Subject, *, workers: int, checkpoint: Path | None, way: str
) -> None:
    """Refuse options for which a seed has to repeat the runs, if none does.

    Parameters
    ----------
    subject : Subject
        What is run.
    workers : int
        Processes.
    checkpoint : Path, optional
        Where an interrupted run is kept.
    way : str
        What would make a seed repeat the runs.
    """
    if workers > 1 and not draws_apart(subject):
        raise ModelError(
            f"--workers must be 1 for {subject.name}, whose copies may draw the same "
            f"numbers, got {workers}; {way}."
        )
    if checkpoint is not None and not (is_seeded(subject) and draws_apart(subject)):
        raise ModelError(
            f"--checkpoint must be left out for {subject.name}, which no seed repeats, "
            f"got {checkpoint}; {way}."
        )


def read_input_list(text: str) -> list[Any]:
    """Return the inputs given as a JSON list of at least two."""
    given = read_json(text, "inputs")
    if not isinstance(given, list) or len(given) < 2:
        raise ModelError(
            f"inputs must be a JSON list of at least two, got {shortened(text)}."
        )
    return given


def read_pairs(text: str | None) -> list[tuple[int, int]] | str:
    """Return pairs of numbers given as JSON; ``"auto"`` without them."""
    if text is None:
        return "auto"
    given = read_json(text, "pairs")
    even = isinstance(given, list) and all(
        isinstance(pair, list) and len(pair) == 2 for pair in given
    )
    if not even:
        raise ModelError(
            "pairs must be a JSON list of pairs such as [[0, 1]], got "
            f"{shortened(text)}."
        )
    return [(first, second) for first, second in given]


def read_report_path(path: Path | None) -> Path | None:
    """Return where a report goes; refused before a long run and not after it."""
    if path is None:
        return None
    if path.suffix.lower() not in (".html", ".md"):
        raise ModelError(f"report must end in .html or .md, got {path}.")
    check_place(path, "report")
    return path


def check_place(path: Path | None, name: str) -> None:
    """Refuse a file to write that is a folder or lies in none."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise ModelError(f"{name} must be a file in a folder that exists, got {path}.")


def read_function(target: str) -> Callable[..., Any]:
    """Import ``pkg.module:function``, with the current directory on the path.

    Raises
    ------
    ModelError
        If the text has another form, the module cannot be imported, or it has no such
        function.
    """
    module, colon, path = target.partition(":")
    words = [*module.split("."), *path.split(".")]
    if not colon or not all(word.isidentifier() for word in words):
        raise ModelError(
            f"the function must be named as pkg.module:function, got "
            f"{shortened(target)!r}."
        )
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    found = _import(module)
    for word in path.split("."):
        try:
            found = getattr(found, word)
        except AttributeError:
            raise ModelError(
                f"{module} must have {path!r}, got no such name in it."
            ) from None
    if not callable(found):
        raise ModelError(f"{target} must be callable, got {type(found).__name__}.")
    return cast("Callable[..., Any]", found)


def _import(module: str) -> Any:
    try:
        with printing_aside():
            return importlib.import_module(module)
    except (Exception, SystemExit) as fault:  # any code may run on import
        said = shortened(str(fault)).rstrip(".")
        raise ModelError(
            f"{module} must be a module that can be imported, got "
            f"{type(fault).__name__}{': ' + said if said else ''}."
        ) from None


def package_version(module: str) -> str:
    """Return the version of the package that a module belongs to, if it is known."""
    top = module.split(".")[0]
    stated = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(stated, str):
        return f"{top} {stated}"
    try:
        return f"{top} {metadata.version(top)}"
    except (metadata.PackageNotFoundError, ValueError):
        return ""
