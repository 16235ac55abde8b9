"""`undertow demo`: a synthetic city, released in private, from table to report."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undertow.cli.output import guarded, print_json, working
from undertow.errors import PlanError

if TYPE_CHECKING:
    from undertow.release import ReleasePlan, ReleaseRun
    from undertow.studies.city_attack import SeriesAttack

__all__ = ["demo"]

_PEOPLE, _PANEL, _PANEL_SEED = 5000, 2000, 20260216
_RUNS, _ATTACK_SEED = 20_000, 20260303
_SLOTS = 42
_FILES = ("city.toml", "city.csv", "panel.csv", "city.ledger", "report.html")


def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for everything; made if it is not there.")
    ] = Path("demo"),
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Release a synthetic city in private: plan, charge, attack, report.

    The city and the attack are the same on every machine; the noise of the release is
    not. Run it again in the same folder, and the stored output comes back.

    Example: [bold]undertow demo --output demo[/bold]
    """
    with guarded():
        with working("building the city"):
            events = _build(output)
        with working("planning"):
            plan, plain = _plans(output / "city.toml")
        with working("releasing"):
            done = _release(output)
        with working("attacking"):
            attacks = _attack(plan, plain)
        with working("writing the report"):
            report = _report(done, output)
        left = _left(output)
        record = _record(events, plan, plain, done, attacks, left)
        if json_output:
            print_json({**record, "report": str(report)})
        else:
            typer.echo(_story(record, output, report))


def _build(folder: Path) -> int:
    """Write the city, the public panel and the release file; return the records."""
    from undertow.datasets import synthetic_city, write_city

    text = (resources.files("undertow.cli") / "releases" / "city.toml").read_text(
        "utf-8"
    )
    _open_folder(folder, text)
    city = synthetic_city(_PEOPLE)
    write_city(city, folder / "city.csv")
    panel = synthetic_city(_PANEL, seed=_PANEL_SEED)
    write_city(panel, folder / "panel.csv", complete=True)
    return city.events


def _open_folder(folder: Path, text: str) -> None:
    """Make the folder and its release file, which tells it from folders of others."""
    mark, file = text.splitlines()[0], folder / "city.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = file.is_file() and mark in file.read_text("utf-8", "replace")
        taken = [name for name in _FILES if (folder / name).exists()]
        if taken and not ours:
            raise PlanError(
                f"output must be a new folder or that of an earlier demo, got {folder} "
                f"with a {taken[0]} of its own; name another one with --output."
            )
        file.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise PlanError(
            f"output must be a folder that can be written, got {folder}: "
            f"{fault.strerror}."
        ) from None


def _plans(path: Path) -> tuple[ReleasePlan, ReleasePlan]:
    """Return the plan of the file, and that of plain DP with the same ε."""
    import tomllib

    from undertow.release import load, plan_release, release_from_mapping

    mapping = tomllib.loads(path.read_text(encoding="utf-8"))
    del mapping["promise"]["correlation"]
    return load(path).plan(), plan_release(release_from_mapping(mapping))


def _release(folder: Path) -> ReleaseRun:
    from undertow.release import load
    from undertow.release.run._ledger_place import has_ledger

    city, place = load(folder / "city.toml"), folder / "city.ledger"
    # Its people are in no other table, so that it needs no other ledger's budget.
    if (
        not has_ledger(str(place))
        and not (folder / "tables" / "manifest.json").exists()
    ):
        city.create_ledger(place).close()
    return city.run(command="undertow demo")


def _attack(plan: ReleasePlan, plain: ReleasePlan) -> dict[str, SeriesAttack]:
    """Attack the counts of both versions with what is known of movement."""
    from undertow.datasets import CITY_TRANSITION
    from undertow.studies.city_attack import attack_series

    found = {}
    for name, version in (("plain", plain), ("calibrated", plan)):
        level = float(1 / version.queries[0].share.noise.parameter)
        found[name] = attack_series(
            CITY_TRANSITION, level, slots=_SLOTS, runs=_RUNS, seed=_ATTACK_SEED
        )
    return found


def _report(done: ReleaseRun, folder: Path) -> Path:
    from undertow.report import ReleaseReport

    charge = done.charge
    entry = {"number": charge.number, "key": charge.key, "hash": charge.hash}
    path = folder / "report.html"
    ReleaseReport({**done.record, "charge": entry}).write(path)
    return path


def _left(folder: Path) -> dict[str, Any]:
    """Return budget, spent and left of the ledger of the demonstration."""
    from undertow.ledger import BudgetLedger

    with BudgetLedger.open(folder / "city.ledger") as ledger:
        (granularity,) = ledger.budgets
        faults = ledger.verify()
        if faults:
            raise PlanError(
                f"{ledger.name} must be whole, got an edited one; remove the folder "
                "and start again."
            )
        return {
            "granularity": granularity.name,
            "budget": ledger.budgets[granularity].to_dict(),
            "left": ledger.remaining(granularity).to_dict(),
            "entries": ledger.head.count,
        }


def _record(
    events: int,
    plan: ReleasePlan,
    plain: ReleasePlan,
    done: ReleaseRun,
    attacks: dict[str, SeriesAttack],
    left: dict[str, Any],
) -> dict[str, Any]:
    from undertow.correlation import leakage

    model = plan.promise.model
    assert model is not None
    level = float(plain.promise.total.to_dict()["epsilon"])
    return {
        "events": events,
        "people": _PEOPLE,
        "plain": plain.to_dict(),
        "calibrated": plan.to_dict(),
        "plain_leakage": leakage(model, level).value,
        "attacks": {name: attack.to_dict() for name, attack in attacks.items()},
        "first": done.answers[0]["rows"][0],
        "ledger": left,
        "story": done.story,
    }


def _story(record: dict[str, Any], folder: Path, report: Path) -> str:
    from undertow.report._release_words import shown_up

    plain, safe = record["plain"], record["calibrated"]
    spent = shown_up(safe["costs"]["event"]["epsilon"])
    hit = {name: found["success"]["value"] for name, found in record["attacks"].items()}
    day, slot, estimate, low, high = record["first"]
    wide, wider = (version["queries"][0]["half_width"] for version in (plain, safe))
    left, entries = record["ledger"]["left"]["epsilon"], record["ledger"]["entries"]
    lines = [
        f"City        {record['events']:,} records of {record['people']:,} people in "
        f"40 zones over two weeks: {folder}/city.csv (synthetic).",
        "Promise     ε = 1 for where somebody was in any one third of a day: on which "
        "bank of the river is guessed right in at most 73.2 of 100 cases.",
        f"Plain DP    42 counts of the people on the north bank, ± {wide:g} people, "
        "keep that promise if records are independent.",
        "Undertow    They are not: people move slowly. Whoever knows how they move "
        f"learns up to ε = {shown_up(record['plain_leakage'])} from these counts.",
        f"Attack      on the plain counts: right in {100 * hit['plain']:.0f} of 100 "
        "cases.",
        f"Calibrated  ε = {spent} keeps the promise "
        f"against everyone who knows that: ± {wider:g} people of about 2,400.",
        f"Attack      on the calibrated counts: right in {100 * hit['calibrated']:.0f} "
        "of 100 cases; blind guessing, in 50.",
        f"Released    through DuckDB, {folder}/tables: on {day} from {8 * slot:02d}:00 "
        f"{estimate:,} people, {low:,} to {high:,} with 95 % confidence.",
        f"Ledger      {record['story']} Left for others: ε = {round(left, 6):g}; its "
        f"{entries} entries are whole.",
        f"Report      {report}: open it in a browser.",
    ]
    return "\n".join(lines)
