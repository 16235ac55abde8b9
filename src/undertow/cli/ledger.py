"""`undertow ledger`: the persistent budget of a data set.

The commands; what people give to them: addresses, budgets, domains and correlation
models; and ledgers as records and tables.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow._text import LARGEST_FILE, on_one_line, parse_toml
from undertow.cli._input import path_of, read_json
from undertow.cli._output import EXIT_REFUSED, complain, guarded, print_json, working
from undertow.composition import domain_to_document
from undertow.composition.document import domain_from_document
from undertow.errors import LedgerError, PlanError
from undertow.numeric.exact import Exact, exact, round_down, sqrt_down
from undertow.privacy import GDP, ZCDP, Approx, Pure
from undertow.privacy.loss import Loss, shown_loss
from undertow.spaces import Granularity, parse_granularity
from undertow.spaces.base import Domain
from undertow.spaces.domain import Stream
from undertow.spaces.unit import Event, User

if TYPE_CHECKING:
    from undertow.correlation import Model
    from undertow.ledger import BudgetLedger, Entry, LeakageBudget


ledger = typer.Typer(
    name="ledger",
    help="The budget of a data set: make, read and check it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Address = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        show_default=False,
        help="A file, or postgresql://user@host/name.",
    ),
]
_MOST = 2**63 - 1  # a database counts no further
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@ledger.command("init")
def init(
    address: Address,
    dataset: Annotated[str, typer.Option(help="The data set whose budget this is.")],
    granularity: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=LOSS",
            help="A budget, such as user=epsilon:1, event=rho:0.5, "
            "w-event:24=mu:1 or user=epsilon:1,delta:1e-6; may be repeated.",
        ),
    ],
    domain: Annotated[
        str | None,
        typer.Option(help="The domain as JSON text, @file.json or @plan.toml."),
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option(
            metavar="RELEASE.toml",
            help="Take the domain of this release; of one that counts windows, for a "
            "ledger that takes releases of whole units as well.",
        ),
    ] = None,
    correlation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME={...}",
            help="A correlation model in the words of promise.correlation, and the "
            "most that all releases may leak under it, such as "
            "'families={model=\"blocks\", group=4, leakage=1}'; or @models.toml; may "
            "be repeated.",
        ),
    ] = None,
    json_output: JsonOutput = False,
) -> None:
    """Make a ledger; everything later is charged to it.

    Example: [bold]undertow ledger init steps.ledger --dataset steps --granularity
    user=epsilon:1 --domain '{"kind": "stream", "users": 1000, "times": 24}'[/bold]

    Exit status: 0 done, 2 bad input, and nothing is left behind.
    """
    with guarded():
        package = required_ledger()
        records = _records(domain, release)
        budgets = read_budgets(granularity)
        models = read_models(correlation or (), records)
        try:
            made = package.BudgetLedger.create(
                address,
                dataset=dataset,
                domain=records.domain,
                budgets=budgets,
                models=models,
            )
        except (TypeError, ValueError) as fault:
            raise LedgerError(str(fault)) from None
        with made:
            if json_output:
                print_json(summary_record(made))
            else:
                _print_terms(made)


@ledger.command("show")
def show(address: Address, json_output: JsonOutput = False) -> None:
    """Show what was agreed and what is left.

    Example: [bold]undertow ledger show steps.ledger[/bold]
    """
    with guarded(), opened(address) as found:
        if json_output:
            print_json(summary_record(found))
            return
        states = found.states()
        _print_terms(found)
        charges, head = sum(states.values()), found.head
        typer.echo(
            f"{charges} charge{'s' * (charges != 1)}: {states['done']} with output, "
            f"{states['charged']} waiting for it, {states['spoiled']} closed without."
        )
        entries = "entry" if head.count == 1 else "entries"
        typer.echo(f"{head.count} {entries}; the head to keep elsewhere: {head.hash}.")


@ledger.command("remaining")
def remaining(address: Address, json_output: JsonOutput = False) -> None:
    """Print what is left at each granularity, for the unit that lost the most.

    Example: [bold]undertow ledger remaining steps.ledger --json[/bold]
    """
    with guarded(), opened(address) as found:
        if json_output:
            print_json({"budgets": budget_records(found)})
        else:
            print_budgets(found)


@ledger.command("history")
def history(
    address: Address,
    after: Annotated[
        int, typer.Option(min=0, max=_MOST, help="Start after this entry.")
    ] = 0,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST, help="Print at most so many entries."),
    ] = None,
    json_output: JsonOutput = False,
) -> None:
    """List the entries in order: charges, stored outputs, closed charges.

    Example: [bold]undertow ledger history steps.ledger --limit 20[/bold]
    """
    with guarded(), opened(address) as found:
        entries = found.history(after=after, limit=limit)
        if json_output:
            print_json({"entries": [entry.to_dict() for entry in entries]})
        else:
            print_history(entries)


@ledger.command("verify")
def verify(
    address: Address,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A hash kept elsewhere.")
    ] = None,
    json_output: JsonOutput = False,
) -> None:
    """Check that no entry was edited, deleted, inserted or reordered.

    Example: [bold]undertow ledger verify steps.ledger[/bold]

    Exit status: 0 as it was written, 2 no ledger that can
    be read, or one whose schema number this version does not know, 3 something was
    changed.
    """
    with guarded():
        package = required_ledger()
        with working(f"checking {address}"):
            faults = package.verify_ledger(address, head=head)
    if json_output:
        print_json({"sound": not faults, "faults": [f.to_dict() for f in faults]})
    elif not faults:
        typer.echo("Every entry is as it was written.")
    if faults:
        more = f" ({len(faults)} faults in all)" if len(faults) > 1 else ""
        complain(
            f"{faults[0].what.rstrip('.')}{more}; restore the ledger from a copy, and "
            "release nothing until then."
        )
        raise typer.Exit(EXIT_REFUSED)


@ledger.command("export")
def export(
    address: Address,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write to this new file instead, for its owner alone."
        ),
    ] = None,
    json_output: JsonOutput = False,
) -> None:
    """Print terms, entries and head as one JSON object; outputs by their digests.

    Example: [bold]undertow ledger export steps.ledger --output steps.json[/bold]
    """
    with guarded(), opened(address) as found:
        path = path_of(output, "output")
        record = found.export()
        if path is None:
            print_json(record)
            return
        _write(path, record)
        if json_output:
            print_json({"written": str(path), "head": record["head"]})
        else:
            typer.echo(f"{path} holds {record['head']['count']} entries.")


def _records(domain: str | None, release: Path | None) -> Records:
    """Return what is counted, from one of the two options that say it."""
    if domain is not None and release is None:
        return Records(read_domain(domain))
    if domain is None and release is not None:
        return Records(*release_source(release))
    raise LedgerError(
        "a ledger must be given --domain or --release, got both or neither."
    )


def _print_terms(found: BudgetLedger) -> None:
    words = f"{found.name} holds the budget of {found.dataset}."
    typer.echo(on_one_line(words).encode("utf-8", "backslashreplace"))
    print_budgets(found)
    print_models(found)


def _write(path: Path, record: dict[str, object]) -> None:
    import json

    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise LedgerError(
            f"output must be a new file, got {path}, which is there."
        ) from None
    except OSError as fault:
        raise LedgerError(
            f"output must be a file that can be made, got {path}: {fault.strerror}."
        ) from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False, indent=1)
        file.write("\n")


# What people give to `undertow ledger`: addresses, budgets and domains.

_LOSSES: dict[frozenset[str], Any] = {
    frozenset({"epsilon"}): Pure,
    frozenset({"epsilon", "delta"}): Approx,
    frozenset({"rho"}): ZCDP,
    frozenset({"mu"}): GDP,
}
_SMALLEST_BUDGET = Fraction(1, 10**300)  # below, a float may be zero


def required_ledger() -> ModuleType:
    """Return the package, or say what to install."""
    try:
        import undertow.ledger
    except ImportError as fault:
        raise LedgerError(str(fault)) from None
    return undertow.ledger


@contextmanager
def opened(address: str) -> Iterator[BudgetLedger]:
    """Open a ledger to look at it, and close it again."""
    package = required_ledger()
    found: BudgetLedger = package.BudgetLedger.open(address, read_only=True)
    with found:
        yield found


def read_budgets(words: Iterable[str]) -> dict[Granularity, Loss]:
    """Read budgets given as ``user=epsilon:1``.

    Raises
    ------
    LedgerError
        If a word is no budget, allows nothing or everything, or a granularity comes
        twice.

    Examples
    --------
    >>> read_budgets(["w-event:24=epsilon:1/2"])
    {WEvent(w=24, single_user=False): Pure(epsilon=0.5)}
    """
    budgets: dict[Granularity, Loss] = {}
    for word in words:
        name, sign, text = word.rpartition("=")
        if not sign:
            raise LedgerError(
                "a granularity must be given with its budget, such as user=epsilon:1, "
                f"got {word[:60]!r}."
            )
        try:
            target = parse_granularity(name)
            loss = _read_loss(text)
        except ValueError as fault:
            raise LedgerError(f"budget {word[:60]!r}: {fault}") from None
        if target in budgets:
            raise LedgerError(f"{name} must have one budget, got two.")
        budgets[target] = loss
    return budgets


def _read_loss(text: str) -> Loss:
    values = {}
    for part in text.split(","):
        name, _, value = part.partition(":")
        values[name.strip()] = value.strip()
    build = _LOSSES.get(frozenset(values))
    if build is None:
        raise ValueError(
            "a budget must be epsilon:…, epsilon:…,delta:…, rho:… or mu:…, got "
            f"{text[:40]!r}."
        )
    loss: Loss = build(**values)
    _require_usable([exact(value, name) for name, value in values.items()], text)
    return loss


def _require_usable(values: list[Exact], text: str) -> None:
    """Refuse a budget that no release fits in, or that every release does."""
    given = [value for value in values if value != 0]
    if not given or not _SMALLEST_BUDGET <= min(given) or max(given) == math.inf:
        raise ValueError(
            "a budget must be positive and finite, at least 1e-300, got "
            f"{text[:40]!r}; give what may be lost, such as epsilon:1."
        )


def read_domain(text: str) -> Domain:
    """Read a domain given as JSON text, ``@file.json`` or ``@plan.toml``."""
    document = (
        read_toml(Path(text[1:]), kind="plan file")
        if _is_toml(text)
        else read_json(text, "domain")
    )
    if isinstance(document, dict) and "kind" not in document:
        document = document.get("domain", document)
    return domain_from_document(document)


def release_source(path: Path) -> tuple[Domain, str | None, bool, str | None]:
    """Return what a release file is accounted on.

    Returns
    -------
    domain : Domain
        The databases the guarantee ranges over.
    unit : str or None
        The column of the unit.
    lone : bool
        Whether every row is a unit of its own.
    time : str or None
        The column of the time.
    """
    try:
        from undertow.release.document.release_document import read_release
        from undertow.release.plan.planned_release import plan_release
    except ImportError as fault:
        raise LedgerError(str(fault)) from None
    document = read_release(path)
    source = document.source
    lone = source.unit is None and source.kind == "user"
    return plan_release(document).domain, source.unit, lone, source.time


def _is_toml(text: str) -> bool:
    return text.startswith("@") and text.endswith(".toml")


def read_toml(path: Path, *, kind: str) -> dict[str, Any]:
    """Read a TOML file of moderate size.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        What it must be, for the error message.

    Raises
    ------
    LedgerError
        If it cannot be read, is too large, or is no TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise LedgerError(f"{path} must be a {kind}, got a larger file.")
        return parse_toml(content.decode("utf-8"))
    except OSError as fault:
        raise LedgerError(
            f"{path} must be a readable file, got {fault.strerror}."
        ) from None
    except (ValueError, RecursionError):
        raise LedgerError(f"{path} must be a TOML file, got another text.") from None


