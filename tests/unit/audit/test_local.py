"""Audits of local protocols: what is drawn, read, chosen and certified."""

from __future__ import annotations

import itertools
import math
import pickle
import tracemalloc
from statistics import NormalDist

import numpy as np
import pytest

from undertow.audit._method import (
    Pairs,
    Reconstruct,
    Single,
    Tally,
    candidates,
    choose,
    pilot_size,
)
from undertow.audit._trial import (
    CELLS,
    PairTrials,
    Source,
    UniformTrials,
    ValueReader,
    ValueTrials,
    reader_of,
)
from undertow.audit.claim import Claim
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.runner import Campaign
from undertow.audit.subject import ProtocolSubject
from undertow.errors import AuditError, MismatchError
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
from undertow.mechanisms.noise.simulated import SimulatedSource

PROTOCOLS = {
    "grr": GeneralizedResponse,
    "oue": OptimizedUnary,
    "ss": SubsetSelection,
    "olh": OptimizedHashing,
}


class Answers:
    """A subject that keeps the value with a probability of its own for each value."""

    name = "answers"

    def __init__(self, keep, labels=None):
        self.keep = np.asarray(keep)
        self.inputs = range(len(self.keep)) if labels is None else labels

    def sample(self, value, size, *, rng):
        m = len(self.keep)
        lies = (value + rng.integers(1, m, size=size)) % m
        told = np.where(rng.random(size) < self.keep[value], value, lies)
        return np.asarray(self.inputs)[told]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_million_trials_certify_nearly_all_of_the_loss(name):
    protocol = PROTOCOLS[name](100, 1)
    result = audit_local(protocol, Claim.pure(1), trials=10**6, seed=3)
    assert result.epsilon_certified >= 0.97
    assert not result.violated
    assert result.confidence == 0.99


@pytest.mark.parametrize(
    "protocol",
    [SymmetricUnary(20, 1), BinaryHashing(20, 1), SummationHistogram(20, 1)],
    ids=lambda p: p.name,
)
def test_other_protocols_are_certified_by_pairs(protocol):
    result = audit_local(protocol, Claim.pure(1), trials=100_000, seed=2)
    assert 0.93 < result.epsilon_certified < 1.0
    assert [m.name for m in result.methods if m.decides] == ["pairs"]


def test_thresholding_is_certified_at_the_loss_of_its_bits():
    protocol = ThresholdHistogram(20, 1)
    result = audit_local(protocol, Claim.pure(1), trials=100_000, seed=1)
    assert 0.93 * protocol.loss().epsilon < result.epsilon_certified
    assert result.epsilon_certified < protocol.loss().epsilon


def test_the_pair_event_of_unary_encodings_has_exactly_the_odds_of_the_loss():
    for protocol in (OptimizedUnary(3, 1), SymmetricUnary(3, 1)):
        first, second = _unary_cells(protocol)
        assert math.log(first / second) == pytest.approx(1.0, abs=1e-9)


def _unary_cells(protocol):
    """Probabilities, given value 0, of supporting 0 and not 1, and the reverse."""
    p, q = float(protocol.keep), float(protocol.noise)
    cells = {(1, 0): 0.0, (0, 1): 0.0}
    for bits in itertools.product((0, 1), repeat=3):
        rates = zip((p, q, q), bits, strict=True)
        chance = math.prod(rate if bit else 1 - rate for rate, bit in rates)
        if bits[:2] in cells:
            cells[bits[:2]] += chance
    return cells.values()


def test_the_pair_event_of_subsets_has_exactly_the_odds_of_the_loss():
    protocol = SubsetSelection(8, 1)
    size = protocol.subset
    inside = float(protocol.keep)
    # Given that 0 is in the set, 1 is in it with the share of the other places.
    first = inside * (1 - (size - 1) / 7)
    second = (1 - inside) * size / 7
    assert math.log(first / second) == pytest.approx(1.0, abs=1e-9)


def random_channel(rng, *, m, outputs, epsilon):
    """A channel whose every column varies by at most a factor e^epsilon."""
    table = np.exp(rng.uniform(0, epsilon / 2, size=(m, outputs)))
    return table / table.sum(axis=1, keepdims=True)


