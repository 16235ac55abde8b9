"""Noise for the same promise: our calibrations beside the field's, as ratios.

``python -m benchmarks.bench_side_by_side FILE.png`` draws the figure of the theory page
on comparators instead.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from undertow_studies.comparators import CASES, side_by_side

TARGET = 1.0


def run() -> dict[str, Any]:
    result: dict[str, Any] = {"target": TARGET}
    for case in CASES:
        rows = side_by_side(TARGET, cases=[case])
        kept = [
            row.noise_scale
            for row in rows
            if row.is_guarantee and row.method != "independent"
        ]
        least = min(kept)
        result[case] = {
            row.method: (
                round(row.noise_scale / least, 4)
                if math.isfinite(row.noise_scale)
                else "infeasible"
            )
            for row in rows
        }
        result[f"{case}_least_scale"] = least
    return result


def draw(path: Path) -> None:
    from matplotlib.figure import Figure

    from undertow_studies.picture import plot_scales

    columns = 2
    lines = math.ceil(len(CASES) / columns)
    figure = Figure(figsize=(12, 3.4 * lines), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for ax, case in zip(grid, CASES, strict=False):
        plot_scales(side_by_side(TARGET, cases=[case]), ax=ax)
        ax.set_ylabel(case)
    for ax in grid[len(CASES) :]:
        ax.remove()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
