"""A release on DuckDB against hand-written SQL of the same aggregates, as ratios.

``python -m benchmarks.bench_release --rows 10000000`` chooses the size, ``--full``
takes 10^8 rows. The rows are generated into a DuckDB file in a temporary folder, 10 to
25 bytes each, and removed. Every contender runs in a process of its own, whose peak
memory is reported; contenders take turns. Hand-written SQL with the same bounds numbers
each person's rows by a window function, for a share of the people at a time: for all of
them at once 10^8 rows do not fit 12 GB of memory and 40 GB of disk. SQL without bounds
shows what bounding costs; it is not private at any epsilon.

``--one-row`` asks whether the running time tells of one row: everybody has as many rows
as the bound, or one person has one more, or a person of one row is added. It gives the
chance that the longer of two runs is the one with the row; one half tells nothing.

``--peer PYTHON`` runs the same job in OpenDP's Polars interface and in PipelineDP's
local mode where that interpreter has them, on `PEER_ROWS` rows of Parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS, FULL, PEER_ROWS = 2_000_000, 10**8, 10**7
ROUNDS, LARGE = 3, 5 * 10**7
"""So many turns each; from LARGE rows on, one."""

APART, TRIALS = 400_000, 30
"""Rows and turns where one row is looked for."""

MEMORY_MB = 10_000
"""What hand-written SQL may use, and as much on the disk; a release takes 3000 MB."""

AT_A_TIME = 10**7
"""So many rows are numbered at a time by hand-written SQL."""

BOUNDS = {"tight": 50, "loose": 200}
"""With 100 rows a person on average, tight ranks all rows and loose a quarter."""

GENERATE = """
CREATE TABLE visits AS
SELECT CAST(floor({people} * u * u) AS INTEGER) AS person,
       CAST(hash(i, 2) % 24 AS INTEGER) AS hour,
       CAST(hash(i, 3) % 40 AS INTEGER) AS zone,
       CAST(hash(i, 4) % 1000 AS INTEGER) AS steps
FROM (SELECT range AS i, (hash(range, 1) % 1048576) / 1048576.0 AS u
      FROM range({rows}))
"""

ALIKE = """
CREATE TABLE visits AS
SELECT CAST(range % {people} AS INTEGER) AS person,
       CAST(hash(range, 2) % 24 AS INTEGER) AS hour,
       CAST(hash(range, 3) % 40 AS INTEGER) AS zone
FROM range({rows})
"""

RELEASE = """
[source]
table = "visits.duckdb"
relation = "visits"
unit = "person"
[promise]
granularity = "user"
epsilon = "1"
[bounds]
rows_per_unit = {bound}
[[queries]]
name = "active by hour"
select = "count"
where = "steps > 0"
by = ["hour"]
keys = {{ hour = "0..23" }}
[[queries]]
name = "steps by zone"
select = "sum"
column = "steps"
low = 0
high = 500
by = ["zone"]
keys = {{ zone = "0..39" }}
"""

OURS = """
import undertow.release as release
asked = release.load("release-{bound}.toml")
with asked.create_ledger("{ledger}") as ledger:
    asked.run(ledger=ledger, output="{ledger}.out")
"""

QUERIES = """
SELECT hour, count(*) FROM {table} WHERE steps > 0 GROUP BY hour;
SELECT zone, sum(least(greatest(steps, 0), 500)) FROM {table} GROUP BY zone;
"""

SQL = """
import duckdb
link = duckdb.connect("visits.duckdb", read_only=True)
link.execute("SET memory_limit = '{memory}MB'")
link.execute("SET temp_directory = 'spill'")
link.execute("SET max_temp_directory_size = '10GB'")
link.execute("SET preserve_insertion_order = false")
for query in '''{queries}'''.split(";"):
    if query.strip():
        link.execute(query).fetchall()