def test_pooled_pairs_and_single_values_never_pass_the_loss_of_a_channel():
    rng = np.random.default_rng(2)
    for _ in range(200):
        m, outputs = 4, 6
        channel = random_channel(rng, m=m, outputs=outputs, epsilon=2.0)
        loss = np.log(channel.max(axis=0) / channel.min(axis=0)).max()
        support = rng.random((outputs, m)) < 0.5
        alone = np.array(
            [
                [(support[:, i] & ~support[:, j]) for j in range(m)]
                for i in range(m)
            ]
        )  # fmt: skip
        own = np.einsum("ijo,io->ij", alone, channel)
        other = np.einsum("ijo,jo->ij", alone, channel)
        off = ~np.eye(m, dtype=bool)
        a, b = own[off].sum(), other[off].sum()
        assert a <= math.exp(loss) * b * (1 + 1e-12)
        for i in range(m):
            assert own[i].sum() <= math.exp(loss) * other[i].sum() * (1 + 1e-12)


@pytest.mark.parametrize(
    "protocol",
    [
        GeneralizedResponse(7, 1),
        OptimizedUnary(7, 1),
        SubsetSelection(7, 1),
        LocalHashing(7, 1, buckets=3),
    ],
    ids=lambda p: p.name,
)
def test_readers_agree_with_the_support_table(protocol):
    rng = np.random.default_rng(1)
    first = rng.integers(7, size=500)
    second = (first + rng.integers(1, 7, size=500)) % 7
    reports = protocol.sample(first, source=SimulatedSource(2)).values
    table, rows = protocol.support(reports), np.arange(500)
    cells = reader_of(protocol, 7).cells(reports, first, second)
    expected = 2 * table[rows, first].astype(int) + table[rows, second]
    assert (cells == expected).all()
    assert set(cells) <= set(range(len(CELLS)))


@pytest.mark.parametrize(
    "protocol",
    [OptimizedUnary(7, 1), SubsetSelection(7, 1), SummationHistogram(7, 2)],
    ids=lambda p: p.name,
)
def test_hits_have_the_success_of_the_simple_attack(protocol):
    n = 40_000
    truths = np.random.default_rng(3).integers(7, size=n)
    reports = protocol.sample(truths, source=SimulatedSource(4)).values
    reader = reader_of(protocol, 7)
    hits = reader.hits(reports, truths, rng=np.random.default_rng(5))
    s = protocol.attack_success()
    assert hits.mean() == pytest.approx(s, abs=5 * math.sqrt(s * (1 - s) / n))


def test_a_plain_protocol_is_read_by_its_support_table():
    class Plain:
        categories = 5

        def __init__(self):
            self.inner = GeneralizedResponse(5, 1)

        def sample(self, values, *, source):
            return self.inner.sample(values, source=source).values

        def support(self, reports):
            return self.inner.support(reports)

    plain = audit_local(Plain(), Claim.pure(1), trials=20_000, seed=1)
    inner = audit_local(GeneralizedResponse(5, 1), Claim.pure(1), trials=20_000, seed=1)
    assert plain.epsilon_certified == pytest.approx(inner.epsilon_certified, abs=0.1)


def test_a_wrapped_protocol_is_audited_as_the_protocol():
    protocol = OptimizedUnary(10, 1)
    wrapped = audit_local(
        ProtocolSubject(protocol), Claim.pure(1), trials=20_000, seed=1
    )
    plain = audit_local(protocol, Claim.pure(1), trials=20_000, seed=1)
    assert wrapped.certified == plain.certified


def test_a_subject_may_answer_with_its_labels():
    keep = np.full(4, 0.7)
    numbers = audit_local(Answers(keep), Claim.pure(1), trials=20_000, seed=1)
    words = audit_local(
        Answers(keep, ["a", "b", "c", "d"]), Claim.pure(1), trials=20_000, seed=1
    )
    assert numbers.certified == words.certified
    assert numbers.violated  # ln(0.7 / 0.1) is 1.95


def test_a_subject_is_read_by_the_protocol_it_imitates():
    class Client:
        name = "client"
        inputs = range(10)
        protocol_inside = SymmetricUnary(10, 2)

        def sample(self, value, size, *, rng):
            source = SimulatedSource(rng)
            return self.protocol_inside.sample(
                np.full(size, value), source=source
            ).values

    claim = Claim.pure(1)
    result = audit_local(
        Client(), claim, trials=20_000, seed=1, reader=SymmetricUnary(10, 1)
    )
    assert result.violated
    assert result.witness.details["hits"] > result.witness.details["against"]
    with pytest.raises(MismatchError, match="give the protocol as reader"):
        audit_local(Client(), claim, trials=20_000, seed=1)
    with pytest.raises(MismatchError, match="reader must have the 10 values"):
        audit_local(Client(), claim, trials=20_000, seed=1, reader=SymmetricUnary(9, 1))