# Correlation models that people give to `undertow ledger init`.

_REPLACING = ("bounded", "event", "user")
_EXAMPLE = 'families={model="blocks", group=4, leakage=1}'
_SMALLEST_LEVEL = Fraction(1, 10**100)
_OWN = frozenset({"granularity", "leakage", "unit"})


@dataclass(frozen=True, slots=True)
class Records:
    """What the records of a ledger are.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    unit : str or None
        The column of the unit, where a release file says it.
    lone : bool
        Whether every row is a unit of its own.
    time : str or None
        The column of the time, where a release file says it.
    """

    domain: Domain
    unit: str | None = None
    lone: bool = False
    time: str | None = None

    @property
    def windows(self) -> int | None:
        """The number of records of a unit, where the domain has several."""
        times = self.domain.times if isinstance(self.domain, Stream) else 1
        return times if times > 1 else None

    def whole_units(self, target: Granularity) -> bool:
        """Tell whether one change at a granularity may replace all that a unit has."""
        if self.lone or not isinstance(self.domain, Stream):
            return False
        return target == User() or (target == Event() and self.windows is None)


def read_models(words: Iterable[str], records: Records) -> dict[str, LeakageBudget]:
    """Read correlation models, each with the most that may leak under it.

    Parameters
    ----------
    words : iterable of str
        TOML such as ``families={model="blocks", group=4, leakage=1}``, or
        ``@models.toml`` with one table a model. A table holds what
        ``promise.correlation`` of a release file does, ``leakage``, and may hold
        ``granularity`` (by default ``user``) and the column ``unit`` of a file to fit.
    records : Records
        What the models are about.

    Raises
    ------
    LedgerError
        If a word is no model, or a name comes twice.
    AssumptionError
        If no theorem covers the model.
    """
    found: dict[str, LeakageBudget] = {}
    for word in words:
        folder = Path(word[1:]).parent if word.startswith("@") else Path()
        for name, table in _tables(word).items():
            if name in found:
                raise LedgerError(f"correlation {name!r} must be given once, got two.")
            with _about(name):
                found[name] = _budget(table, records, folder)
    return found


