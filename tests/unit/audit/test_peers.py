from __future__ import annotations

import functools

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import ClientSubject, DiffprivlibSubject, OpenDPSubject
from undertow.errors import AuditError


class FakeLaplace:
    """Has the one method of a diffprivlib mechanism."""

    def __init__(self, epsilon, seed):
        self.scale, self.rng = 1 / epsilon, np.random.default_rng(seed)

    def randomise(self, value):
        noise = self.rng.laplace(scale=self.scale)
        return round((value + noise) * 2.0**24) / 2.0**24


def test_a_mechanism_with_randomise_is_audited():
    verdicts = [
        audit_pair(
            DiffprivlibSubject(FakeLaplace(1.0, 3), [0.0, 1.0]),
            Claim.pure(level),
            trials=30_000,
        ).verdict
        for level in (0.75, 1.0)
    ]
    assert verdicts == ["violated", "not refuted"]


def test_a_mechanism_without_randomise_is_refused():
    with pytest.raises(AuditError, match=r"method randomise\(value\), got int"):
        DiffprivlibSubject(3, [0, 1])


def test_peers_are_not_copied_to_other_processes():
    subject = DiffprivlibSubject(FakeLaplace(1.0, 3), [0.0, 1.0])
    with pytest.raises(AuditError, match="workers must be 1 for diffprivlib FakeLap"):
        audit_pair(subject, Claim.pure(1), workers=2)


def respond(value, k, epsilon, rng):
    keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    if rng.random() < keep:
        return value
    return int((value + rng.integers(1, k)) % k)


def test_a_client_function_is_audited():
    client = functools.partial(respond, k=3, epsilon=1.0, rng=np.random.default_rng(2))
    subject = ClientSubject(client, [0, 1, 2])
    found = audit_pair(subject, Claim.pure(0.7), trials=40_000)
    assert found.verdict == "violated"
    assert 0.7 < found.certified < 1.0
    assert found.seed is None


def test_pairs_of_a_seed_and_a_bucket_are_vectors():
    subject = ClientSubject(lambda value: (value, 17), [0, 1], library="numpy")
    assert subject.sample(1, 3, rng=np.random.default_rng(1)).shape == (3, 2)
    assert subject.version == np.__version__


def test_a_library_that_is_not_installed_has_no_version():
    assert ClientSubject(abs, [0, 1], library="no-such-library").version == ""
    with pytest.raises(TypeError, match="must be callable, got int"):
        ClientSubject(3, [0, 1])


def test_what_is_no_measurement_is_refused():
    with pytest.raises(TypeError, match="must be one of OpenDP, got int"):
        OpenDPSubject(3, [0, 1])


@pytest.fixture(scope="module")
def dp():
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib")
    return prelude


@pytest.mark.extra
def test_a_measurement_of_opendp_is_audited(dp):
    subject = OpenDPSubject(dp.m.make_randomized_response_bool(0.75), [False, True])
    assert subject.stated(1) == pytest.approx(np.log(3))
    # True with probability about 1 - 1e-9: the margin is six standard errors.
    found = audit_pair(subject, Claim.pure(0.7), trials=6_000)
    assert found.verdict == "violated"
    # One run in a hundred may refute a true claim; at this distance none does.
    assert audit_pair(subject, Claim.pure(1.5), trials=6_000).verdict == "not refuted"
    assert found.subject.startswith("OpenDP measurement 0.")


@pytest.mark.extra
def test_an_error_of_opendp_is_one_sentence(dp):
    subject = OpenDPSubject(dp.m.make_randomized_response_bool(0.75), ["a", "b"])
    with pytest.raises(AuditError, match="OpenDP measurement must not raise, got"):
        subject.sample(0, 1, rng=np.random.default_rng(1))


def floats(dp):
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


@pytest.mark.extra
def test_a_pure_measurement_states_its_epsilon(dp):
    subject = OpenDPSubject(dp.m.make_laplace(*floats(dp), scale=2.0), [0.0, 1.0])
    assert subject.stated(1.0) == pytest.approx(0.5)


@pytest.mark.extra
@pytest.mark.parametrize(
    ("measure", "turned"),
    [
        ("ZeroConcentratedDivergence", lambda dp, noisy: noisy),
        ("SmoothedMaxDivergence", lambda dp, noisy: dp.c.make_zCDP_to_approxDP(noisy)),
        (
            r"Approximate\(MaxDivergence\)",
            lambda dp, noisy: dp.c.make_fix_delta(
                dp.c.make_zCDP_to_approxDP(noisy), delta=1e-6
            ),
        ),
    ],
)
def test_a_loss_that_is_no_epsilon_is_not_stated_as_one(dp, measure, turned):
    noisy = turned(dp, dp.m.make_gaussian(*floats(dp), scale=1.0))
    subject = OpenDPSubject(noisy, [0.0, 1.0])
    with pytest.raises(AuditError, match=rf"pure DP \(MaxDivergence\), got {measure};"):
        subject.stated(1.0)


@pytest.mark.extra
def test_a_distance_without_a_loss_is_refused_in_one_line(dp):
    subject = OpenDPSubject(dp.m.make_laplace(*floats(dp), scale=1.0), [0.0, 1.0])
    with pytest.raises(AuditError, match=r"distance must be .*, got -1\.0: ") as caught:
        subject.stated(-1.0)
    assert "\n" not in str(caught.value)


class FakeMeasurement:
    """Has what is asked of a measurement of OpenDP, and a measure of its own."""

    def __init__(self, measure):
        self.output_measure = measure

    def __call__(self, value):
        return value

    def map(self, distance):
        if distance < 0:
            raise ValueError("first line\nsecond line")
        return distance


def test_only_an_epsilon_is_stated():
    assert OpenDPSubject(FakeMeasurement("MaxDivergence"), [0, 1]).stated(0.5) == 0.5
    with pytest.raises(AuditError, match=r"got RenyiDivergence; state .*Claim\.approx"):
        OpenDPSubject(FakeMeasurement("RenyiDivergence"), [0, 1]).stated(0.5)
    with pytest.raises(AuditError, match=r"got -1: ValueError: first line\.$"):
        OpenDPSubject(FakeMeasurement("MaxDivergence"), [0, 1]).stated(-1)