def test_one_leaking_value_among_many_is_found_and_named():
    keep = np.full(50, 0.1)
    keep[17] = 0.999
    result = audit_local(Answers(keep), Claim.pure(5), trials=200_000, seed=1)
    assert result.violated
    assert [m.name for m in result.methods if m.decides] == ["value"]
    assert "value number 17" in result.witness.summary


def test_reports_that_avoid_the_truth_are_refuted_in_the_other_direction():
    result = audit_local(
        Answers(np.full(3, 0.02)), Claim.pure(2), trials=50_000, seed=1
    )
    assert result.violated  # ln(0.49 / 0.02) is 3.2
    assert (
        "another value" in result.witness.summary or "value" in result.witness.summary
    )


def test_a_result_does_not_depend_on_the_order_of_the_parts():
    source = Source(OptimizedUnary(10, 1))
    trials = UniformTrials(source, pilot=True)
    whole = Campaign(5, 1000).run(trials, 5500, phase=1, job="x")
    seed = Campaign(5, 1000)._phase_seed(1)
    parts = [
        trials(
            size, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i,)))
        )
        for i, size in reversed(list(enumerate([1000] * 5 + [500])))
    ]
    for name, counts in whole.items():
        assert (counts == sum(part[name] for part in parts)).all()


def test_a_run_is_repeatable_and_another_seed_is_another_run():
    def certified(seed):
        protocol = GeneralizedResponse(10, 1)
        return audit_local(protocol, Claim.pure(1), trials=20_000, seed=seed).certified

    assert certified(1) == certified(1) != certified(2)


def test_workers_and_checkpoints_give_the_same_result(tmp_path):
    protocol, claim = OptimizedUnary(10, 1), Claim.pure(1)
    plain = audit_local(protocol, claim, trials=20_000, seed=1, chunk=4000)
    shown = []
    saved = audit_local(
        protocol,
        claim,
        trials=20_000,
        seed=1,
        chunk=4000,
        checkpoint=tmp_path / "run.json",
        progress=lambda done, total, counts: shown.append((done, total)),
    )
    assert saved.to_dict() == plain.to_dict()
    assert shown[-1] == (5, 5)


def test_the_table_of_a_pilot_counts_both_roles():
    counts = UniformTrials(Source(OptimizedUnary(6, 1)), pilot=True)(
        3000, np.random.default_rng(1)
    )
    table = counts["table"]
    assert table.shape == (2, len(CELLS), 6)
    assert table[0].sum() == table[1].sum() == 3000
    assert (table[0].sum(axis=1) == counts["pooled"]).all()
    assert table[1, 1].sum() == table[0, 2].sum()  # seen from the other value


def test_single_value_trials_compare_one_value_with_uniform_others():
    keep = np.array([0.9, 0.3, 0.3])
    counts = ValueTrials(Source(Answers(keep)), 0)(40_000, np.random.default_rng(1))
    own, other = counts["roles"]
    assert own[2] / own.sum() == pytest.approx(0.9, abs=0.02)
    assert other[2] / other.sum() == pytest.approx(0.35, abs=0.02)
    assert counts["roles"].sum() == 40_000


@pytest.mark.parametrize(
    ("claim", "violated"),
    [
        (Claim.approx(1, "1e-3"), False),
        (Claim.approx("0.9", "1e-3"), True),
        (Claim.gaussian(1), False),
        (Claim.gaussian("0.6"), True),
        (Claim.pure("0.5", adjacency="add-remove"), False),
        (Claim.pure("0.45", adjacency="add-remove"), True),
    ],
    ids=["approx", "approx-low", "gdp", "gdp-low", "add-remove", "add-remove-low"],
)
def test_claims_of_every_currency_are_tested(claim, violated):
    result = audit_local(OptimizedUnary(20, 1), claim, trials=200_000, seed=1)
    assert result.violated == violated
    assert (result.witness is not None) == violated