def _tables(word: str) -> dict[str, Any]:
    if word.startswith("@"):
        tables = read_toml(Path(word[1:]), kind="file of correlation models")
    else:
        try:
            tables = parse_toml(word)
        except (ValueError, RecursionError):
            tables = {}
    if not tables or not all(isinstance(t, dict) for t in tables.values()):
        raise LedgerError(
            f"correlation must be one such as {_EXAMPLE}, or @models.toml with such "
            f"tables, got {word[:60]!r}."
        )
    for name in tables:
        if not name or not name.isprintable() or len(name) > 100:
            raise LedgerError(
                "the name of a correlation must be 1 to 100 printable characters, got "
                f"{name[:60]!r}."
            )
    return tables


def _budget(table: Mapping[str, Any], records: Records, folder: Path) -> LeakageBudget:
    from undertow.correlation import IndependentUnits, calibrate
    from undertow.ledger import LeakageBudget

    stated = _stated({key: table[key] for key in table if key not in _OWN})
    target = _granularity(table.get("granularity", "user"))
    target.require_domain(records.domain)
    leakage = _leakage(table)
    model = _model(stated, records, target, table.get("unit", records.unit), folder)
    calibration = calibrate(model, round_down(leakage))
    # A float stands for itself and for what is printed of it; the smaller is safe.
    level = min(Fraction(calibration.value), Fraction(exact(calibration.value)))
    return LeakageBudget(
        leakage=leakage,
        epsilon=leakage if isinstance(model, IndependentUnits) else level,
        granularity=target,
        theorem=calibration.achieves.theorem,
        model={
            **stated.model_dump(mode="json", exclude_none=True),
            "summary": model.summary,
        },
    )


