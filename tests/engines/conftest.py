"""A real engine for the tests: a local Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local Spark session in UTC."""
    from support.spark import spark_session

    with spark_session() as session:
        yield session