def test_a_gaussian_certificate_also_states_epsilon():
    result = audit_local(
        OptimizedUnary(20, 1), Claim.gaussian(1), trials=50_000, seed=1
    )
    assert 0.3 < result.certified < 1
    assert result.certified != result.epsilon_certified
    assert 0.9 < result.epsilon_certified < 1


def test_delta_lowers_what_is_certified():
    claims = Claim.pure(1), Claim.approx(1, "0.05")
    plain, less = (
        audit_local(OptimizedUnary(20, 1), claim, trials=50_000, seed=1).certified
        for claim in claims
    )
    assert less < plain - 0.05


def test_the_power_says_what_could_have_been_found():
    result = audit_local(OptimizedUnary(20, 1), Claim.pure(1), trials=50_000, seed=1)
    assert 1 < result.power["detectable"] < 1.1
    assert 9 < result.power["ceiling"] < 10
    assert result.power["trials_needed"] == 4
    close = audit_local(
        OptimizedUnary(20, 1), Claim.pure(8), trials=50_000, seed=1
    ).power
    assert 8 < close["detectable"] < math.inf
    beyond = audit_local(
        OptimizedUnary(20, 1), Claim.pure(9), trials=50_000, seed=1
    ).power
    assert beyond["detectable"] == math.inf


def test_trials_needed_are_a_whole_number_and_every_method_has_its_ceiling():
    result = audit_local(OptimizedUnary(20, 1), Claim.pure(1), trials=50_000, seed=1)
    assert isinstance(result.power["trials_needed"], int)
    assert result.power["can_refute"] is True
    for row in result.methods:
        assert 0 <= row.certified < row.ceiling < math.inf
        assert row.parameter == "epsilon"
    deciding = next(row for row in result.methods if row.decides)
    assert deciding.ceiling == result.power["ceiling"]


def test_a_claim_beyond_every_method_is_said_to_be_out_of_reach():
    result = audit_local(
        OptimizedUnary(100, 20), Claim.pure(12), trials=400_000, seed=1
    )
    assert result.power["can_refute"] is False
    assert result.power["detectable"] == math.inf
    assert result.to_dict()["power"]["can_refute"] is False
    assert result.power["ceiling"] < 12
    assert "could not have been refuted by what was tested" in result.__rich__()
    assert "detectable" not in result.__rich__()
    # What is certified is still the most there is, not that of a weaker method.
    assert result.certified > 9


def test_the_trials_of_its_kind_that_a_claim_needs_can_refute_it():
    protocol, claim = OptimizedUnary(20, 1), Claim.pure(9)
    seen = audit_local(protocol, claim, trials=50_000, seed=1).power
    assert seen["can_refute"] is False
    assert seen["trials_needed"] < 50_000 < seen["trials_alike"]
    for factor, able in ((0.9, False), (1.1, True)):
        trials = round(factor * seen["trials_alike"])
        power = audit_local(protocol, claim, trials=trials, seed=1).power
        assert power["can_refute"] is able
        assert ("trials_alike" in power) is not able


def test_the_trials_of_its_kind_are_those_of_the_limits_in_use():
    protocol, claim = OptimizedUnary(20, 1), Claim.pure(9)
    fixed = audit_local(protocol, claim, trials=50_000, seed=1).power
    looked = audit_until_refuted(protocol, claim, trials=50_000, seed=1).power
    assert looked["trials_alike"] > fixed["trials_alike"]


def pilot_counts(successes, pooled, trials, m=2):
    table = np.zeros((2, len(CELLS), m), dtype=np.int64)
    table[:, 0, :] = trials // m
    return {
        "trials": np.array([trials]),
        "successes": np.array([successes]),
        "pooled": np.array(pooled),
        "table": table,
    }


def test_a_method_that_can_never_refute_gives_way_to_one_that_may():
    claim, m = Claim.pure(12), 10_000
    # All pairs speak for the target, and all but few attacks are right.
    pilot = pilot_counts(49_990, [0, 0, 50_000, 0], 50_000)
    methods = candidates(pilot, claim, m, 0.99)
    reconstruct, pairs, _ = methods
    few, many = 100_000, 10**9
    assert pairs.ceiling(Tally(few, few, 0, few)) < 12
    assert reconstruct.hopeful(pilot, few) > 12
    assert choose(methods, pilot, few) is reconstruct
    # If the attack has no chance either, the larger certificate is taken.
    hopeless = pilot_counts(10, [0, 0, 50_000, 0], 50_000)
    others = candidates(hopeless, claim, m, 0.99)
    assert others[0].hopeful(hopeless, few) < 12
    assert choose(others, hopeless, few) is others[1]
    assert choose(others, hopeless, many) is others[1]


