r"""The estimation attack: guess the category that a whole crowd reports most.

The attacker sees the reports of everybody, the target among them, estimates the
distribution and names its mode. Success says how popular the mode is; the advantage is
what a single report moves it by, and falls with the size of the crowd.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_index
from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms.local.base import read_values
from undertow.mechanisms.local.grr import GeneralizedResponse
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.numeric.array import Floats, Indices
from undertow.risk.attacks.guess import sample_rows
from undertow.risk.finite import AttackRisk
from undertow.risk.threat import Prior

# Cells of the table of counts held at a time, and of the exact law of the counts.
_CELLS = 1 << 22
_STATES = 2_000_000


class CrowdSampler:
    """Draw the reports of a fixed crowd and one target, by randomised response.

    Parameters
    ----------
    protocol : GeneralizedResponse
        What everybody reports by.
    background : array_like of int
        Categories of the others, fixed over all draws.

    Notes
    -----
    An output is the vector of all reports, the target's last. Simulated: for studies.

    Examples
    --------
    >>> sampler = CrowdSampler(GeneralizedResponse(3, 30), [0, 1, 1])
    >>> sampler.sample(2, 2, rng=np.random.default_rng(0)).tolist()
    [[0, 1, 1, 2], [0, 1, 1, 2]]
    """

    __slots__ = ("background", "protocol")

    def __init__(self, protocol: GeneralizedResponse, background: ArrayLike) -> None:
        self.protocol = _response(protocol)
        self.background = read_values(background, protocol.categories)

    def sample(
        self, record: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw `size` vectors of reports with the target `record` in the crowd."""
        target = check_index(record, "record", size=self.protocol.categories)
        truths = np.tile(np.append(self.background, target), check_count(size, "size"))
        drawn = self.protocol.sample(truths, source=SimulatedSource(rng)).values
        return np.asarray(drawn, dtype=np.int64).reshape(size, -1)

    def __repr__(self) -> str:
        return f"CrowdSampler({self.protocol!r}, {len(self.background)} others)"


