"""`undertow demo`: a synthetic city, released in private, from table to report.

With an attack on its counts: where was a person, given noisy totals over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_positive
from undertow.cli._output import guarded, print_json, working
from undertow.errors import PlanError
from undertow.numeric.array import Floats
from undertow.results import Estimate
from undertow.risk.intervals import clopper_pearson

if TYPE_CHECKING:
    from undertow.release import ReleasePlan, ReleaseRun


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


# An attack on the counts of a city: where was a person, given noisy totals over time.
#
# The attacker knows everyone else, so that each released total is the target's own
# indicator plus noise. Someone who takes the slots for independent looks at one total;
# someone who knows how people move looks at all of them.


@dataclass(frozen=True, slots=True)
class SeriesAttack:
    """How well an attacker guesses one slot of a person.

    Parameters
    ----------
    epsilon : float
        Level of each released total.
    knows : {"movement", "one slot"}
        What the attacker uses.
    success : Estimate
        How often the guess is right.
    blind : float
        How often the best guess without the release is right.
    """

    epsilon: float
    knows: str
    success: Estimate
    blind: float

    @property
    def advantage(self) -> float:
        """How much more often the guess is right because of the release."""
        return self.success.value - self.blind

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "epsilon": self.epsilon,
            "knows": self.knows,
            "success": self.success.to_dict(),
            "blind": self.blind,
            "advantage": self.advantage,
        }


def attack_series(
    transition: Sequence[Sequence[float]],
    epsilon: float,
    *,
    slots: int,
    runs: int = 2000,
    knows: str = "movement",
    confidence: float = 0.95,
    seed: int,
) -> SeriesAttack:
    r"""Simulate people, release their indicators, and guess the middle slot.

    Parameters
    ----------
    transition : array_like of shape (2, 2)
        How people move; state 1 is counted.
    epsilon : float
        Each total carries discrete Laplace noise of scale :math:`1/\varepsilon`, drawn
        from a seeded generator: this is a simulation.
    slots : int
        Number of totals.
    runs : int, optional
        Number of people attacked.
    knows : {"movement", "one slot"}
        Whether the attacker uses all totals and the movement, or one total alone.
    confidence : float, optional
        Of the Clopper-Pearson interval of the success.
    seed : int
        Makes it repeatable.

    Notes
    -----
    Both attackers are Bayes-optimal for what they look at, for the start in the
    stationary law. O(runs x slots).

    Examples
    --------
    >>> moves = [[0.9, 0.1], [0.25, 0.75]]
    >>> alone = attack_series(moves, 1.0, slots=42, knows="one slot", seed=1)
    >>> better = attack_series(moves, 1.0, slots=42, seed=1)
    >>> alone.advantage < better.advantage
    True
    """
    level, n = check_positive(epsilon, "epsilon"), check_count(runs, "runs")
    length = check_count(slots, "slots")
    check_choice(knows, "knows", choices=("movement", "one slot"))
    P = np.asarray(transition, dtype=np.float64)
    rng = np.random.default_rng(check_count(seed, "seed", minimum=0))
    start = np.array([P[1, 0], P[0, 1]]) / (P[0, 1] + P[1, 0])
    truth = _walks(P, start, (n, length), rng)
    scores = _scores(truth + _noise(level, truth.shape, rng), level)
    target = length // 2
    if knows == "movement":
        posterior = posterior_states(P, start, scores)[:, target]
    else:
        posterior = np.log(start) + scores[:, target]
    right = int((posterior.argmax(axis=1) == truth[:, target]).sum())
    low, high = clopper_pearson(right, n, confidence=confidence)
    success = Estimate(right / n, low, high, confidence, n, seed, "Clopper-Pearson")
    return SeriesAttack(level, knows, success, float(start.max()))


def posterior_states(
    transition: ArrayLike, start: ArrayLike, scores: ArrayLike
) -> Floats:
    """Return what is known of each state of a chain after noisy looks at all of them.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.
    start : array_like of shape (s,)
        Law of the first state.
    scores : array_like of shape (n, T, s)
        Log-likelihood of what was seen at each time under each state.

    Returns
    -------
    ndarray of shape (n, T, s)
        Probabilities. The forward-backward recursion, scaled at each step.
    """
    P, first = np.asarray(transition, dtype=float), np.asarray(start, dtype=float)
    seen = np.asarray(scores, dtype=float)
    weights = np.exp(seen - seen.max(axis=2, keepdims=True))
    forward, backward = np.empty_like(weights), np.ones_like(weights)
    forward[:, 0] = _scaled(first * weights[:, 0])
    for t in range(1, weights.shape[1]):
        forward[:, t] = _scaled(forward[:, t - 1] @ P * weights[:, t])
    for t in range(weights.shape[1] - 2, -1, -1):
        backward[:, t] = _scaled((backward[:, t + 1] * weights[:, t + 1]) @ P.T)
    return _scaled(forward * backward)


def _scaled(rows: Floats) -> Floats:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _walks(
    P: Floats, start: Floats, shape: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.int64]:
    uniform = rng.random(shape)
    states = np.empty(shape, dtype=np.int64)
    states[:, 0] = uniform[:, 0] < start[1]
    for t in range(1, shape[1]):
        states[:, t] = uniform[:, t] < P[states[:, t - 1], 1]
    return states


def _noise(
    epsilon: float, shape: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw discrete Laplace noise as a difference of two geometric numbers."""
    stop = -np.expm1(-epsilon)
    return np.asarray(rng.geometric(stop, shape) - rng.geometric(stop, shape))


def _scores(seen: NDArray[np.int64], epsilon: float) -> Floats:
    """Return the log-likelihood of each noisy indicator under 0 and under 1."""
    return -epsilon * np.abs(seen[..., None] - np.arange(2.0))
