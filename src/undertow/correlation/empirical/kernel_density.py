"""The simulation of the master's thesis: kernel densities and a percentile.

Kept to redraw its figures. The estimate is biased upwards where one density is small,
so it is neither a lower nor an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_probability
from undertow.correlation.empirical.attackers import random_trial
from undertow.correlation.empirical.black_box import BlackBox
from undertow.correlation.model import Model

__all__ = ["KernelSettings", "kernel_density", "kernel_leakage"]

Floats = NDArray[np.float64]
_BINS = 4096


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """Sizes of the simulation of the master's thesis, section 3.1.2.

    Parameters
    ----------
    attackers : int
        Attackers drawn at random.
    samples : int
        Outputs drawn for each secret.
    points : int
        Outputs at which the two densities are compared.
    quantiles : pair of float
        Outputs between these quantiles of the first sample are compared.
    percentile : float
        Of the attackers' estimates; the maximum is not repeatable.
    include_empty : bool
        Whether attackers who know nothing are drawn; the thesis leaves them out.
    """

    attackers: int = 1000
    samples: int = 100_000
    points: int = 1000
    quantiles: tuple[float, float] = (0.005, 0.995)
    percentile: float = 99.0
    include_empty: bool = False

    def __post_init__(self) -> None:
        check_count(self.attackers, "attackers")
        check_count(self.samples, "samples", minimum=100)
        check_count(self.points, "points", minimum=2)
        for quantile in self.quantiles:
            check_probability(quantile, "quantile")


def kernel_leakage(
    model: Model,
    mechanism: BlackBox,
    *,
    pairs: Sequence[tuple[Any, Any]],
    settings: KernelSettings | None = None,
    rng: np.random.Generator,
) -> float:
    """Return the percentile over random attackers of kernel-density log ratios.

    Notes
    -----
    Section 3.1.2 of M. Lange, *Utility of Semantic Privacy Notions for Correlated
    Data*, master's thesis, KIT, 2024, which calls it a lower bound; it is not one.
    """
    chosen = settings if settings is not None else KernelSettings()
    found = []
    for _ in range(chosen.attackers):
        trial = random_trial(
            model, pairs=pairs, include_empty=chosen.include_empty, rng=rng
        )
        outputs = [
            np.asarray(
                mechanism(
                    model.sample_given(trial.evidence(x), chosen.samples, rng=rng), rng
                ),
                dtype=float,
            )
            for x in trial.pair
        ]
        low, high = np.quantile(outputs[0], chosen.quantiles)
        places = rng.uniform(low, high, chosen.points)
        first, second = (kernel_density(sample, places) for sample in outputs)
        both = (first > 0) & (second > 0)
        ratios = np.abs(np.log(first[both] / second[both]))
        found.append(float(ratios.max()) if len(ratios) else 0.0)
    return float(np.percentile(found, chosen.percentile))


def kernel_density(sample: Floats, places: Floats) -> Floats:
    r"""Return the self-consistent kernel density estimate at some places.

    .. math:: \hat\phi(t) = \frac{N}{2(N-1)}\,\Delta(t)
       \Bigl(1 + \sqrt{1 - \tfrac{4(N-1)}{N^2 |\Delta(t)|^2}}\Bigr)

    with :math:`\Delta` the empirical characteristic function, on the frequencies
    around zero where the root is real.

    Notes
    -----
    A. Bernacchia and S. Pigolotti, *Self-consistent method for density estimation*,
    2011. Outputs are put on a grid first, so the cost is that of one Fourier transform.
    """
    n = len(sample)
    low, high = float(sample.min()), float(sample.max())
    room = max(high - low, 1e-12)
    start, width = low - room / 2, 2 * room / _BINS
    counts, _ = np.histogram(sample, bins=_BINS, range=(start, start + 2 * room))
    transform = np.fft.rfft(counts) / n
    power = np.abs(transform) ** 2
    kept = power >= 4 * (n - 1) / n**2
    last = int(np.argmin(kept)) if not kept.all() else len(kept)
    root = np.sqrt(np.clip(1 - 4 * (n - 1) / (n**2 * power[:last]), 0, None))
    smooth = np.zeros_like(transform)
    smooth[:last] = n / (2 * (n - 1)) * transform[:last] * (1 + root)
    density = np.fft.irfft(smooth, _BINS) / width
    centres = start + (np.arange(_BINS) + 0.5) * width
    found = np.interp(places, centres, density, left=0.0, right=0.0)
    return np.asarray(np.where(found > math.ulp(0.0), found, 0.0))
