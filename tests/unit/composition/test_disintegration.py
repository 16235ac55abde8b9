"""A prior split along what an adversary knows."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.composition import disintegrate
from undertow.errors import MismatchError


def test_disintegration_puts_the_prior_back_together():
    prior, labels = [0.1, 0.4, 0.3, 0.2, 0.0], ["a", "b", "a", "b", "c"]
    split = disintegrate(prior, labels)
    assert set(split.weights) == {"a", "b"}  # c never occurs
    mixed = sum(
        split.weights[z] * np.array(split.conditionals[z]) for z in split.weights
    )
    assert mixed == pytest.approx(prior)
    with pytest.raises(MismatchError, match="got 1 for 2"):
        disintegrate([0.5, 0.5], ["a"])
    for bad in ([0.5, 0.6], [-0.5, 1.5], [float("nan"), 1.0]):
        with pytest.raises(ValueError, match="prior must hold"):
            disintegrate(bad, ["a", "b"])