def _stated(table: Mapping[str, Any]) -> Any:
    """Return a model as `promise.correlation` of a release file states it."""
    try:
        from pydantic import ValidationError

        from undertow.release.document._error import refused
        from undertow.release.document._promise import CorrelationPart
    except ImportError as fault:
        raise LedgerError(str(fault)) from None
    try:
        return CorrelationPart.model_validate(table)
    except ValidationError as fault:
        raise refused(fault, CorrelationPart) from None


def _granularity(name: object) -> Granularity:
    target = parse_granularity(name) if isinstance(name, str) else None
    if target is None or target.name not in _REPLACING:
        raise LedgerError(
            f"granularity must be {', '.join(_REPLACING)}, got {str(name)[:40]!r}; "
            "leakage is about what one record is, not whether it is there."
        )
    return target


def _leakage(table: Mapping[str, Any]) -> Fraction:
    value = table.get("leakage")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise LedgerError("leakage must be given as a number, such as 1, got none.")
    level = exact(value, "leakage")
    if not _SMALLEST_LEVEL <= level < math.inf:
        raise LedgerError(
            f"leakage must be positive and finite, at least 1e-100, got {value}; give "
            "what may leak, such as 1."
        )
    return Fraction(level)


def _model(
    stated: Any, records: Records, target: Granularity, unit: object, folder: Path
) -> Model:
    from undertow.release.document._promise import follows_time, stated_model

    if records.lone and follows_time(stated):
        raise LedgerError(
            "model must be blocks, or gaussian with a group, where every row is a "
            f"unit, got {stated.model}: a series of rows would join units; name "
            "source.unit in the release file."
        )
    if unit is not None and not isinstance(unit, str):
        raise LedgerError("unit must be the name of a column, got another value.")
    return stated_model(
        stated,
        path=None if stated.fit is None else folder / stated.fit,
        unit=unit,
        length=records.windows,
        whole_units=records.whole_units(target),
        moment=records.time,
    )


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Say of which model something is wrong."""
    try:
        yield
    except (LedgerError, PlanError) as fault:
        words = str(fault).replace("promise.correlation.", "").strip()
        raise LedgerError(f"correlation {name!r}: {words}") from None
    except (TypeError, ValueError) as fault:
        # Refusals of the library are ValueErrors too, and pass as they are.
        if type(fault) in (TypeError, ValueError):
            raise LedgerError(f"correlation {name!r}: {fault}") from None
        raise


# Ledgers as records and tables.


def budget_records(ledger: BudgetLedger) -> list[dict[str, Any]]:
    """Return every budget with what is spent (rounded up) and left (rounded down)."""
    return [
        {
            "name": state.name,
            "granularity": state.granularity.name,
            "budget": _exact_record(state.budget),
            "spent": _exact_record(state.spent),
            "left": _exact_record(state.left, down=True),
        }
        for state in ledger.budget_states()
    ]


def summary_record(ledger: BudgetLedger) -> dict[str, Any]:
    """Return what `undertow ledger show --json` prints."""
    head = ledger.head
    return {
        "ledger": ledger.name,
        "dataset": ledger.dataset,
        "domain": domain_to_document(ledger.domain),
        "budgets": budget_records(ledger),
        "models": {name: m.to_document() for name, m in ledger.models.items()},
        "charges": ledger.states(),
        "head": {"count": head.count, "hash": head.hash},
    }


def print_budgets(ledger: BudgetLedger) -> None:
    """Print one line a budget."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("protects", "budget", "spent", "left"):
        table.add_column(heading, overflow="fold")
    for state in ledger.budget_states():
        left = _floored(state.left)
        table.add_row(
            Text(on_one_line(state.name)),
            shown_loss(state.budget),
            shown_loss(state.spent),
            shown_loss(left),
        )
    Console().print(table)


