"""From options to a claim and to what is audited.

Protocols, functions, recorded runs from a file, and code with a known bug.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from undertow._validate import check_choice, check_count, check_positive
from undertow.audit import Claim
from undertow.audit._outcome import shortened
from undertow.audit.claim import Adjacency
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import Subject, draws_apart, is_seeded
from undertow.cli._audit_result import Job, print_faults, printing_aside
from undertow.cli._input import load_studies, read_json
from undertow.cli._output import print_json
from undertow.cli._threat import read_records, read_threat, read_weights
from undertow.errors import ModelError
from undertow.mechanisms.local import PROTOCOLS, LocalProtocol
from undertow.results import to_plain
from undertow.risk import Threat

if TYPE_CHECKING:
    from undertow_studies.faults import Fault

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
    check_choice(name, "protocol", choices=tuple(sorted(PROTOCOLS)))
    size = check_count(categories, "categories", minimum=2)
    if size > _CATEGORIES:
        raise ModelError(f"categories must be at most {_CATEGORIES}, got {size}.")
    return PROTOCOLS[name].at(size, check_positive(epsilon, "epsilon"))


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


# Recorded runs from a file: one row for each, an input column and output columns.

_LARGEST_FIELD = 1 << 20
# Codes such as 007 and 1_2 are text: as numbers, different ones would be equal.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # -0 is a float, as its sign would be lost
_DECIMAL = re.compile(
    r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|[+-]?inf)"
)


def read_records_file(
    path: Path, *, input_column: str, output_columns: Sequence[str]
) -> RecordedSubject:
    """Read the runs of a ``.csv``, ``.jsonl`` or ``.parquet`` file.

    Parameters
    ----------
    path : Path
        The file; its ending says its kind.
    input_column : str
        Name of the column with the inputs.
    output_columns : sequence of str
        Names of the columns that make up an output; several make a vector, or a tuple
        where one of them is text.

    Raises
    ------
    ModelError
        If the file cannot be read, lacks a column, or has a row without an input.

    Notes
    -----
    A column of a CSV file is read as numbers if every cell that is not empty is one,
    else as text; an empty cell is the output None. In a JSON Lines file each line is an
    object, and an output any JSON value.
    """
    names = (input_column, *output_columns)
    for name in names:
        if names.count(name) > 1:
            raise ModelError(
                f"--input-column and every --output-column must differ, got {name!r} "
                "twice."
            )
    kinds = {".csv": _read_csv, ".jsonl": _read_lines, ".parquet": _read_parquet}
    if path.suffix.lower() not in kinds:
        raise ModelError(f"the file must end in .csv, .jsonl or .parquet, got {path}.")
    inputs, *columns = kinds[path.suffix.lower()](path, names)
    if not inputs:
        raise ModelError(f"{path} must hold runs, got none.")
    for value in inputs:
        if not isinstance(value, str | int | float | bool):
            kind = "none" if value is None else type(value).__name__
            raise ModelError(
                f"{input_column} must hold a number or text in every row of {path}, "
                f"got {kind}."
            )
        if value != value:
            raise ModelError(f"{input_column} must hold inputs, got nan in {path}.")
    outputs = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return RecordedSubject(inputs, outputs, name=path.name)


def _read_csv(path: Path, names: Sequence[str]) -> list[list[Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, _long_fields():
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            _require_columns(path, names, header)
            places = [header.index(name) for name in names]
            rows = [_cells(path, row, places, reader.line_num) for row in reader if row]
    except OSError as fault:
        raise ModelError(
            f"the file must be readable, got {path}: {fault.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} must be UTF-8 text, got other bytes.") from None
    except csv.Error as fault:
        raise ModelError(f"{path} must be a CSV file, got an error: {fault}.") from None
    return [_values([row[k] for row in rows]) for k in range(len(names))]


@contextmanager
def _long_fields() -> Iterator[None]:
    """Allow long cells while a file is read: the limit belongs to the process."""
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _cells(path: Path, row: list[str], places: list[int], line: int) -> list[str]:
    if max(places) >= len(row):
        raise ModelError(
            f"{path} must have every column in every row, got a row of {len(row)} on "
            f"line {line}."
        )
    cells = [row[place] for place in places]
    if not cells[0].strip():
        raise ModelError(
            f"{path} must have an input in every row, got an empty cell on line {line}."
        )
    # Blanks are no part of an input; of an output they may be all that differs.
    return [cells[0].strip(), *cells[1:]]


def _values(cells: list[str]) -> list[Any]:
    """Return whole numbers, else numbers, else text; None for an empty cell."""
    told = [cell for cell in cells if cell]
    read: Callable[[str], Any] = str
    if all(_WHOLE.fullmatch(cell.strip()) for cell in told):
        read = int
    elif all(_DECIMAL.fullmatch(cell.strip()) for cell in told):
        read = float
    return [read(cell) if cell else None for cell in cells]


def _read_lines(path: Path, names: Sequence[str]) -> list[list[Any]]:
    rows: list[dict[str, Any]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    rows.append(_object(path, line, number, names))
    except OSError as fault:
        raise ModelError(
            f"the file must be readable, got {path}: {fault.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} must be UTF-8 text, got other bytes.") from None
    return [[row[name] for row in rows] for name in names]


def _object(path: Path, line: str, number: int, names: Sequence[str]) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ModelError(
            f"{path} must hold a JSON object on each line, got none on line {number}."
        )
    for name in names:
        if name not in told:
            raise ModelError(
                f"{path} must have {name!r} on every line, got none on line {number}; "
                "write null for no output."
            )
    return told


def _read_parquet(path: Path, names: Sequence[str]) -> list[list[Any]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ModelError(
            "pyarrow must be installed to read .parquet, got none; run "
            "pip install 'undertow[data]', or save the runs as .csv."
        ) from None
    try:
        _require_columns(path, names, parquet.read_schema(path).names)
        table = parquet.read_table(path, columns=list(names))
    except OSError as fault:
        reason = fault.strerror or str(fault).splitlines()[0]
        raise ModelError(f"the file must be readable, got {path}: {reason}.") from None
    except pyarrow.ArrowException as fault:
        reason = str(fault).splitlines()[0].rstrip(".")[:120]
        raise ModelError(f"{path} must be a Parquet file, got: {reason}.") from None
    return [table[name].to_pylist() for name in names]


def _require_columns(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    for name in names:
        if header.count(name) != 1:
            listed = ", ".join(header[:12]) or "none"
            raise ModelError(
                f"{path} must have one column {name!r}, got the columns {listed[:200]}."
            )


# Code with a known bug, as something to audit.


def read_fault(name: str) -> Fault:
    """Return a bug fixture by its name."""
    faults = _faults()
    check_choice(name, "fault", choices=tuple(faults.FAULTS))
    fault: Fault = faults.named_fault(name)
    return fault


def _faults() -> Any:
    return load_studies("faults", purpose="for --fault")


def fault_job(name: str, *, repaired: bool, given: Sequence[str]) -> Job:
    """Return the audit of a bug fixture, which has its own claim and inputs.

    Parameters
    ----------
    name : str
        Of the fixture.
    repaired : bool
        Whether the code without the bug is run.
    given : sequence of str
        Options on the command line that describe another audit, by name.

    Raises
    ------
    ModelError
        If there are such.
    """
    _require_alone(given)
    fault = read_fault(name)
    state = "repaired" if repaired else "with its bug"
    return Job(
        (fault.repaired if repaired else fault.broken).subject,
        fault.claim,
        name=name,
        title=f"the fixture {name}, {state}",
        local=fault.method == "local",
        trials=fault.trials,
        pairs=fault.pairs,
        reader=fault.reader,
        score=fault.score,
    )


def _require_alone(given: Sequence[str]) -> None:
    if given:
        listed = ", ".join(f"--{name}" for name in given)
        raise ModelError(
            f"--fault must stand alone, as it has its own protocol, claim and threat, "
            f"got {listed} beside it; leave that out."
        )


def list_faults(*, given: Sequence[str], json_output: bool) -> None:
    """Print the bug fixtures, as a table or as JSON; `given` as for `fault_job`."""
    _require_alone(given)
    faults = [make() for make in _faults().FAULTS.values()]
    if not json_output:
        print_faults(faults)
        return
    rows = [
        {
            "name": fault.name,
            "bug": fault.bug,
            "claim": to_plain(fault.claim),
            "parameter": fault.claim.parameter,
            "level": to_plain(fault.level),
            "trials": fault.trials,
        }
        for fault in faults
    ]
    print_json({"faults": rows})
