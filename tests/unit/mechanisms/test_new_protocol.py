"""A local protocol is one file and one entry: here is one, and all that then knows it.

The two places to touch for a new protocol:

1. a file with its class, a :class:`~undertow.mechanisms.local.LocalProtocol` that
   states its law (`log_density`, `sample`), its loss, what a report supports, and what
   the best attack gains (`advantage_bound`); with `listed_outputs` it has a table;
2. an entry of :data:`undertow.mechanisms.local.PROTOCOLS` with its name.

Nothing below edits a family, an audit, the command line or a picture.
"""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from support.command import invoke
from undertow.audit import (
    Claim,
    LawSubject,
    audit_local,
    audit_pair,
    estimate_protocol_level,
)
from undertow.audit.inversion import family_success
from undertow.cli._audit_option import protocol_title
from undertow.mechanisms import Law, SimulatedSource
from undertow.mechanisms.local import (
    PROTOCOLS,
    GeneralizedResponse,
    NamedProtocol,
    estimate_frequencies,
    protocol_name,
)
from undertow.risk import Channel, Prior, ProtocolSampler, Success, Threat, advantage
from undertow.risk.attacks import OptimalGuess
from undertow.risk.calibration import calibrate
from undertow.risk.families import FAMILIES, family

MODULE = '''
"""Half of the clients send nothing, the others answer by randomised response."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from undertow.mechanisms.local import GeneralizedResponse, LocalProtocol
from undertow.mechanisms.local.base import advantage_up, disagreement, read_knowledge
from undertow.mechanisms.noise.draw import Draw


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SilentHalf(LocalProtocol):
    name: ClassVar[str] = "HUSH"
    categories: int
    epsilon: Fraction
    inner: GeneralizedResponse

    def __init__(self, categories, epsilon):
        inner = GeneralizedResponse(categories, epsilon)
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "categories", inner.categories)
        object.__setattr__(self, "epsilon", inner.epsilon)

    @property
    def keep(self):
        return self.inner.keep / 2

    @property
    def noise(self):
        return self.inner.noise / 2

    def loss(self):
        return self.inner.loss()

    def total_variation(self):
        return advantage_up(float(self.keep - self.noise))

    def attack_success(self):
        return advantage_up(float(self.keep + Fraction(1, 2 * self.categories)))

    def advantage_bound(self, prior=None, *, knowledge="none"):
        read_knowledge(knowledge)
        value = self.total_variation() * disagreement(prior, self.categories)
        return self._bound(advantage_up(value), "half of randomised response")

    def log_density(self, reports, given):
        said = np.asarray(reports)
        chance = np.where(said == given, float(self.keep), float(self.noise))
        return np.log(np.where(said < 0, 0.5, chance))

    def sample(self, values, *, source=None):
        told = self.inner.sample(values, source=source)
        silent = source.uniform(2, len(told.values)).values == 0
        return Draw(np.where(silent, -1, told.values), told.simulated, told.source)

    def support(self, reports):
        return np.asarray(reports)[:, None] == np.arange(self.categories)

    def listed_outputs(self):
        return np.arange(-1, self.categories)
'''


