"""Every mechanism of the package keeps its claim, and no smaller one.

Each entry is audited twice, with seeded noise: at the loss that the mechanism states
for the pair, which must stand, and at that loss divided by 1.3, which must fall. At
confidence 0.999 a true claim falls by chance at most once in a thousand seeds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

import undertow.mechanisms
import undertow.mechanisms.graph
import undertow.mechanisms.local
from undertow.audit.claim import Claim
from undertow.audit.local import audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.result import AuditResult
from undertow.audit.subject import MechanismSubject
from undertow.mechanisms import (
    ClampedMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Law,
    Mechanism,
    NoisyMax,
    RandomizedResponse,
    TruncatedMechanism,
)
from undertow.mechanisms.graph import GraphExponential
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    UnaryEncoding,
)

UNDERSTATED = Fraction(13, 10)
CONFIDENCE, SEED = 0.999, 20_261


@dataclass(frozen=True)
class Entry:
    """One mechanism, how it is audited, and its claim divided by a factor."""

    mechanism: Any
    claim: Callable[[Fraction], Claim]
    trials: int
    answers: tuple[Any, Any] | None = None

    def audit(self, factor: Fraction) -> AuditResult:
        common = {"trials": self.trials, "confidence": CONFIDENCE, "seed": SEED}
        claim = self.claim(factor)
        if self.answers is None:
            return audit_local(self.mechanism, claim, **common)
        subject = MechanismSubject(self.mechanism, self.answers)
        return audit_pair(subject, claim, **common)


def local(protocol: LocalProtocol, trials: int = 20_000) -> Entry:
    (epsilon,) = protocol.loss().exact_parameters()
    return Entry(
        protocol,
        lambda factor: Claim.pure(Fraction(epsilon) / factor, adjacency="local"),
        trials,
    )


def pure(mechanism: Mechanism, answers: Any, trials: int = 40_000) -> Entry:
    (epsilon,) = mechanism.pair_loss(*answers).exact_parameters()
    return Entry(
        mechanism,
        lambda factor: Claim.pure(Fraction(epsilon) / factor),
        trials,
        answers,
    )


def gaussian(sigma: int) -> Entry:
    return Entry(
        GaussianMechanism(sigma),
        lambda factor: Claim.gaussian(1 / (factor * sigma)),
        60_000,
        (0.0, 1.0),
    )


def discrete_gaussian(sigma: int, epsilon: Fraction) -> Entry:
    mechanism = DiscreteGaussianMechanism(sigma)
    _, delta = mechanism.approx_loss(epsilon).exact_parameters()
    return Entry(
        mechanism,
        lambda factor: Claim.approx(epsilon / factor, delta),
        80_000,
        (0, 1),
    )


SPREAD = ([1, 0, 0, 0], [0, 1, 1, 1])
RING = [[i, (i + 1) % 6] for i in range(6)]

ENTRIES: dict[str, Entry] = {
    "laplace": pure(LaplaceMechanism(Fraction(1, 2)), (0.0, 1.0)),
    "gaussian": gaussian(1),
    "discrete-laplace": pure(DiscreteLaplaceMechanism(Fraction(1, 2)), (0, 1)),
    "discrete-gaussian": discrete_gaussian(1, Fraction(3, 2)),
    "clamped-laplace": pure(ClampedMechanism(LaplaceMechanism(1), 0, 3), (0.0, 2.0)),
    "clamped-gaussian": pure(ClampedMechanism(GaussianMechanism(1), 0, 2), (0.0, 1.0)),
    "truncated-laplace": pure(
        TruncatedMechanism(LaplaceMechanism(1), 0, 3), (0.0, 2.0), 160_000
    ),
    "truncated-gaussian": pure(
        TruncatedMechanism(GaussianMechanism(1), 0, 2), (0.0, 2.0), 120_000
    ),
    "randomized-response": pure(RandomizedResponse(4, 2), (0, 3), 20_000),
    "exponential": pure(ExponentialMechanism(4, epsilon=3), SPREAD, 10_000),
    "noisy-max-exponential": pure(NoisyMax(4, epsilon=2), SPREAD, 10_000),
    "noisy-max-gumbel": pure(NoisyMax(4, epsilon=3, noise="gumbel"), SPREAD, 10_000),
    "noisy-max-laplace": pure(
        NoisyMax(2, epsilon=3, noise="laplace"), ([1, 0], [0, 1]), 8_000
    ),
    "graph-exponential": pure(
        GraphExponential.from_graph(RING, epsilon=4, directed=False), (0, 3)
    ),
    "grr": local(GeneralizedResponse(8, 2)),
    "unary": local(UnaryEncoding(8, keep="0.75", noise="0.25")),
    "sue": local(SymmetricUnary(8, 2)),
    "oue": local(OptimizedUnary(8, 2)),
    "subset": local(SubsetSelection(8, 1)),
    "hashing": local(LocalHashing(8, 2, buckets=5)),
    "blh": local(BinaryHashing(8, 1)),
    "olh": local(OptimizedHashing(8, 2)),
    "she": local(SummationHistogram(8, 2), 40_000),
    "the": local(ThresholdHistogram(8, 2)),
}


def shipped() -> set[type]:
    """Return every class that adds noise and can be built."""
    packages = (
        undertow.mechanisms,
        undertow.mechanisms.graph,
        undertow.mechanisms.local,
    )
    named = [getattr(package, name) for package in packages for name in package.__all__]
    return {
        item
        for item in named
        if inspect.isclass(item)
        and issubclass(item, Law)
        and not inspect.isabstract(item)
    }


def test_every_mechanism_that_is_shipped_is_audited():
    audited = {type(entry.mechanism) for entry in ENTRIES.values()}
    assert audited == shipped()


def test_a_mechanism_without_an_entry_would_be_missed(monkeypatch):
    class Unaudited(GeneralizedResponse):
        __slots__ = ()

    names = [*undertow.mechanisms.local.__all__, "Unaudited"]
    monkeypatch.setattr(undertow.mechanisms.local, "__all__", names)
    monkeypatch.setattr(
        undertow.mechanisms.local, "Unaudited", Unaudited, raising=False
    )
    assert shipped() - {type(entry.mechanism) for entry in ENTRIES.values()} == {
        Unaudited
    }


@pytest.mark.parametrize("name", ENTRIES)
def test_a_mechanism_keeps_the_loss_it_states(name):
    result = ENTRIES[name].audit(Fraction(1))
    assert result.verdict == "not refuted"
    assert result.witness is None


@pytest.mark.parametrize("name", ENTRIES)
def test_a_loss_understated_by_a_factor_of_13_tenths_is_refuted(name):
    result = ENTRIES[name].audit(UNDERSTATED)
    assert result.verdict == "violated", result.certified
    assert result.witness is not None