"""

BOUNDED = """
CREATE TEMP TABLE bounded (hour INTEGER, zone INTEGER, steps INTEGER);
"""

SHARE = """
INSERT INTO bounded
SELECT hour, zone, steps FROM visits WHERE person % {shares} = {share} QUALIFY
row_number() OVER (PARTITION BY person ORDER BY hash(hour, zone, steps, 'k')) <= {bound}
"""

TIMED = """
import json, resource, time
started = time.perf_counter()
{work}
seconds = time.perf_counter() - started
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime]))
"""

OPENDP = """
import warnings
warnings.simplefilter("ignore")
import opendp.prelude as dp
import polars as pl
dp.enable_features("contrib")
hours = pl.LazyFrame({{"hour": list(range(24))}}, schema_overrides={{"hour": pl.Int32}})
context = dp.Context.compositor(
    data=pl.scan_parquet("visits.parquet"),
    privacy_unit=dp.unit_of(
        contributions=[dp.polars.Bound(per_group={bound})], identifier=pl.col("person")
    ),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
)
rows = context.query().truncate_per_group({bound}, keep="sample")
rows.filter(pl.col("steps") > 0).group_by("hour").agg(dp.len()).with_keys(
    hours
).release().collect()
"""

UNDERTOW_PEER = """
import undertow.release as release
asked = release.load("peer.toml")
with asked.create_ledger("{ledger}") as ledger:
    asked.run(ledger=ledger, output="{ledger}.out")