def print_models(ledger: BudgetLedger) -> None:
    """Print one line a correlation model: what may leak, and by which theorem."""
    for name, model in ledger.models.items():
        said = model.model.get("summary") or model.model.get("model") or "as stated"
        line = (
            f"model:{name} keeps what leaks about one {model.granularity.name} within "
            f"{float(exact(model.leakage)):g} by {model.theorem}; model: {said}."
        )
        Console().print(Text(on_one_line(line)), soft_wrap=True)


def print_history(entries: Sequence[Entry]) -> None:
    """Print one line an entry."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("entry", "time", "what", "key", "label"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        clock = " (clock set back)" if entry.clock_back else ""
        said = entry.body.get("label") or entry.body.get("reason") or ""
        table.add_row(
            str(entry.number),
            f"{entry.time[:19]}{clock}",
            entry.kind,
            Text(on_one_line(entry.key)),
            Text(on_one_line(str(said))),
        )
    Console().print(table)


def _exact_record(loss: Loss, *, down: bool = False) -> dict[str, Any]:
    from undertow.ledger.record import loss_to_document

    numbers = loss.to_dict()
    if down:
        numbers.update(zip(loss.names, _floats_below(loss), strict=True))
    shown = {k: "inf" if v == math.inf else v for k, v in numbers.items()}
    return {**shown, "exact": loss_to_document(loss)["exact"]}


def _floats_below(loss: Loss) -> list[float]:
    """Return the parameters as floats that are not larger."""
    values = loss.exact_parameters()
    if isinstance(loss, GDP):
        return [sqrt_down(value) for value in values]
    return [math.inf if value == math.inf else round_down(value) for value in values]


def _floored(loss: Loss) -> Loss:
    """Return a loss of few digits, no larger than `loss`."""
    values = [_few_digits(value) for value in loss.exact_parameters()]
    if isinstance(loss, GDP):
        return GDP(_few_digits(_floats_below(loss)[0]))
    return type(loss)(*values)


def _few_digits(value: Exact) -> Exact:
    if value == math.inf:
        return value
    context, whole = Context(prec=6, rounding=ROUND_FLOOR), Fraction(value)
    top, bottom = Decimal(whole.numerator), Decimal(whole.denominator)
    return Fraction(context.divide(top, bottom))
