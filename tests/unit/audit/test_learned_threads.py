"""A learned score uses one thread, so that workers do not wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.audit.event import learned_scores

pytestmark = pytest.mark.extra


def test_classifiers_are_fitted_and_asked_on_one_thread(monkeypatch):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_info, threadpool_limits

    seen = []

    def watched(method):
        def call(*given, **named):
            seen.extend(pool["num_threads"] for pool in threadpool_info())
            return method(*given, **named)

        return call

    for name in ("fit", "decision_function"):
        plain = getattr(LogisticRegression, name)
        monkeypatch.setattr(LogisticRegression, name, watched(plain))
    sample = np.random.default_rng(1).normal(size=(100, 2))
    with threadpool_limits(limits=2):
        linear, _ = learned_scores(sample + 1, sample, seed=0)
        fitted = len(seen)
        linear(sample)
    assert 0 < fitted < len(seen)
    assert set(seen) == {1}
