"""Properties of calibration: round trip, never unsafe, monotone in the target."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.risk.calibration import calibrate
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, worst_prior
from undertow.risk.families import FAMILIES, gaussian, grr, laplace
from undertow.risk.families.local import UnaryFamily
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

names = st.sampled_from(["grr", "sue", "oue", "ss", "blh", "olh", "she", "the"])
targets = st.floats(1e-8, 1.2)
sizes = st.integers(2, 12)
views = st.sampled_from([Threat, Threat.membership])
weights = st.lists(st.floats(0.01, 1), min_size=2, max_size=8)


def deployed(found):
    return next(iter(found.structure.values())) if found.structure else None


def prior_of(masses):
    pmf = np.array(masses)
    return Prior(len(pmf), pmf / pmf.sum())


@given(names, weights, targets, views)
@settings(max_examples=80, deadline=None)
def test_a_calibrated_parameter_is_never_unsafe(name, masses, target, view):
    threat = view(prior_of(masses))
    family = FAMILIES[name](len(masses))
    found = calibrate(family, threat, advantage=target, alternatives=False)
    assert found.achieves.value <= max(target, 1e-300)
    if found.binding:
        risk = family.risk(found.value, threat, structure=deployed(found))
        assert risk.value <= target
    else:
        assert family.risk(5e3 if name != "olh" else 20.0, threat).value <= (
            target * (1 + 1e-9)
        )


@given(
    st.sampled_from(["grr", "sue", "oue", "the"]), weights, st.floats(0.01, 60), views
)
@settings(max_examples=60, deadline=None)
def test_calibration_inverts_the_risk(name, masses, level, view):
    threat = view(prior_of(masses))
    family = FAMILIES[name](len(masses))
    risk = family.risk(level, threat).value
    found = calibrate(family, threat, advantage=risk, alternatives=False)
    back = family.risk(found.value, threat).value if found.binding else risk
    assert back == pytest.approx(risk, rel=1e-9)
    if level < 8:
        assert found.value == pytest.approx(level, rel=1e-6)


@given(names, sizes, st.lists(targets, min_size=2, max_size=6), views)
@settings(max_examples=60, deadline=None)
def test_a_larger_target_never_asks_for_a_smaller_level(name, size, wanted, view):
    table = calibrate(
        FAMILIES[name](size), view(Prior.uniform(size)), advantage=sorted(wanted)
    )
    rising = table.values[1:] >= table.values[:-1] * (1 - 1e-8)
    assert rising.all()
    assert (table.achieved <= table.targets).all()


@given(st.lists(st.integers(0, 40), min_size=2, max_size=9, unique=True), targets)
@settings(max_examples=80, deadline=None)
def test_noise_on_numbers_is_calibrated_both_ways(answers, target):
    threat = Threat(Prior.uniform(answers))
    for family in (laplace(answers), laplace(answers, parameter="scale")):
        found = calibrate(family, threat, advantage=target, alternatives=False)
        if found.binding:
            risk = family.risk(found.value, threat).value
            assert target * (1 - 1e-9) <= risk <= target
    found = calibrate(gaussian(answers), threat, advantage=target, alternatives=False)
    if found.binding:
        assert gaussian(answers).risk(found.value, threat).value <= target


@given(weights, st.floats(0.1, 4), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_response_under_any_threshold_is_its_table(masses, epsilon, eta):
    prior = prior_of(masses)
    threat = Threat(prior, Success.within("absolute", eta))
    table = 1.0 + (np.exp(epsilon) - 1.0) * np.eye(len(masses))
    channel = Channel(table / table.sum(axis=1, keepdims=True))
    assert grr(len(masses)).risk(epsilon, threat).value == pytest.approx(
        advantage(channel, threat).value, abs=1e-12
    )


@given(
    st.lists(st.floats(0.05, 1), min_size=2, max_size=6),
    st.floats(0.05, 0.9),
    st.floats(0.01, 0.95),
)
@settings(max_examples=60, deadline=None)
def test_lowering_the_ones_and_raising_the_noise_never_raises_the_risk(
    masses, share, noise
):
    threat = Threat(prior_of(masses), Success.within("absolute", 1))

    def risk(p, q):
        family = UnaryFamily(
            len(masses),
            name="bits",
            protocol=lambda m, e: None,
            bits=lambda e: (np.full(e.shape, p - q), np.full(e.shape, q)),
            limit=1.0,
        )
        return family.risk(1.0, threat).value

    q = noise * 0.5
    p = q + share * (1 - q)
    worse = risk(p, q)
    assert risk(p - 0.3 * (p - q), q) <= worse + 1e-12
    assert risk(p, q + 0.3 * (p - q)) <= worse + 1e-12


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_a_worst_prior_lies_between_what_it_tried_and_its_cap(records, outputs, seed):
    rng = np.random.default_rng(seed)
    table = Channel(rng.dirichlet(np.full(outputs, 0.7), size=records))
    found = worst_prior(table, records, starts=2, rng=seed)
    assert max(found.two_point, found.uniform) <= found.value <= found.cap