@pytest.fixture
def hush(tmp_path, monkeypatch):
    """Return the class of a protocol from a file of its own, with its entry."""
    path = tmp_path / "silent_half.py"
    path.write_text(MODULE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("silent_half", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(importlib.import_module("sys").modules, spec.name, module)
    spec.loader.exec_module(module)
    entry = NamedProtocol(module.SilentHalf, "randomized response of every other")
    monkeypatch.setitem(PROTOCOLS, "hush", entry)
    return module.SilentHalf


def test_it_is_a_law_with_a_table(hush):
    protocol = hush(3, 1)
    assert isinstance(protocol, Law)
    assert (protocol.output_kind, protocol.listed_inputs) == ("finite", range(3))
    table = protocol.table(protocol.listed_inputs)
    assert table.shape == (3, 4)
    assert table.sum(axis=1) == pytest.approx(np.ones(3))
    inner = GeneralizedResponse(3, 1)
    assert table[:, 1:] * 2 == pytest.approx(inner.table(inner.listed_inputs))


@pytest.mark.parametrize("aux", ["none", "full"])
def test_its_advantage_is_half_that_of_the_protocol_inside(hush, aux):
    prior = Prior(4, [0.4, 0.3, 0.2, 0.1])
    threat = Threat(prior) if aux == "none" else Threat.membership(prior)
    half = advantage(GeneralizedResponse(4, 1), threat).value / 2
    assert advantage(hush(4, 1), threat).value == pytest.approx(half, rel=1e-9)
    channel = Channel.from_mechanism(hush(4, 1), range(4))
    assert advantage(channel, threat).value == pytest.approx(half, rel=1e-9)
    assert family("hush", 4).risk(1.0, threat).value == pytest.approx(half, rel=1e-9)


def test_other_rules_of_success_are_read_off_its_table(hush):
    threat = Threat(Prior.uniform(5), Success.within("absolute", 1))
    half = advantage(GeneralizedResponse(5, 1), threat).value / 2
    found = family("hush", 5).risk(1.0, threat)
    assert found.tight
    assert found.value == pytest.approx(half, rel=1e-9)


def test_it_is_calibrated_in_units_of_risk(hush):
    threat = Threat(Prior.uniform(5))
    found = calibrate(family("hush", 5), threat, advantage=0.2)
    inner = calibrate(family("grr", 5), threat, advantage=0.4)
    assert found.value == pytest.approx(inner.value, rel=1e-6)
    assert found.value <= inner.value


def test_its_attack_and_its_frequencies_need_nothing_else(hush):
    protocol, threat = hush(3, 3), Threat(Prior.uniform(3))
    reports = ProtocolSampler(protocol).sample(2, 2000, rng=np.random.default_rng(1))
    guesses = OptimalGuess(protocol, threat).guess(
        reports, 0, rng=np.random.default_rng(2)
    )
    assert (guesses[reports >= 0] == reports[reports >= 0]).all()
    assert estimate_frequencies(protocol, reports).frequencies[2] > 0.8


def test_an_audit_finds_its_level_and_not_a_smaller_one(hush):
    protocol = hush(5, 1)
    kept = audit_local(protocol, Claim.pure(1), trials=40_000, seed=1)
    broken = audit_local(protocol, Claim.pure("0.5"), trials=40_000, seed=1)
    assert (kept.verdict, broken.verdict) == ("not refuted", "violated")
    assert 0.5 < broken.epsilon_certified < 1
    pair = audit_pair(
        LawSubject(protocol), Claim.pure("0.5"), pairs=[(0, 1)], trials=40_000, seed=1
    )
    assert pair.verdict == "violated"


def test_its_level_is_read_off_the_success_of_its_attack(hush):
    protocol = hush(10, 2)
    assert protocol_name(protocol) == "hush"
    right = round(100_000 * family_success("hush", 2.0, categories=10))
    found = estimate_protocol_level(protocol, right, 100_000)
    assert found.family == "hush"
    assert found.value == pytest.approx(2, abs=0.01)


def test_the_command_line_takes_its_name(hush):
    assert "hush" in FAMILIES
    words = ("--mechanism", "hush", "--categories", 5, "--epsilon", 1, "--json")
    told = json.loads(invoke("risk", "advantage", *words).stdout)
    half = advantage(GeneralizedResponse(5, 1), Threat(Prior.uniform(5))).value / 2
    assert told["advantage"] == pytest.approx(half, rel=1e-9)
    audit = invoke(
        *("audit", "ldp", "--protocol=hush", "--categories=5", "--epsilon=1"),
        *("--claim=1", "--trials=20000", "--seed=1"),
    )
    assert audit.exit_code == 0, (audit.stderr, audit.exception)
    assert "The claim is not refuted" in audit.stdout
    title = protocol_title("hush", hush(5, 1))
    assert title == "HUSH (randomized response of every other), 5 values, ε = 1"


def test_without_its_entry_nobody_knows_it():
    assert "hush" not in FAMILIES
    refused = invoke("risk", "advantage", "--mechanism", "hush", "--categories", 5)
    assert refused.exit_code == 2
    assert "mechanism must be one of grr, sue, oue, ss, blh, olh" in refused.stderr


def test_the_own_protocols_are_all_laws_under_their_names():
    for name, entry in PROTOCOLS.items():
        protocol = entry.at(4, 1)
        assert isinstance(protocol, Law)
        assert protocol_name(protocol) == name
        draw = protocol.simulate(2, 3, rng=np.random.default_rng(0))
        same = protocol.sample([2] * 3, source=SimulatedSource(0)).values
        assert len(draw) == 3
        assert np.array_equal(draw, same)
        assert protocol.log_densities(draw, range(4)).shape == (3, 4)