def test_estimates_of_a_gaussian_claim_are_of_mu():
    claim = Claim.gaussian(1)
    result = audit_local(OptimizedUnary(20, 1), claim, trials=100_000, seed=1)
    assert result.parameter == "mu"
    assert result.estimate != result.epsilon_estimate
    assert all(row.parameter == "mu" for row in result.methods)
    deciding = next(row for row in result.methods if row.decides)
    assert deciding.estimate == result.estimate
    protocol = OptimizedUnary(20, 1)
    p, q = float(protocol.keep), float(protocol.noise)
    truth = NormalDist().inv_cdf(p * (1 - q)) - NormalDist().inv_cdf(q * (1 - p))
    assert result.certified < truth == pytest.approx(result.estimate, abs=0.02)
    pure = audit_local(OptimizedUnary(20, 1), Claim.pure(1), trials=20_000, seed=1)
    assert pure.estimate == pure.epsilon_estimate


def test_point_estimates_of_mu_are_the_distance_of_two_normals():
    claim = Claim.gaussian(1)
    rates = NormalDist().inv_cdf(0.7), NormalDist().inv_cdf(0.25)
    reconstruct = Reconstruct(claim, 0.99, 4)
    assert reconstruct.estimate_mu(Tally(70, 100, 30, 100)) == pytest.approx(
        rates[0] - NormalDist().inv_cdf(0.1)
    )
    pairs = Pairs(claim, 0.99)
    assert pairs.estimate_mu(Tally(25, 100, 70, 100)) == pytest.approx(
        rates[1] - rates[0]
    )
    assert pairs.claimed(Tally(25, 100, 70, 100)) == 0.0
    assert pairs.estimate_mu(Tally(9, 100, 0, 100)) == math.inf
    assert pairs.estimate_mu(Tally(0, 100, 0, 100)) == 0.0
    assert Single(claim, 0.99, 0).estimate_mu(Tally(3, 3, 0, 0)) == -math.inf


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_attack_is_counted_on_the_certifying_trials(name):
    protocol = PROTOCOLS[name](100, 1)
    result = audit_local(protocol, Claim.pure(1), trials=40_000, seed=3)
    seen = result.advantage
    assert seen.trials >= (6000 if name == "olh" else 38_000)
    assert f"on {seen.trials} certifying trials" in seen.method
    assert seen.low < protocol.attack_success() - 0.01 < seen.high


def test_the_attack_of_a_single_value_rests_on_the_choosing_trials():
    keep = np.full(50, 0.1)
    keep[17] = 0.999
    result = audit_local(Answers(keep), Claim.pure(5), trials=100_000, seed=1)
    assert result.advantage.trials == 5000
    assert result.advantage.method.endswith("on 5000 choosing trials")


def test_counting_the_attack_does_not_change_the_pairs():
    source = Source(OptimizedUnary(10, 1))
    plain = UniformTrials(source, attack=False)(5000, np.random.default_rng(3))
    both = PairTrials(source)(5000, np.random.default_rng(3))
    assert (plain["pooled"] == both["pooled"]).all()
    assert both["attack_trials"][0] == 5000
    hashed = PairTrials(Source(OptimizedHashing(64, 1)))
    assert hashed(1000, np.random.default_rng(3))["attack_trials"][0] == 250


