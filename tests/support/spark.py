"""A local Spark with one thread."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["spark_frame", "spark_session"]


@contextmanager
def spark_session() -> Iterator[Any]:
    """Start Spark in this process and stop it at the end."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[1]").appName("undertow-tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def spark_frame(session: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return the rows of the random tables as a frame."""
    from pyspark.sql import types

    kinds = {
        "person": types.LongType(),
        "zone": types.StringType(),
        "n": types.LongType(),
        "amount": types.DecimalType(18, 6),
        "x": types.DoubleType(),
        "ts": types.TimestampType(),
        "naive": types.TimestampNTZType(),
        "day": types.DateType(),
        "flag": types.BooleanType(),
    }
    schema = types.StructType([types.StructField(n, k) for n, k in kinds.items()])
    return session.createDataFrame([tuple(r[n] for n in kinds) for r in rows], schema)
