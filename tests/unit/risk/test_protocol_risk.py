"""The risk of a local protocol, asked of the protocol itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalHashing,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    UnaryEncoding,
)
from undertow.risk import Channel, Knowledge, Prior, Success, Threat, advantage

SKEW = Prior(4, [0.4, 0.3, 0.2, 0.1])
THREATS = {
    "exact": Threat(SKEW),
    "known": Threat.membership(SKEW),
    "labels": Threat(SKEW, knowledge=Knowledge.attributes(lambda x: x % 2)),
    "within": Threat(SKEW, Success.within("absolute", 1)),
    "attribute": Threat(SKEW, Success.attribute(lambda x: x // 2)),
}


def bits_table(protocol):
    """Tabulate a protocol of independent bits."""
    outputs = np.array(list(product((0, 1), repeat=4)))
    p, q = float(protocol.p), float(protocol.q)
    rows = []
    for truth in range(4):
        one = np.where(np.arange(4) == truth, p, q)
        rows.append(np.where(outputs, one, 1 - one).prod(axis=1))
    return Channel(rows)


@pytest.mark.parametrize("kind", THREATS)
@pytest.mark.parametrize(
    "protocol",
    [
        SymmetricUnary(4, 1),
        OptimizedUnary(4, 1),
        ThresholdHistogram(4, 1),
        ThresholdHistogram(4, 1, threshold=0.7),
        UnaryEncoding(4, keep="0.7", noise="0.2"),
    ],
    ids=["sue", "oue", "the", "the at 0.7", "ue"],
)
def test_unary_protocols_agree_with_the_table_of_their_bits(protocol, kind):
    threat = THREATS[kind]
    found = advantage(protocol, threat)
    truth = advantage(bits_table(protocol), threat).value
    if found.tight:
        assert found.value == pytest.approx(truth, rel=1e-9)
    assert found.value >= truth * (1 - 1e-12)


@pytest.mark.parametrize("kind", THREATS)
def test_generalized_response_is_exact_for_every_threat(kind):
    protocol = GeneralizedResponse(4, 1)
    keep, noise = float(protocol.keep), float(protocol.noise)
    table = Channel(np.full((4, 4), noise) + (keep - noise) * np.eye(4))
    found = advantage(protocol, THREATS[kind])
    assert found.tight
    assert found.value == pytest.approx(advantage(table, THREATS[kind]).value, rel=1e-9)


@pytest.mark.parametrize("kind", THREATS)
@pytest.mark.parametrize(
    "protocol",
    [
        SubsetSelection(4, 1, subset=2),
        SummationHistogram(4, 1),
        BinaryHashing(4, 1),
        OptimizedHashing(4, 1),
        LocalHashing(4, 1, buckets=4),
    ],
    ids=["ss", "she", "blh", "olh", "lh"],
)
def test_other_protocols_stay_between_nothing_and_their_total_variation(protocol, kind):
    threat = THREATS[kind]
    value = advantage(protocol, threat).value
    assert 0 < value <= protocol.total_variation() * threat.ceiling * (1 + 1e-9)


def test_a_hash_that_separates_all_records_stays_below_the_bound():
    """With as many buckets as records and no collision, the report is response."""
    protocol = LocalHashing(4, 1, buckets=4)
    response = GeneralizedResponse(4, 1)
    threat = THREATS["known"]
    assert advantage(protocol, threat).value >= advantage(response, threat).value * (
        1 - 1e-9
    )


def test_another_number_of_records_is_refused():
    for protocol in (OptimizedUnary(5, 1), LocalHashing(5, 1, buckets=3)):
        with pytest.raises(MismatchError, match="records"):
            advantage(protocol, Threat(SKEW))


@pytest.mark.parametrize(
    "protocol",
    [BinaryHashing(10, 1), OptimizedHashing(10, 1), LocalHashing(10, 1, buckets=5)],
    ids=["blh", "olh", "lh"],
)
def test_hashing_protocols_state_what_holds_for_every_hash(protocol):
    threat = Threat(Prior.uniform(10))
    assert advantage(protocol, threat).value == protocol.advantage_bound().value
    known = Threat.membership(Prior.uniform(10))
    stated = protocol.advantage_bound(knowledge="full").value
    assert advantage(protocol, known).value == stated
