"""Errata of the background chapter, and the promise that every erratum has a test."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from undertow.mechanisms import LaplaceMechanism

ROOT = Path(__file__).parents[2]
SAME = 0.9  # the chance that two housemates have the same status


def advantage(says_sick) -> float:
    """Success on the sick minus false alarms, two correlated records, noisy count."""
    noise = LaplaceMechanism(1)

    def chance(own: int) -> float:
        laws = {2 * own: SAME, 1: 1 - SAME}  # the count, given one's own status
        return sum(weight * says_sick(noise, count) for count, weight in laws.items())

    return chance(1) - chance(0)


def test_E14_the_attack_says_sick_when_the_answer_is_large():
    at_least = advantage(lambda noise, count: 1 - float(noise.cdf(1, count)))
    at_most = advantage(lambda noise, count: float(noise.cdf(1, count)))
    assert at_least == pytest.approx(SAME * (1 - math.exp(-1)), rel=1e-12)
    assert at_least == pytest.approx(0.568908502946, abs=1e-12)
    # Read as printed the attacker would do worse than guessing.
    assert at_most == pytest.approx(-at_least, rel=1e-12)


def test_E17_a_non_negative_function_integrates_to_at_most_zero():
    rng = np.random.default_rng(17)
    measure, function = -rng.random(50), rng.random(50)
    integral = float(function @ measure)
    assert integral <= 0
    # As printed the bound would be the total mass, which a small function breaks.
    assert not integral <= float(measure.sum())


def test_every_erratum_of_the_page_has_a_test_of_its_name():
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| (E\d+) \|", page, re.M))
    sources = (ROOT / "tests" / "published").glob("test_*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    tested = set(re.findall(r"^def test_(E\d+)_", text, re.M))
    assert len(listed) == 22
    assert listed <= tested
