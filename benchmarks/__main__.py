"""Run every benchmark and print one JSON line each: ``python -m benchmarks``."""

from __future__ import annotations

import importlib
import json
import sys

NAMES = (
    "bench_import",
    "bench_compose",
    "bench_noise",
    "bench_pld",
    "bench_gaussian_leakage",
    "bench_markov_leakage",
    "bench_side_by_side",
    "bench_local",
    "bench_scalar",
    "bench_risk",
    "bench_audit",
    "bench_ledger",
    "bench_release",
)


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all."""
    for name in names or list(NAMES):
        result = importlib.import_module(f"benchmarks.{name}").run()
        print(json.dumps({"benchmark": name, **result}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
