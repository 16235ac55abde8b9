"""An audit in plain words: units, statuses, terms, and what could not be refuted."""

from __future__ import annotations

import math

import pytest

from undertow.audit import AuditResult, Claim, MethodResult
from undertow.audit.inversion import Inversion
from undertow.report import AuditReport
from undertow.report.audit import (
    METHOD_HEADINGS,
    claim_words,
    glossary,
    inversion_row,
    method_rows,
    power_rows,
    shown_number,
    verdict_sentence,
)
from undertow.results import Estimate, Witness


def outcome(**changes) -> AuditResult:
    fields = {
        "subject": "code",
        "claim": Claim.pure(16, adjacency="local"),
        "certified": 7.1,
        "confidence": 0.99,
        "trials": 1000,
        "epsilon_certified": 7.1,
        "epsilon_estimate": 8.0,
    }
    return AuditResult(**{**fields, **changes})


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (Claim.pure(5, adjacency="local"), "ε = 5, local"),
        (Claim.pure(5), "ε = 5, replacing one record"),
        (
            Claim.approx(1, 1e-6, adjacency="add-remove"),
            "ε = 1, δ = 1e-06, adding or removing one record",
        ),
        (Claim.gaussian(1), "μ = 1, replacing one record"),
    ],
)
def test_a_claim_is_written_without_class_names(claim, words):
    assert claim_words(claim) == words


def test_a_claim_beyond_all_methods_is_said_to_be():
    beyond = outcome(
        power={
            "can_refute": False,
            "ceiling": 12.0,
            "detectable": math.inf,
            "trials_needed": 2_203_796,
        }
    )
    said = verdict_sentence(beyond)
    assert "so many trials of this kind could not have refuted it" in said
    assert "does not prove it" not in said
    rows = dict(power_rows(beyond))
    assert rows["could the claim be refuted"].startswith("no")
    assert rows["trials needed at least"].startswith("2203796, were the outputs as")
    assert rows["largest possible certificate"] == "12.0000"
    assert "refuted from an estimate of" not in rows
    assert "∞" not in AuditReport(beyond).markdown()


def test_trials_needed_by_another_method_are_not_told_beside_those_of_this():
    power = {"can_refute": False, "trials_needed": 37, "trials_alike": 212_001}
    rows = dict(power_rows(outcome(power=power)))
    assert rows["trials of this kind needed"] == "about 220000"
    assert "trials needed at least" not in rows
    within = power_rows(outcome(power={"can_refute": True, "trials_needed": 37}))
    assert within == (("trials needed at least", "37"),)


def test_counts_that_no_estimate_would_turn_are_said_to_be():
    rows = dict(power_rows(outcome(power={"can_refute": True, "detectable": math.inf})))
    assert rows == {"refuted from an estimate of": "none, on counts like these"}


@pytest.mark.parametrize(
    ("found", "heading", "words"),
    [
        (
            Inversion("oue", 1.0, 0.9, 1.1, "interior"),
            "ε, if it is OUE",
            "1.0000 (from 0.9000 to 1.1000)",
        ),
        (
            Inversion("oue", math.inf, 14.99999, math.inf, "saturated"),
            "ε, if it is OUE",
            "at least 14.9999 fits; saturated: from here on the attack's success "
            "hardly grows, so no upper limit follows",
        ),
        (
            Inversion("grr", 0.0, 0.0, 0.2, "blind"),
            "ε, if it is GRR",
            "0.0000 (from 0.0000 to 0.2000); blind: the attack is right no more often "
            "than a guess without the report",
        ),
        (
            Inversion("gaussian", 1.0, 0.9, 1.1, "jump"),
            "μ, if it is gaussian",
            "1.0000 (from 0.9000 to 1.1000); jump: no level gives just this success; "
            "the next larger one is stated",
        ),
    ],
)
def test_the_level_of_a_known_protocol_is_told_with_its_status(found, heading, words):
    assert inversion_row(found) == (heading, words)
    page = AuditReport(outcome(inversion=found)).html()
    assert words.replace("'", "&#x27;") in page
    assert heading in dict(glossary(outcome(inversion=found)))


def test_a_gaussian_claim_is_reported_in_mu_alone():
    found = outcome(
        claim=Claim.gaussian(1),
        certified=0.9,
        epsilon_certified=2.34567,
        epsilon_estimate=3.0,
        estimate=0.95,
    )
    page = AuditReport(found).markdown()
    assert "| estimate of μ, no evidence | 0.9500 |" in page
    assert "| certified μ | 0.9 |" in page
    assert "| certified ε at δ = 0 | 2.3456 |" in page
    assert "3.0" not in page.split("## What was run")[0]
    assert "normal laws" in dict(glossary(found))["μ"]


def test_methods_are_rows_that_say_which_decides():
    found = outcome(
        methods=(
            MethodResult("pairs", 1.0, 0.98765, 950, True, ceiling=9.0),
            MethodResult("value", math.inf, 0.5, 50),
        )
    )
    assert method_rows(found) == [
        ("pairs", "0.9876", "1.0000", "9.0000", "950", "decides"),
        ("value", "0.5", "∞", "unknown", "50", "comparison only"),
    ]
    assert len(METHOD_HEADINGS) == 6


def test_every_term_of_a_result_is_explained_and_no_other():
    bare = dict(glossary(outcome()))
    assert {"ε", "certified ε", "confidence 0.99", "estimate", "trial"} == set(bare)
    assert "at most 1 % find" in bare["confidence 0.99"]
    full = dict(
        glossary(
            outcome(
                advantage=Estimate(0.0456, 0.03, 0.06, 0.99, 100, 1, "limits"),
                baseline={"epsilon": 0.5},
                witness=Witness("event", "so and so"),
                methods=(
                    MethodResult("pairs", 1.0, 0.9, 950, True, ceiling=9.0),
                    MethodResult("event on a pair: x = 1", 1.0, 0.9, 950),
                    MethodResult("of another kind", 1.0, 0.9, 950),
                    MethodResult("reconstruct against the threat, by it", 1, 0.9, 9),
                ),
            )
        )
    )
    assert "about 4.6 more in 100 guesses" in full["advantage"]
    for term in ("LDP-Auditor", "ceiling", "comparison only", "pairs", "witness"):
        assert term in full
    assert "event on a pair" in full
    assert "reconstruct against the threat" in full
    assert "reconstruct" not in full
    assert "of another kind" not in full


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (math.inf, "∞"), (-math.inf, "-∞"), (3, "3"), (0.5, "0.5000")],
)
def test_numbers_are_shown_for_people(value, text):
    assert shown_number(value) == text
