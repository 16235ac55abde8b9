"""`undertow reproduce`: figures and tables of the sources, with our numbers beside."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow._files import write_whole
from undertow.cli._input import load_studies
from undertow.cli._output import complain, guarded, print_json
from undertow.datasets import data_folder
from undertow.errors import PlanError

if TYPE_CHECKING:
    from undertow_studies import Check, Study, StudyResult
    from undertow_studies.study import Status


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME ...",
            help="'list', 'all', or names of studies.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for tables, figures and checks; made if missing."),
    ] = Path("reproduced"),
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the real data; default UNDERTOW_DATA, else stand-ins."
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, help="Repetitions of each simulated point.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all simulation.")] = 0,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Compute figures and tables of the sources anew, with our numbers beside theirs.

    Each study writes NAME.csv, NAME.svg, NAME.png and NAME.json, the checks: what was
    published, what comes out here, and whether they match.

    Example: [bold]undertow reproduce figure-6.3 --out reproduced[/bold]
    """
    with guarded():
        if names == ["list"]:
            _list(json_output=json_output)
            return
        chosen = _choose(names)
        folder = data_folder(data)
        if out.exists() and not out.is_dir():
            raise PlanError(f"out must be a folder, got the file {out}.")
        results, shelf = [], _module()
        for study in _progress(chosen):
            data_sets = shelf.study_data(study, folder)
            inputs = shelf.Inputs(data_sets, runs=runs, seed=seed)
            result = study.run(inputs)
            results.append((result, _write(result, out)))
        if json_output:
            print_json({"studies": [_record(r, files) for r, files in results]})
        else:
            for result, files in results:
                print_checks(result, files)
            if len(results) > 1:
                every = [check for result, _ in results for check in result.checks]
                typer.echo(f"\nall {len(results)} studies; {tally(every)}")


def _module() -> Any:
    return load_studies("studies", purpose="to reproduce the sources")


def _studies() -> Sequence[Study]:
    studies: Sequence[Study] = _module().STUDIES
    return studies


def _list(*, json_output: bool) -> None:
    if json_output:
        rows = [
            {"name": s.name, "title": s.title, "source": s.source, "needs": s.needs}
            for s in _studies()
        ]
        print_json({"studies": rows})
    else:
        print_studies(_studies())


def _choose(names: Sequence[str]) -> list[Study]:
    if list(names) == ["all"]:
        return list(_studies())
    by_name = {study.name: study for study in _studies()}
    for name in names:
        if name not in by_name:
            raise PlanError(
                f"NAME must be 'list', 'all' or a study, got {name!r}; "
                "run undertow reproduce list."
            )
    return [by_name[name] for name in dict.fromkeys(names)]


def _progress(studies: Sequence[Study]) -> Iterator[Study]:
    """Show a bar on standard error while studies run, on a terminal only."""
    if not sys.stderr.isatty():
        yield from studies
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("reproducing", total=len(studies))
        for study in studies:
            bar.update(task, description=study.name)
            yield study
            bar.advance(task)


def _write(result: StudyResult, folder: Path) -> list[Path]:
    """Write all files of one study, each whole; none if one cannot be prepared."""
    contents = {"csv": _csv_text(result).encode(), "json": _json_text(result).encode()}
    contents |= _pictures(result)
    _make_folder(folder)
    files = []
    for kind, content in contents.items():
        path = folder / f"{result.name}.{kind}"
        write_whole(path, content)
        files.append(path)
    return files


def _pictures(result: StudyResult) -> dict[str, bytes]:
    if not result.panels:
        return {}
    if find_spec("matplotlib") is None:
        complain(
            "matplotlib must be installed to draw the figures, got none; "
            "run pip install 'undertow[plot]'."
        )
        return {}
    figure = _module().plot_study(result)
    pictures = {}
    for kind in ("svg", "png"):
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, dpi=150)
        pictures[kind] = stream.getvalue()
    return pictures


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise PlanError(
            f"out must be a folder that can be made, got {folder}: {fault.strerror}."
        ) from None


def _json_text(result: StudyResult) -> str:
    record = {
        "study": result.name,
        "source": result.source,
        "data": result.data,
        "drawn": result.drawn,
        "checks": [check.to_dict() for check in result.checks],
    }
    return json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _csv_text(result: StudyResult) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.header)
    writer.writerows(result.rows)
    return text.getvalue()


def _record(result: StudyResult, files: Sequence[Path]) -> dict[str, Any]:
    return {
        "name": result.name,
        "source": result.source,
        "data": result.data,
        "drawn": result.drawn,
        "files": [str(path) for path in files],
        "checks": [check.to_dict() for check in result.checks],
    }


# Studies and their checks in the terminal.

_STYLE: dict[Status, str] = {
    "match": "green",
    "erratum": "yellow",
    "differs": "red",
    "stand-in": "cyan",
    "not published": "dim",
}


def print_studies(studies: Sequence[Study]) -> None:
    """Print one line a study: name, what it shows, where it is printed."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("name", "shows", "source"):
        table.add_column(heading, overflow="fold")
    for study in studies:
        table.add_row(study.name, Text(study.title), Text(study.source))
    Console().print(table)


def print_checks(result: StudyResult, files: Sequence[Path]) -> None:
    """Print the checks of one study, and where its files are."""
    console = Console()
    console.print(
        f"\n[bold]{result.name}[/bold]  {result.title} ({result.source}; "
        f"data: {result.data})",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("quantity", "published", "ours", "status", "note"):
        table.add_column(heading, overflow="fold")
    for check in result.checks:
        table.add_row(
            Text(check.quantity),
            _shown(check.published),
            _shown(check.ours),
            Text(f"{check.status} {check.erratum}".strip(), style=_STYLE[check.status]),
            Text(check.note),
        )
    console.print(table)
    if result.drawn:
        console.print(f"drawn: {result.drawn}", highlight=False, soft_wrap=True)
    console.print(tally(result.checks), highlight=False, soft_wrap=True)
    names = ", ".join(str(path) for path in files)
    console.print(f"files: {names}", highlight=False, soft_wrap=True, markup=False)


def tally(checks: Sequence[Check]) -> str:
    """Count the checks of each status; what was never published is no match."""
    counts = Counter(check.status for check in checks)
    return "checks: " + ", ".join(f"{counts[s]} {s}" for s in _STYLE if counts[s])


def _shown(value: float | str | None) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
