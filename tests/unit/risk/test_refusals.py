"""Malformed input of the risk modules is refused in one clear sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.privacy import Pure
from undertow.risk.bounds import (
    calibrate_sgd,
    composed_bound,
    exact_guess_bound,
    pairwise_variation_bound,
    program_bound,
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
    uniform_prior_bound,
    uniform_tradeoff_bound,
    variation_epsilon_bound,
    variation_matrix,
)
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.exact import advantage
from undertow.risk.finite import Decision, OptimalAttack, attack_risk
from undertow.risk.selector import best_bound
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat, estimate_collision

SENTENCES = {
    "an attribute that is nan": (
        lambda: Success.attribute(lambda record: math.nan).matrix([1, 2]),
        ModelError,
        "never nan",
    ),
    "an unhashable attribute": (
        lambda: Success.attribute(lambda record: [record]).matrix([1, 2]),
        ModelError,
        "an attribute must be hashable",
    ),
    "a stream that is no function": (
        lambda: ChannelStream(np.eye(2), 2),
        TypeError,
        "source must be callable",
    ),
    "a row that does not sum to one": (
        lambda: Channel([[0.5, 0.4], [0.5, 0.5]]),
        ModelError,
        "every row must be non-negative and sum to 1",
    ),
    "a channel of text": (
        lambda: Channel([["a", "b"]]),
        ModelError,
        "matrix must be an array of numbers",
    ),
    "an uneven channel": (
        lambda: Channel([[1.0], [0.5, 0.5]]),
        ModelError,
        "matrix must be an array of numbers",
    ),
    "a channel of truth values": (
        lambda: Channel([[True, False]]),
        ModelError,
        "matrix must be an array of numbers",
    ),
    "an empty channel": (lambda: Channel([]), ModelError, "matrix must have two axes"),
    "a channel with nan": (
        lambda: Channel([[math.nan, 1.0]]),
        ModelError,
        "every row must be",
    ),
    "a negative prior": (
        lambda: Prior(2, [1.5, -0.5]),
        ModelError,
        "pmf must be non-negative",
    ),
    "a prior of text": (
        lambda: Prior(2, ["0.5", "0.5"]),
        ModelError,
        "pmf must be an array of numbers",
    ),
    "a prior of truth values": (
        lambda: Prior(2, [True, False]),
        ModelError,
        "pmf must be an array of numbers",
    ),
    "a prior with nan": (
        lambda: Prior(2, [math.nan, 1.0]),
        ModelError,
        "pmf must be non-negative",
    ),
    "a prior beyond the floats": (
        lambda: Prior(2, [1e308, 1e308]),
        ModelError,
        "pmf must be non-negative",
    ),
    "counts beyond the floats": (
        lambda: Prior.from_counts({"a": 1e308, "b": 1e308}),
        ModelError,
        "counts must be finite",
    ),
    "counts of text": (
        lambda: Prior.from_counts({"a": "x"}),
        ModelError,
        "counts must be an array of numbers",
    ),
    "a support that is a truth value": (
        lambda: Prior.uniform(True),
        ModelError,
        "support must be hashable records",
    ),
    "unhashable records": (
        lambda: Prior([[1], [2]], [0.5, 0.5]),
        ModelError,
        "support must be hashable records",
    ),
    "a support of fractional size": (
        lambda: Prior.uniform(2.5),
        ModelError,
        "support must be hashable records",
    ),
    "a pair of three": (
        lambda: Prior.two_point(3, (0, 1, 2)),
        ModelError,
        "pair must hold two",
    ),
    "counts of words": (
        lambda: estimate_collision(["a"]),
        ValueError,
        "counts must be an array of numbers",
    ),
    "labels of another length": (
        lambda: Knowledge.from_labels([1, 2]).labels("abc"),
        MismatchError,
        "labels must be one for each of the 3 records, got 2",
    ),
    "a label that is nan": (
        lambda: Knowledge.from_labels([math.nan, 1.0]).labels("ab"),
        ModelError,
        "never nan",
    ),
    "an unhashable label": (
        lambda: Knowledge.from_labels([[1], [2]]).labels("ab"),
        ModelError,
        "knowledge must be a hashable value",
    ),
    "a single label": (
        lambda: Knowledge.from_labels(3),
        TypeError,
        "values must be one label per record",
    ),
    "uneven distances": (
        lambda: Success.hops([[0], [1, 0]], 1),
        ModelError,
        "distances must be a table",
    ),
    "records that are text on a line": (
        lambda: Success.within("absolute", 1).matrix(["1", "2"]),
        ModelError,
        "records must be finite numbers",
    ),
    "guesses that are no sequence": (
        lambda: Success.within("absolute", 1, guesses=3),
        TypeError,
        "guesses must be a sequence",
    ),
    "a table of words": (
        lambda: Decision([[["a"]]]),
        ModelError,
        "table must be whole numbers",
    ),
    "an uneven table": (
        lambda: Decision([[0], [1, 2]]),
        ModelError,
        "table must have rows of one length",
    ),
    "a bare table": (
        lambda: attack_risk(
            Channel(np.eye(2)), Threat(Prior.uniform(2)), decision=[[0], [1]]
        ),
        TypeError,
        "decision must be a Decision",
    ),
    "a prior for a threat": (
        lambda: best_bound(Pure(1), Prior.uniform(2)),
        TypeError,
        "threat must be a Threat",
    ),
    "an attack for a mechanism": (
        lambda: advantage(
            OptimalAttack(Channel(np.eye(2)), Threat(Prior.uniform(2))),
            Threat(Prior.uniform(2)),
        ),
        NotApplicable,
        "a finite channel must be",
    ),
    "a stream without blocks": (
        lambda: advantage(ChannelStream(lambda: 3, 2), Threat(Prior.uniform(2))),
        TypeError,
        "source must return an iterable",
    ),
    "a stream of text": (
        lambda: advantage(ChannelStream(lambda: ["ab"], 2), Threat(Prior.uniform(2))),
        ModelError,
        "a block must be an array of numbers",
    ),
    "a short stream": (
        lambda: advantage(
            ChannelStream(lambda: [[[0.5], [0.4]]], 2), Threat(Prior.uniform(2))
        ),
        ModelError,
        "off by 0.6",
    ),
    "hits that are words": (
        lambda: program_bound(1.0, [0.5, 0.5], hits=[["a", "b"]]),
        ValueError,
        "hits must be truth values",
    ),
    "a prior of words in a bound": (
        lambda: exact_guess_bound(Pure(1), ["a"]),
        ValueError,
        "prior must be an array of numbers",
    ),
    "an infinite prior in a bound": (
        lambda: exact_guess_bound(Pure(1), [math.inf, 0.0]),
        ValueError,
        "prior must be non-negative and sum to 1, got entries",
    ),
    "distances of words": (
        lambda: pairwise_variation_bound([["a"]], [1.0]),
        ValueError,
        "distances must be an array of numbers",
    ),
    "a channel of words in a bound": (
        lambda: variation_matrix("x"),
        ValueError,
        "channel must be an array of numbers",
    ),
    "one release without a list": (
        lambda: composed_bound(Pure(1)),
        TypeError,
        "releases must be a sequence",
    ),
    "an observed nan": (
        lambda: variation_epsilon_bound(math.nan),
        ValueError,
        "observed must be finite",
    ),
    "an observed truth value": (
        lambda: uniform_guess_epsilon_bound(True, 3),
        TypeError,
        "observed must be a number",
    ),
    "steps of words": (
        lambda: calibrate_sgd(1.0, "many", size=3),
        ValueError,
        "steps must be a whole number",
    ),
    "an unknown kind of knowledge": (
        lambda: calibrate_sgd(1.0, 3, size=3, knowledge="some"),
        ValueError,
        "knowledge must be one of",
    ),
    "a size beyond the floats": (
        lambda: uniform_guess_bound(Pure(1), 10**400),
        ValueError,
        r"size must be at most 10\^300",
    ),
    "a size beyond the floats for the cap": (
        lambda: uniform_prior_bound(1.0, 10**400),
        ValueError,
        r"size must be at most 10\^300",
    ),
    "a size beyond the floats for a curve": (
        lambda: uniform_tradeoff_bound(Pure(1), 10**400),
        ValueError,
        r"size must be at most 10\^300",
    ),
}


@pytest.mark.parametrize("case", sorted(SENTENCES))
def test_bad_input_gets_one_clear_sentence(case):
    call, kind, words = SENTENCES[case]
    with pytest.raises(kind, match=words) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