class EstimationGuess:
    r"""Name the mode of the distribution estimated from all reports.

    Parameters
    ----------
    protocol : GeneralizedResponse
        What everybody reports by.
    ties : {"random", "first"}, optional
        How to choose among modes: uniformly, or the lowest category.

    Notes
    -----
    Attack 3 of [1]_. The moment estimate :math:`(c_z/n - q)/(p - q)` grows with the
    count :math:`c_z`, so its mode is the modal report.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, section 5.3.4.

    Examples
    --------
    >>> attack = EstimationGuess(GeneralizedResponse(3, 1), ties="first")
    >>> reports = [[0, 2, 2, 1], [1, 0, 1, 0]]
    >>> attack.guess(reports, 0, rng=np.random.default_rng(0)).tolist()
    [2, 0]
    """

    __slots__ = ("protocol", "ties")

    def __init__(self, protocol: GeneralizedResponse, *, ties: str = "random") -> None:
        self.protocol = _response(protocol)
        self.ties = check_choice(ties, "ties", choices=("random", "first"))

    def guess(
        self, outputs: ArrayLike, known: int, *, rng: np.random.Generator
    ) -> Indices:
        """Draw a guess for each vector of reports; O(reports + categories) each."""
        crowds = self._reports(outputs)
        step = max(1, _CELLS // self.protocol.categories)
        drawn = [
            sample_rows(self._law(crowds[low : low + step]), rng=rng)
            for low in range(0, len(crowds), step)
        ]
        return np.concatenate([np.zeros(0, dtype=np.intp), *drawn])

    def guess_law(self, outputs: ArrayLike, known: int) -> Floats:
        """Return the law of the guess for each vector of reports."""
        return self._law(self._reports(outputs))

    def _reports(self, outputs: ArrayLike) -> NDArray[np.int64]:
        crowds = np.asarray(outputs)
        if crowds.ndim != 2 or crowds.shape[1] == 0:
            raise MismatchError(
                "outputs must be vectors of reports, of shape (n, reports), got shape "
                f"{crowds.shape}."
            )
        flat = read_values(crowds.reshape(-1), self.protocol.categories)
        return flat.reshape(crowds.shape)

    def _law(self, crowds: NDArray[np.int64]) -> Floats:
        rows, m = len(crowds), self.protocol.categories
        cells = crowds + m * np.arange(rows)[:, None]
        counts = np.bincount(cells.reshape(-1), minlength=rows * m).reshape(rows, m)
        return _modes(counts, self.ties)

    def __repr__(self) -> str:
        return f"EstimationGuess({self.protocol!r}, ties={self.ties!r})"


def exact_estimation_figures(
    protocol: GeneralizedResponse,
    prior: Prior,
    *,
    background: ArrayLike,
    ties: str = "random",
) -> AttackRisk:
    r"""Compute success, correction and advantage of the estimation attack exactly.

    Parameters
    ----------
    protocol : GeneralizedResponse
        What everybody reports by.
    prior : Prior
        Law of the target, one probability per category.
    background : array_like of int
        Categories of the others.
    ties : {"random", "first"}, optional
        How the attack chooses among modes.

    Raises
    ------
    NotApplicable
        If the counts take more than 2 million values: :math:`(n+1)^{m-1}` for n reports
        of m categories.

    Notes
    -----
    The law of the counts is a product of one polynomial per report; the target's is
    multiplied in last. Use `CrowdSampler` with an estimate where this refuses.

    Examples
    --------
    >>> figures = exact_estimation_figures(
    ...     GeneralizedResponse(2, "1.0986122886681098"),
    ...     Prior(2, [0.7, 0.3]),
    ...     background=[0, 0, 1],
    ...     ties="first",
    ... )
    >>> round(figures.success, 8), round(figures.advantage, 8)
    (0.69609375, 0.06234375)
    """
    crowd = read_values(background, _response(protocol).categories)
    rule = check_choice(ties, "ties", choices=("random", "first"))
    m, total = protocol.categories, len(crowd) + 1
    if len(prior) != m:
        raise MismatchError(
            f"prior must have one entry for each of the {m} categories, got "
            f"{len(prior)}."
        )
    if (total + 1) ** (m - 1) > _STATES:
        raise NotApplicable(
            f"the counts must take at most {_STATES} values, got {total} reports of "
            f"{m} categories; use CrowdSampler and an estimate."
        )
    laws = _mode_laws(protocol, crowd, rule)  # [target, guess]
    pmf = prior.pmf
    overall = pmf @ laws
    gains = pmf * (np.diagonal(laws) - overall)
    return AttackRisk(
        math.fsum((pmf * np.diagonal(laws)).tolist()),
        math.fsum((pmf * overall).tolist()),
        math.fsum(gains.tolist()),
    )


def _mode_laws(
    protocol: GeneralizedResponse, crowd: NDArray[np.int64], ties: str
) -> Floats:
    """Return the law of the named mode for each target."""
    m, total = protocol.categories, len(crowd) + 1
    # Axis z counts the reports of z; those of the last category are the rest.
    counts = np.zeros((total + 1,) * (m - 1))
    counts[(0,) * (m - 1)] = 1.0
    for truth in crowd.tolist():
        counts = _add_report(counts, protocol, truth)
    axes = np.indices(counts.shape).reshape(m - 1, -1)
    full = np.vstack([axes, total - axes.sum(axis=0)]).T
    possible = full[:, -1] >= 0
    modes = np.zeros((len(full), m))
    modes[possible] = _modes(full[possible], ties)
    return np.stack(
        [_add_report(counts, protocol, z).reshape(-1) @ modes for z in range(m)]
    )


def _add_report(counts: Floats, protocol: GeneralizedResponse, truth: int) -> Floats:
    last = protocol.categories - 1
    keep, noise = float(protocol.keep), float(protocol.noise)
    added = counts * (keep if truth == last else noise)
    for z in range(last):
        ahead = [slice(None)] * last
        behind = [slice(None)] * last
        ahead[z], behind[z] = slice(1, None), slice(None, -1)
        added[tuple(ahead)] += counts[tuple(behind)] * (keep if z == truth else noise)
    return added


def _modes(counts: NDArray[Any], ties: str) -> Floats:
    """Return the law of the named mode for each row of counts."""
    top = counts == counts.max(axis=1, keepdims=True)
    if ties == "first":
        law = np.zeros(top.shape)
        law[np.arange(len(top)), top.argmax(axis=1)] = 1.0
        return law
    return np.asarray(top / top.sum(axis=1, keepdims=True))


def _response(protocol: GeneralizedResponse) -> GeneralizedResponse:
    if not isinstance(protocol, GeneralizedResponse):
        raise TypeError(
            "protocol must be a GeneralizedResponse, whose modal report is the mode of "
            f"the estimate, got {type(protocol).__name__}."
        )
    return protocol
