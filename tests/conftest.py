"""Shared set-up of the tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Two cores shared with other workers: no deadline, and a run that can be repeated.
settings.register_profile(
    "undertow",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("undertow")
