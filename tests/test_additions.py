"""A mechanism, model, theorem, granularity or command is added without another change.

Each test adds one of its kind from outside of the package and follows it to a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import undertow as ut
from support.command import invoke
from undertow.audit import Claim, MechanismSubject, audit_pair
from undertow.cli.app import COMMANDS
from undertow.correlation import Leakage, LeakageTheorem, Model, calibrate, leakage
from undertow.correlation.theorem import state_methods, stated_methods
from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.base import ChoiceMechanism
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.secure import read_source
from undertow.privacy.loss import Pure
from undertow.risk import Prior, Threat, advantage
from undertow.spaces.unit import name as catalogue
from undertow.spaces.unit.generic import Catalogued

# A mechanism: the survey of Warner with a fair die instead of a coin.


@dataclass(frozen=True)
class DieResponse(ChoiceMechanism):
    """Tell the truth, unless the die shows one of the last `lies` of its sides."""

    lies: int = 1
    sides: int = 6
    candidates = ("no", "yes")

    def pmf(self, given):
        lie = self.lies / self.sides
        return np.where(np.array(self.candidates) == given, 1 - lie, lie)

    def log_probabilities(self, given):
        return np.log(self.pmf(given))

    def pair_loss(self, first, second):
        odds = math.log((self.sides - self.lies) / self.lies)
        return Pure(0 if first == second else math.nextafter(odds, math.inf))

    def loss(self, metric):
        return self.pair_loss(*self.candidates)

    def sample(self, values, *, source=None):
        source, values = read_source(source), np.atleast_1d(values)
        drawn = source.uniform(self.sides, len(values))
        lie = drawn.values.astype(int) < self.lies
        index = (values == "yes") ^ lie
        return self._labels(index.astype(int), drawn)


def test_a_mechanism_has_a_risk_and_is_audited():
    die = DieResponse()
    assert die.pair_loss("no", "yes").epsilon == pytest.approx(math.log(5))
    assert isinstance(die.sample(["no", "yes"]), Draw)
    assert not die.sample(["no"]).simulated
    assert die.sample(["no"], source=SimulatedSource(1)).simulated
    found = advantage(die, Threat(Prior.uniform(["no", "yes"])))
    assert found.value == pytest.approx(5 / 6 - 1 / 2)
    subject = MechanismSubject(die, ["no", "yes"])
    kept = audit_pair(subject, Claim.pure("1.7"), trials=4000, seed=1)
    broken = audit_pair(subject, Claim.pure(1), trials=4000, seed=1)
    assert (kept.violated, broken.violated) == (False, True)


# A model with a theorem of its own, and a second, sharper theorem about it.


class ByPairs(LeakageTheorem):
    """Two records that are copies of each other leak twice."""

    name, source, published = "by-pairs", "group privacy of two", False

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(2 * epsilon, self.source, method=self.name)


class Sharper(ByPairs):
    """A theorem with a smaller value."""

    name, source = "sharper", "a sharper theorem"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(1.5 * epsilon, self.source, method=self.name)


class Couples(Model):
    """Ten couples, of whom both always say the same."""

    size, largest_group, summary = 20, 2, "ten couples"

    def methods(self):
        return stated_methods(self)

    def sample(self, count, *, rng):
        return np.repeat(rng.integers(2, size=(count, 10)), 2, axis=1)

    def sample_given(self, known, count, *, rng):
        drawn = self.sample(count, rng=rng)
        for record, value in known.items():
            drawn[:, [record, record ^ 1]] = value
        return drawn


@pytest.fixture
def statements(monkeypatch) -> None:
    """Forget what is stated in a test when it ends."""
    from undertow.correlation import theorem

    monkeypatch.setattr(theorem, "_STATED", dict(theorem._STATED))


@pytest.mark.usefixtures("statements")
def test_a_model_is_priced_and_its_noise_set():
    state_methods(Couples, ByPairs())
    assert leakage(Couples(), 0.5).value == 1.0
    assert calibrate(Couples(), 1.0).epsilon == pytest.approx(0.5)


@pytest.mark.usefixtures("statements")
def test_the_better_of_two_theorems_wins_and_the_other_is_named():
    state_methods(Couples, ByPairs(), Sharper())
    found = leakage(Couples(), 0.5)
    assert (found.value, found.method) == (0.75, "sharper")
    assert "by-pairs" in [other.name for other in found.alternatives]


# A granularity: the floor on which somebody is, one floor up or down.


@dataclass(frozen=True)
class Floor(Catalogued):
    """Neighbours are one floor apart."""

    kinds = ("finite",)
    name = "floor"

    def _adjacent(self, first, second, domain):
        return abs(first - second) == 1

    def _generate(self, database, domain):
        return self._scan(database, domain)

    def closed_form(self, first, second, domain):
        return None

    def invariants(self, domain):
        return ()


def test_releases_are_composed_at_a_granularity():
    house = ut.FiniteDomain([0, 1, 2, 3])
    assert Floor().distance(0, 3, house) == 3
    plan = ut.Plan(house)
    for name in ("lift", "stairs"):
        plan.add(
            ut.Release(
                name, ut.Pure(1), unit=Floor(), view=ut.Identity(), setting="common"
            )
        )
    assert plan.loss(Floor()).loss == ut.Pure(2)
    assert plan.loss(ut.Group(Floor(), 2)).loss == ut.Pure(4)
    assert plan.loss(ut.FreeLunch()).loss == ut.Pure(6)


def test_a_granularity_is_read_by_its_name(monkeypatch):
    monkeypatch.setitem(catalogue._PLAIN, "floor", Floor)
    assert ut.parse_granularity("group:2:floor") == ut.Group(Floor(), 2)
    with pytest.raises(ValueError, match="the nearest is 'floor'"):
        ut.parse_granularity("flor")


# A command: a module with a function of its name, and a line in the list of commands.

GREETING = """
import typer

def greet(name: str, loudly: bool = typer.Option(False)) -> None:
    \"\"\"Greet somebody.\"\"\"
    print(f"Good day, {name}" + "!" * loudly)
"""


def test_a_command_is_listed_and_runs(tmp_path, monkeypatch):
    (tmp_path / "greeting_of_a_test.py").write_text(GREETING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = ("greeting_of_a_test", "Greet somebody.")
    monkeypatch.setitem(COMMANDS, "greet", entry)
    found = invoke("greet", "Ada", "--loudly")
    assert (found.exit_code, found.stdout) == (0, "Good day, Ada!\n")
    assert "Greet somebody." in invoke("--help").stdout
    assert invoke("greet").exit_code == 2
