"""`undertow ledger`: the persistent budget of a data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from undertow._text import on_one_line
from undertow.cli.files import path_of
from undertow.cli.ledger_inputs import (
    opened,
    read_budgets,
    read_domain,
    release_source,
    required_ledger,
)
from undertow.cli.ledger_models import Records, read_models
from undertow.cli.ledger_tables import (
    budget_records,
    print_budgets,
    print_history,
    print_models,
    summary_record,
)
from undertow.cli.output import (
    EXIT_REFUSED,
    complain,
    guarded,
    print_json,
    working,
)
from undertow.errors import LedgerError

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger

__all__ = ["ledger"]

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