@pytest.mark.parametrize("level", [0.5, 1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize(
    "protocol",
    [
        GeneralizedResponse,
        OptimizedUnary,
        SymmetricUnary,
        SubsetSelection,
        OptimizedHashing,
        BinaryHashing,
        SummationHistogram,
        ThresholdHistogram,
    ],
    ids=lambda kind: kind.name,
)
def test_the_level_is_recovered_where_the_protocol_is_not_saturated(protocol, level):
    # Each of the 56 intervals fails once in 10,000 seeds.
    told = audit_local(
        protocol(20, level), Claim.pure(1), trials=60_000, seed=4, confidence=0.9999
    ).inversion
    assert told is not None
    assert told.low <= level * (1 + 1e-9)
    assert level * (1 - 1e-9) <= told.high
    if told.status == "saturated":
        assert told.high == math.inf
        assert level >= 4 or protocol in (BinaryHashing, OptimizedHashing)
    else:
        assert told.high - told.low < 0.2 + 0.5 * level


@pytest.mark.parametrize("level", [16, 20])
def test_a_saturated_protocol_says_so_everywhere(level):
    protocol = OptimizedUnary(100, level)
    result = audit_local(protocol, Claim.pure(1), trials=50_000, seed=1)
    assert result.inversion.status == "saturated"
    assert result.to_dict()["inversion"]["status"] == "saturated"
    assert "status = saturated" in result.__rich__()
    assert pickle.loads(pickle.dumps(result)).inversion == result.inversion


@pytest.mark.parametrize(
    ("protocol", "family"),
    [
        (SubsetSelection(20, 1, subset=2), "ss"),
        (LocalHashing(20, 1, buckets=7), "olh"),
        (LocalHashing(20, 1, buckets=2), "blh"),
    ],
    ids=["ss", "olh", "blh"],
)
def test_sizes_of_ones_own_are_inverted_with_them(protocol, family):
    result = audit_local(protocol, Claim.pure(1), trials=200_000, seed=1)
    assert result.inversion.family == family
    assert result.inversion.low <= 1 <= result.inversion.high


def test_what_belongs_to_no_family_has_no_inversion():
    for subject in (
        UnaryEncoding(10, keep="0.6", noise="0.3"),
        ThresholdHistogram(10, 1, threshold=0.9),
        Answers(np.full(4, 0.5)),
    ):
        result = audit_local(subject, Claim.pure(2), trials=2000, seed=1)
        assert result.inversion is None
        assert result.to_dict()["inversion"] is None
    stopped = audit_until_refuted(
        OptimizedUnary(20, 2), Claim.pure(1), trials=20_000, seed=1
    )
    assert stopped.inversion.family == "oue"
    assert stopped.advantage.trials == 128


def test_a_rare_outcome_that_the_pilot_misses_does_not_mislead_the_choice():
    protocol = GeneralizedResponse(3052, 10)
    result = audit_local(protocol, Claim.pure(10), trials=200_000, seed=3)
    assert [m.name for m in result.methods if m.decides] == ["reconstruct"]
    assert result.epsilon_certified > 9.9


def chosen_on_pilots(protocol, trials, seeds):
    """Return the methods that pilots of several seeds choose."""
    source, claim = Source(protocol), Claim.pure(1)
    few = pilot_size(trials, source.categories)
    found = set()
    for seed in seeds:
        pilot = UniformTrials(source, pilot=True)(few, np.random.default_rng(seed))
        methods = candidates(pilot, claim, source.categories, 0.99)
        found.add(choose(methods, pilot, trials - few).name)
    return found


@pytest.mark.parametrize("trials", [4000, 10**6])
def test_reports_that_name_one_value_are_certified_by_the_attack_at_every_seed(trials):
    protocol = GeneralizedResponse(100, 1)
    assert chosen_on_pilots(protocol, trials, range(20)) == {"reconstruct"}


@pytest.mark.parametrize(
    "protocol",
    [OptimizedUnary(100, 1), SubsetSelection(10, 1), OptimizedHashing(100, 1)],
    ids=lambda p: p.name,
)
def test_reports_that_leave_a_guess_are_certified_by_pairs_at_every_seed(protocol):
    # A pilot of 200 trials tells next to nothing of the attack.
    assert chosen_on_pilots(protocol, 4000, range(20)) == {"pairs"}


def test_pairs_that_speak_for_the_other_value_are_not_taken_for_equal():
    # Every report names one value, but rarely its own: the attack certifies nothing.
    pilot = pilot_counts(1, [70, 29, 1, 0], 100)
    methods = candidates(pilot, Claim.pure(1), 3, 0.99)
    assert choose(methods, pilot, 1900).name == "pairs"


def test_reports_of_one_value_give_both_methods_the_same_population_value():
    m, rate = 7, 0.4
    # The other value is uniform, so that it is named by its share of the lies.
    n = 10**12
    tally = Tally(round(n * rate), n, round(n * (1 - rate) / (m - 1)), n)
    pairs = Pairs(Claim.pure(1), 0.99)
    attack = Reconstruct(Claim.pure(1), 0.99, m)
    hits = Tally(round(n * rate), n, round(n * (1 - rate)), n)
    assert attack.estimate(hits) == pytest.approx(pairs.estimate(tally), abs=1e-9)
    assert attack.certify(hits)[0] > pairs.certify(tally)[0]


def test_the_baseline_is_run_on_request():
    protocol = OptimizedUnary(20, 1)
    result = audit_local(protocol, Claim.pure(1), trials=20_000, seed=1, baseline=True)
    assert result.baseline["trials"] == 10_000
    assert result.baseline["epsilon"] < result.epsilon_certified
    assert result.to_dict()["baseline"]["tail"] == "quarter"


def test_too_few_trials_are_refused_with_the_number_needed():
    protocol = GeneralizedResponse(10, 8)
    with pytest.raises(ValueError, match="trials must be at least") as caught:
        audit_local(protocol, Claim.pure(8), trials=100, seed=1)
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    audit_local(protocol, Claim.pure(8), trials=needed, seed=1)
    with pytest.raises(ValueError, match=f"at least {needed} "):
        audit_local(protocol, Claim.pure(8), trials=needed - 1, seed=1)


@pytest.mark.parametrize("trials", [0, -1, 1.5, math.nan])
def test_trials_are_a_positive_whole_number(trials):
    with pytest.raises(ValueError, match="trials must be a whole number"):
        audit_local(GeneralizedResponse(3, 1), Claim.pure(1), trials=trials, seed=1)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_confidence_is_strictly_between_zero_and_one(confidence):
    with pytest.raises(ValueError, match="confidence must be in"):
        audit_local(
            GeneralizedResponse(3, 1),
            Claim.pure(1),
            trials=100,
            seed=1,
            confidence=confidence,
        )


def test_bad_subjects_are_refused():
    class Short:
        inputs = range(3)
        name = "short"

        def sample(self, value, size, *, rng):
            return np.zeros(max(0, size - 1), dtype=int)

    with pytest.raises(MismatchError, match="one output per trial"):
        audit_local(Short(), Claim.pure(1), trials=1000, seed=1)
    with pytest.raises(TypeError, match="must have a method sample"):
        audit_local(len, Claim.pure(1), trials=1000, seed=1)
    with pytest.raises(MismatchError, match="outputs must be values"):
        ValueReader(3).hits(np.array([0.5]), np.array([0]), rng=None)


def test_trials_can_be_sent_to_another_process():
    trials = UniformTrials(Source(OptimizedUnary(6, 1)))
    again = pickle.loads(pickle.dumps(trials))
    counts = [t(100, np.random.default_rng(1))["pooled"] for t in (trials, again)]
    assert (counts[0] == counts[1]).all()


def test_memory_does_not_grow_with_the_trials():
    protocol, claim = GeneralizedResponse(100, 1), Claim.pure(1)
    peaks = []
    for trials in (10**5, 10**6):
        tracemalloc.start()
        audit_local(protocol, claim, trials=trials, seed=1, chunk=5000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 200_000


def test_the_pilot_is_a_small_part():
    assert pilot_size(10**8, 100) == 50_000
    assert pilot_size(10, 100) == 1
    assert pilot_size(10**6, 10**6) < 100


@pytest.mark.parametrize(
    ("claim", "loose"),
    [
        (Claim.pure("0.5"), Claim.pure(1)),
        (Claim.approx("0.5", "1e-3"), Claim.approx(1, "1e-3")),
        (Claim.gaussian("0.3"), Claim.gaussian(1)),
    ],
    ids=["pure", "approx", "gaussian"],
)
@pytest.mark.parametrize("name", ["grr", "oue"])
def test_a_sequential_audit_stops_early_or_reads_everything(name, claim, loose):
    protocol = PROTOCOLS[name](10, 1)
    found = audit_until_refuted(protocol, claim, trials=50_000, seed=1)
    assert found.violated
    assert found.trials < 40_000
    assert found.witness is not None
    kept = audit_until_refuted(protocol, loose, trials=50_000, seed=1)
    assert not kept.violated
    assert kept.trials == 50_000
    assert (
        kept.certified < audit_local(protocol, loose, trials=50_000, seed=1).certified
    )


def test_a_sequential_audit_names_a_single_value_too():
    keep = np.full(50, 0.1)
    keep[17] = 0.999
    result = audit_until_refuted(Answers(keep), Claim.pure(5), trials=200_000, seed=1)
    assert "value number 17" in result.witness.summary
    assert result.trials < 100_000


def test_a_sequential_audit_refuses_too_few_trials():
    protocol, claim = GeneralizedResponse(10, 8), Claim.pure(8)
    with pytest.raises(ValueError, match="trials must be at least") as caught:
        audit_until_refuted(protocol, claim, trials=100, seed=1)
    assert int(str(caught.value).split("at least ")[1].split()[0]) > 2000


def test_a_protocol_is_named_with_its_parameters():
    result = audit_local(OptimizedUnary(6, 1), Claim.pure(1), trials=1000, seed=1)
    assert result.subject.startswith("OptimizedUnary(6, 1, keep=0.5")


def test_another_job_does_not_resume_from_a_checkpoint(tmp_path):
    path = tmp_path / "run.json"
    claim = Claim.pure(1)
    audit_local(OptimizedUnary(6, 1), claim, trials=1000, seed=1, checkpoint=path)
    with pytest.raises(AuditError):
        audit_local(OptimizedUnary(7, 1), claim, trials=1000, seed=1, checkpoint=path)


def test_a_subject_that_no_seed_repeats_has_one_worker_and_no_checkpoint(tmp_path):
    subject = Answers(np.full(3, 0.5))
    subject.seeded = subject.forkable = False
    claim = Claim.pure(1)
    assert audit_local(subject, claim, trials=1000, seed=1).trials == 1000
    with pytest.raises(AuditError, match="workers must be 1"):
        audit_local(subject, claim, trials=1000, seed=1, workers=2)
    with pytest.raises(AuditError, match="checkpoint must be None"):
        audit_local(subject, claim, trials=1000, seed=1, checkpoint=tmp_path / "x")


def test_a_reader_is_a_protocol():
    subject = Answers(np.full(3, 0.5))
    with pytest.raises(TypeError, match="reader must be a local protocol"):
        audit_local(subject, Claim.pure(1), trials=1000, seed=1, reader="grr")


def test_a_role_that_was_never_drawn_certifies_nothing():
    for claim in (Claim.pure(1), Claim.approx(1, "0.01"), Claim.gaussian(1)):
        method = Single(claim, 0.99, 0)
        tally = Tally(3, 3, 0, 0)
        assert method.certify(tally) == (0.0, 0.0)
        assert method.estimate(tally) == -math.inf


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("trials", [100_000, 10_000_000])
def test_a_gross_fault_is_refuted_in_the_first_hundreds_of_reports(trials, seed):
    found = audit_until_refuted(
        OptimizedUnary(20, 4), Claim.pure(1), trials=trials, seed=seed
    )
    assert found.violated
    assert found.trials < 800
    assert found.confidence == found.advantage.confidence == 0.99


def test_a_subject_is_run_until_dependence_shows_before_it_is_accused():
    class Counted(Answers):
        made = 0

        def sample(self, value, size, *, rng):
            self.made += size
            return super().sample(value, size, rng=rng)

    subject = Counted(np.full(3, 0.99))
    found = audit_until_refuted(subject, Claim.pure(1), trials=100_000, seed=1)
    assert found.violated
    assert found.trials < 1000 < 5000 <= subject.made


def test_stages_are_left_out_where_they_would_leave_too_few_trials():
    claim = Claim.pure(6)
    needed = audit_until_refuted(
        GeneralizedResponse(10, 1), claim, trials=50_000, seed=1
    ).power["trials_needed"]
    found = audit_until_refuted(
        GeneralizedResponse(10, 9), claim, trials=needed, seed=1
    )
    assert found.trials <= needed


def test_early_stopping_reports_its_progress():
    looks = []
    audit_until_refuted(
        OptimizedUnary(20, 2),
        Claim.pure(1),
        trials=100_000,
        seed=1,
        progress=lambda done, of, counts: looks.append((done, of, counts)),
    )
    starts = [place for place, (done, _, _) in enumerate(looks) if done == 1]
    for start, end in zip(starts, [*starts[1:], len(looks)], strict=True):
        stage = looks[start:end]
        assert [done for done, _, _ in stage] == list(range(1, len(stage) + 1))
        assert len(stage) <= stage[0][1]
    assert looks[-1][0] < looks[-1][1]
    assert all(int(c["trials"][0]) > 0 for _, _, c in looks)
