"""Sets of models, what-ifs and plain words."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate, calibrate_over, explain, what_if
from undertow.correlation.gaussian.model import Gaussian
from undertow.correlation.group import Blocks, GeneralTheorem, Independent
from undertow.correlation.leak import leakage
from undertow.correlation.query import CountQuery, LinearQuery, LipschitzQuery
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import InfeasibleTarget, NotApplicable


class Curve(LeakageTheorem):
    """Half of the group's bound, with an error of its own for small targets."""

    name = "curve"
    source = "a test"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(
            epsilon * max(1, model.largest_group / 2), self.source, method=self.name
        )


class Modelled(Blocks):
    def methods(self):
        return (Curve(), GeneralTheorem())


class Impossible(Blocks):
    def methods(self):
        return (Never(),)


class Never(LeakageTheorem):
    name = "never"
    source = "a test"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(epsilon + 4, self.source)

    def invert(self, model, target, /, *, query=None):
        raise InfeasibleTarget(f"target must be above 4, got {target}.", least=4.0)


class Wide(Blocks):
    value_range = (0.0, 7.0)


class Narrow(Blocks):
    value_range = (0.0, 2.0)


def test_a_set_of_models_takes_the_smallest_level():
    models = {"trio": Blocks([3]), "family": Blocks([6]), "pair": Blocks([2])}
    found = calibrate_over(models, 1.2, query=CountQuery())
    assert found.epsilon == pytest.approx(0.2, rel=1e-15)
    assert found.noise_scale == pytest.approx(5.0, rel=1e-15)
    assert found.achieves.value <= 1.2
    assert found.achieves.model.startswith("the worst of 3 models: 6 records")
    for model in models.values():
        assert leakage(model, found.epsilon).value <= 1.2
    named = {a.name: a.parameter for a in found.alternatives}
    assert named["pair"] == 0.6
    assert named["trio"] == pytest.approx(0.4)


def test_one_model_is_its_own_calibration():
    model = Blocks([3])
    found = calibrate_over([model], 1.5)
    assert found.epsilon == calibrate(model, 1.5).epsilon
    assert found.achieves.model == model.summary


def test_the_largest_sensitivity_sets_the_noise():
    models = [Wide([2]), Narrow([4])]
    found = calibrate_over(models, 1.0, query=LinearQuery())
    assert (found.epsilon, found.sensitivity) == (0.25, 7.0)
    assert found.noise_scale == 28.0
    assert found.accuracy.alpha == pytest.approx(28 * math.log(20), rel=1e-12)
    for model in models:  # the level of the noise under each model
        level = LinearQuery().sensitivity(model) / found.noise_scale
        assert leakage(model, level, query=LinearQuery()).value <= 1.0


def test_the_floor_of_a_set_is_the_highest():
    assert calibrate_over([Blocks([3]), Blocks([5])], 1.0).floor == 2.5
    assert calibrate_over([Blocks([3])], 1.0, beta=0.5).floor is None


def test_a_set_fails_if_one_model_fails():
    with pytest.raises(NotApplicable, match=r"no method reaches the target"):
        calibrate_over([Blocks([2]), Impossible([2])], 1.0)


def test_a_set_is_not_empty():
    with pytest.raises(ValueError, match=r"at least one model"):
        calibrate_over([], 1.0)
    with pytest.raises(ValueError, match=r"at least one model"):
        what_if(1.0, {})


def test_what_if_keeps_the_order_and_falls_with_dependence():
    rows = what_if(1.0, {f"m = {m}": Blocks([m]) for m in (1, 2, 4, 8)})
    assert [row.label for row in rows] == ["m = 1", "m = 2", "m = 4", "m = 8"]
    assert [row.epsilon for row in rows] == [1.0, 0.5, 0.25, 0.125]
    assert [row.noise_scale for row in rows] == [1.0, 2.0, 4.0, 8.0]
    assert rows[3].alpha == pytest.approx(8 * math.log(20), rel=1e-12)
    assert {row.method for row in rows} == {"general"}


def test_what_if_says_why_a_model_cannot_be_calibrated():
    (row,) = what_if(1.0, {"rare moves": Impossible([2])})
    assert (row.epsilon, row.noise_scale, row.alpha) == (0.0, math.inf, math.inf)
    assert "above 4" in row.note
    assert json.dumps(row.to_dict()["note"])


@pytest.mark.parametrize("target", [0, -1, math.nan])
def test_a_promise_is_positive(target):
    with pytest.raises(ValueError, match=r"target must be positive"):
        what_if(target, {"a": Blocks([2])})


def test_the_words_name_model_attackers_scope_and_trust():
    query = LinearQuery(clip=(60, 80))
    text = explain(calibrate(Blocks([3, 3]), 1.0, query=query))
    assert '"6 records in 2 independent groups of at most 3"' in text
    assert "anyone who knows any subset of the other records" in text
    assert "at most e^1 (even odds become at most 73.11 %)" in text
    assert "both secrets in [60, 80]" in text
    assert "Taken on trust: the groups are mutually independent." in text


def test_the_words_say_error_level_and_floor():
    text = explain(calibrate(Blocks.of_size(5, groups=2000), 1.0))
    assert "The release is 0.2-DP" in text
    assert "at most e^0.2" in text
    assert "95 % of errors are below 14.98 (Laplace noise of scale 5, 5 times" in text
    assert "This is group scaling" in text
    assert "95 % of errors within 2.5." in text


def test_the_words_say_what_group_scaling_would_need():
    text = explain(calibrate(Modelled([8]), 1.0))
    assert "the same promise would need noise of scale 8." in text
    assert "This is group scaling" not in text


def test_the_words_leave_out_what_is_not_there():
    text = explain(calibrate(Independent(5), 4.0))
    assert "group sizes" not in text
    assert "No mechanism" not in text  # 4 is above the threshold for 95 %
    assert "almost certain" not in text


def test_a_high_level_is_called_what_it_is():
    assert "almost certain" in explain(calibrate(Independent(5), 8.0))


def test_the_words_mention_other_assumptions():
    others = {"families had 6 members": Blocks([6]), "moves are rare": Impossible([2])}
    rows = what_if(1.0, others)
    text = explain(calibrate(Blocks([5]), 1.0), rows=rows)
    assert "If families had 6 members: use epsilon = 0.1666 (noise scale 6," in text
    assert "If moves are rare: the promise cannot be kept this way" in text


def test_a_set_of_models_covers_only_what_each_covers():
    rho = np.full((5, 5), 0.05) + 0.95 * np.eye(5)
    query = LipschitzQuery(clip=(0, 1))
    found = calibrate_over(
        {"family": Gaussian(rho), "pairs": Blocks([2, 2, 1])}, 1.0, query=query
    )
    assert found.epsilon == 0.5  # of the pairs, whose bound covers every pair
    assert found.achieves.scope.summary == "both secrets in [0, 1]"
    trusted = " ".join(found.achieves.unchecked)
    assert "Gaussian" in trusted
    assert "mutually independent" in trusted
