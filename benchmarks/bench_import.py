"""How long `import undertow` takes, against an interpreter that imports nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 7


def run() -> dict[str, float]:
    """Return seconds for the import, and the ratio to a bare interpreter."""
    bare = _median_seconds("pass")
    ours = _median_seconds("import undertow")
    everything = _median_seconds(
        "import undertow as u; [getattr(u, n) for n in u.__all__]"
    )
    return {
        "import_s": ours - bare,
        "import_and_touch_everything_s": everything - bare,
        "ratio_to_bare_interpreter": ours / bare,
    }


def _median_seconds(code: str) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