"""

PIPELINE = """
import pipeline_dp as pdp
import polars as pl
table = pl.scan_parquet("visits.parquet").filter(pl.col("steps") > 0)
rows = table.select("person", "hour").collect().rows()
accountant = pdp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-9)
engine = pdp.DPEngine(accountant, pdp.LocalBackend())
parameters = pdp.AggregateParams(
    metrics=[pdp.Metrics.COUNT],
    max_partitions_contributed=24,
    max_contributions_per_partition=max(1, {bound} // 24),
)
extractors = pdp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: 0,
)
result = engine.aggregate(rows, parameters, extractors, public_partitions=range(24))
accountant.compute_budgets()
list(result)
"""


def run(rows: int = ROWS) -> dict[str, Any]:
    """Return seconds, ratios and peak memory of a release and of plain SQL."""
    with tempfile.TemporaryDirectory(prefix="undertow-bench-") as name:
        folder = Path(name)
        _generate(folder, rows)
        result: dict[str, Any] = {"rows": rows, "people": rows // 100}
        for label, bound in BOUNDS.items():
            found = _bound(folder, bound, rows)
            result |= {f"{label}_{name}": value for name, value in found.items()}
    return result


def _generate(folder: Path, rows: int, *, parquet: bool = False) -> None:
    import duckdb

    with duckdb.connect(str(folder / "visits.duckdb")) as link:
        link.execute(f"SET memory_limit = '{MEMORY_MB}MB'")
        link.execute("SET preserve_insertion_order = false")
        link.execute(GENERATE.format(rows=rows, people=rows // 100))
        if parquet:
            target = folder / "visits.parquet"
            link.execute(f"COPY visits TO '{target}' (FORMAT parquet)")


def _bounding(bound: int, rows: int) -> str:
    """Return hand-written SQL of the release."""
    shares = max(1, rows // AT_A_TIME)
    parts = [SHARE.format(shares=shares, share=i, bound=bound) for i in range(shares)]
    return BOUNDED + ";".join([*parts, QUERIES.format(table="bounded")])


def _bound(folder: Path, bound: int, rows: int) -> dict[str, Any]:
    """Let the release, SQL with bounding and SQL without it take turns."""
    (folder / f"release-{bound}.toml").write_text(RELEASE.format(bound=bound))
    bounding, turns = _bounding(bound, rows), 1 if rows >= LARGE else ROUNDS
    scripts = {
        "release": OURS,
        "sql_plain": SQL.replace("{queries}", QUERIES.format(table="visits")),
        "sql_bounded": SQL.replace("{queries}", bounding),
    }
    result: dict[str, Any] = {name: [] for name in scripts}
    for turn in range(turns):
        for name, script in scripts.items():
            ledger = f"ledger-{bound}-{turn}"
            work = script.format(bound=bound, ledger=ledger, memory=MEMORY_MB)
            try:
                result[name].append(_timed(folder, work))
            except RuntimeError as fault:
                result[f"{name}_failed"] = str(fault).partition("Error: ")[2][:80]
            print(bound, name, result[name][-1:], file=sys.stderr, flush=True)
    return _ratios({name: runs for name, runs in result.items() if runs})


def _ratios(result: dict[str, Any]) -> dict[str, Any]:
    """Return medians of seconds, memory and processor time, and the ratios."""
    shown: dict[str, Any] = {}
    for name, runs in result.items():
        if isinstance(runs, str):
            shown[name] = runs
            continue
        for at, unit in enumerate(("s", "peak_mb", "processor_s")):
            shown[f"{name}_{unit}"] = statistics.median(run[at] for run in runs)
    for name in ("sql_plain", "sql_bounded"):
        for unit in ("s", "processor_s"):
            if f"{name}_{unit}" in shown:
                ratio = shown[f"release_{unit}"] / shown[f"{name}_{unit}"]
                shown[f"release_over_{name}_{unit}"] = ratio
    return shown


def _timed(folder: Path, work: str, python: str = sys.executable) -> list[float]:
    """Return seconds, peak in MB and processor seconds of a script of its own."""
    code = TIMED.format(work=work)
    done = subprocess.run(
        [python, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [float(number) for number in json.loads(done.stdout.splitlines()[-1])]


def peers(python: str, rows: int = PEER_ROWS) -> dict[str, Any]:
    """Return seconds of one count by hour here and in the peers that are installed."""
    bound = BOUNDS["tight"]
    with tempfile.TemporaryDirectory(prefix="undertow-bench-") as name:
        folder = Path(name)
        _generate(folder, rows, parquet=True)
        one = RELEASE.partition('[[queries]]\nname = "steps')[0].format(bound=bound)
        one = one.replace("visits.duckdb", "visits.parquet")
        one = one.replace('relation = "visits"\n', "")
        (folder / "peer.toml").write_text(one)
        result: dict[str, Any] = {"rows": rows}
        ours = _timed(folder, UNDERTOW_PEER.format(ledger="ledger"))
        result |= {"undertow_s": ours[0], "undertow_peak_mb": ours[1]}
        for peer, script in (("opendp", OPENDP), ("pipeline_dp", PIPELINE)):
            try:
                seconds, peak, _ = _timed(folder, script.format(bound=bound), python)
            except RuntimeError as fault:
                result[peer] = str(fault).strip().splitlines()[-1]
                continue
            result |= {f"{peer}_s": seconds, f"{peer}_peak_mb": peak}
            print(peer, seconds, peak, file=sys.stderr, flush=True)
            result[f"{peer}_over_undertow"] = seconds / ours[0]
    return result


def one_row(rows: int = APART, trials: int = TRIALS) -> dict[str, Any]:
    """Return how well the running times of a reading tell of one row."""
    import duckdb

    from undertow.release.engine.job import Bounding, Grid, Job
    from undertow.release.engine.pipeline import run_jobs
    from undertow.release.source.opening import open_source

    bound = BOUNDS["tight"]
    added = {"at the bound": "", "one above": "0, 3, 5", "another": "-1, 3, 5"}
    jobs = [
        Job(by, ("rows",), by=(by,), grid=Grid((by,), (tuple(range(size)),)))
        for by, size in (("hour", 24), ("zone", 40))
    ]
    seconds: dict[str, list[float]] = {name: [] for name in added}
    with tempfile.TemporaryDirectory(prefix="undertow-bench-") as folder:
        for name, row in added.items():
            with duckdb.connect(f"{folder}/{name}.duckdb") as link:
                link.execute(ALIKE.format(rows=rows, people=rows // bound))
                if row:
                    link.execute(f"INSERT INTO visits VALUES ({row})")
        for turn in range(trials + 1):
            for name in random.sample(list(added), len(added)):
                started = time.perf_counter()
                with open_source(f"{folder}/{name}.duckdb#visits") as source:
                    run_jobs(source, jobs, bounding=Bounding("person", bound))
                if turn:  # the first one warms up
                    seconds[name].append(time.perf_counter() - started)
    first, *others = added
    shown: dict[str, Any] = {"rows": rows, "trials": trials}
    shown |= {f"{name} s": statistics.median(seconds[name]) for name in added}
    for name in others:
        pairs = [(x, y) for x in seconds[first] for y in seconds[name]]
        won = sum((x < y) + (x == y) / 2 for x, y in pairs)
        shown[f"{name}, told apart"] = won / len(pairs)
    return shown


def main() -> None:
    """Read the size from the command line and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--one-row", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows = FULL if given.full else given.rows
    if given.one_row:
        print(json.dumps(one_row()))
    elif given.peer is not None:
        print(json.dumps(peers(given.peer, PEER_ROWS if rows == ROWS else rows)))
    else:
        print(json.dumps(run(rows)))


if __name__ == "__main__":
    main()
