r"""The exact risk of a noisy number: the integral of the best guess.

.. math:: \mathrm{RAD}^* = \int \sum_z \max_g \sum_{x :\, a(x) = z,\, \ell(g,x)\le\eta}
   \pi_x\,(p(\theta\mid x) - p(\theta))\, d\theta

A channel under a threat is first reduced to sums over the possible records. Laplace
noise: exact, by the envelope of lines between neighbouring answers, in closed form.
Gaussian noise: enclosed from both sides until the two differ by at most a tolerance;
the upper value is returned. A record that is known is in an interval around its answer,
between two roots.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_positive
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Floats, Indices, read_floats
from undertow.numeric.rounding import UNIT, inflate
from undertow.results import Witness
from undertow.risk.channel import Channel
from undertow.risk.finite import WORK_LIMIT, AttackRisk, Decision, Risk, attack_risk
from undertow.risk.number import ScalarChannel, ScalarLaw, as_scalar
from undertow.risk.success import HitSets
from undertow.risk.threat import Threat

TOLERANCE = 1e-9
"""Largest gap between the two sides for Gaussian noise, by default."""

# Of the gap, per record; see the page on scalar risk.
_ROUNDING = 2.0**-43
_LEAST = 1e-300

_GAIN = "the guess of largest gain, posterior minus prior"
_UNCHECKED = ("the target is independent of the other records", "the prior is public")


def scalar_advantage(
    channel: ScalarChannel, threat: Threat, *, tolerance: float = TOLERANCE
) -> Risk:
    r"""Compute the advantage of the best attack on a number with noise.

    Parameters
    ----------
    channel : ScalarChannel
        Mechanism and answers.
    threat : Threat
        Prior, success rule and knowledge, of any kind.
    tolerance : float, optional
        For Gaussian noise, the gap between the two sides that is aimed at; the gap
        reached is in ``witness.details["gap"]``.

    Returns
    -------
    Risk
        Never below the exact value. Above it by rounding only for Laplace noise, by at
        most the gap for Gaussian noise; not marked tight where the gap is more than
        twice the tolerance.

    Notes
    -----
    Theorem 5.3 of [1]_, the sum over outputs read as an integral; envelope and
    enclosure are proved on the page *Risk of a noisy number*. Clamping to an interval
    that holds all answers changes nothing for Laplace noise; a narrower one lowers the
    risk. Checked: finite answers, one for each record. Not checkable: independent
    records, a public prior.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.threat import Prior
    >>> hours = Prior.uniform(range(101))
    >>> channel = ScalarChannel(LaplaceMechanism(100), range(101))
    >>> threat = Threat.location(hours, eta=40, distance="absolute")
    >>> round(scalar_advantage(channel, threat).value, 5)
    0.11028
    """
    return advantage_curve([channel], threat, tolerance=tolerance)[0]


def advantage_curve(
    channels: Sequence[ScalarChannel], threat: Threat, *, tolerance: float = TOLERANCE
) -> tuple[Risk, ...]:
    """Compute the advantage for many channels under one threat.

    Parameters
    ----------
    channels : sequence of ScalarChannel
        Such as one mechanism at many scales.
    threat : Threat
        Prior, success rule and knowledge; read once.
    tolerance : float, optional
        As in :func:`scalar_advantage`.

    Returns
    -------
    tuple of Risk
        What :func:`scalar_advantage` gives for each channel.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.threat import Prior
    >>> tenths = [k / 10 for k in range(11)]
    >>> threat = Threat(Prior.uniform(11))
    >>> noise = [LaplaceMechanism(1), LaplaceMechanism("0.2")]
    >>> channels = [ScalarChannel(n, tenths) for n in noise]
    >>> [round(risk.value, 6) for risk in advantage_curve(channels, threat)]
    [0.044337, 0.20109]
    """
    gap = check_positive(tolerance, "tolerance")
    for channel in channels:
        as_scalar(channel, threat.support)
    setting = Setting.of(threat, centred=True)
    ceiling, words = threat.ceiling, threat.summary
    risks = []
    for channel, found in zip(channels, _solve(channels, setting, gap), strict=True):
        most = min(ceiling, _widest(channel, setting) * ceiling)
        value = min(max(0.0, found.upper), most)
        above = max(0.0, value - max(0.0, found.lower))
        risks.append(
            Risk(
                value,
                "thesis, Theorem 5.3",
                _UNCHECKED,
                _checked(channel.law, above),
                witness=Witness("adversary", _GAIN, {"gap": above}),
                tight=above <= 2 * gap + _ROUNDING * len(setting.pmf),
                threat=words,
                ceiling=ceiling,
            )
        )
    return tuple(risks)


def scalar_success_rate(
    channel: ScalarChannel, threat: Threat, *, tolerance: float = TOLERANCE
) -> Risk:
    r"""Compute the success probability of the best guess on a number with noise.

    Parameters
    ----------
    channel : ScalarChannel
        Mechanism and answers.
    threat : Threat
        Prior, success rule and knowledge.
    tolerance : float, optional
        As in :func:`scalar_advantage`.

    Returns
    -------
    Risk
        Its `baseline` is the best success without the output.

    Notes
    -----
    A success probability is not a risk: with a wide threshold it is 1 whatever the
    mechanism does.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.threat import Prior
    >>> channel = ScalarChannel(LaplaceMechanism(1), [0, 2])
    >>> round(scalar_success_rate(channel, Threat(Prior.uniform(2))).value, 6)
    0.81606
    """
    gap = check_positive(tolerance, "tolerance")
    as_scalar(channel, threat.support)
    (found,) = Problem([channel], Setting.of(threat, centred=False)).solve(gap)
    value = min(1.0, found.upper)
    above = max(0.0, value - found.lower)
    summary = "the guess of largest posterior"
    return Risk(
        value,
        "Bayes vulnerability",
        _UNCHECKED,
        _checked(channel.law, above),
        "success",
        Witness("adversary", summary, {"gap": above}),
        above <= 2 * gap + _ROUNDING * threat.prior.pmf.size,
        threat=threat.summary,
        baseline=threat.informed_guess,
    )


def _solve(
    channels: Sequence[ScalarChannel], setting: Setting, tolerance: float
) -> list[Enclosure]:
    """Solve runs of Laplace channels on the same answers together."""

    def kind(channel: ScalarChannel) -> tuple[str, bytes]:
        return channel.law.family, channel.answers.tobytes()

    runs = itertools.groupby(channels, key=kind)
    return [e for _, run in runs for e in Problem(list(run), setting).solve(tolerance)]


def _checked(law: ScalarLaw, gap: float) -> tuple[str, ...]:
    way = "closed-form breakpoints" if law.family == "laplace" else "two-sided sums"
    return (
        "answers are finite, one for each record",
        f"{way}: an attack attains this value less {gap:.1e}",
    )


def _widest(channel: ScalarChannel, setting: Setting) -> float:
    """Return the total variation of the widest pair: Theorem 5.2.

    Clamping only post-processes; truncated noise has another one, which is not used.
    """
    if channel.law.kind == "truncated":
        return 1.0
    answers = channel.answers[setting.possible]
    apart = float(answers.max() - answers.min())
    if apart == 0:
        return 0.0
    # Below the least of the floats the ratio loses its digits.
    return min(1.0, inflate(channel.law.variation(apart), 1e-12) + _LEAST)


# Exact figures of a given attack on a number with noise.
#
# An attack that answers by where the output falls sees only the cell: cut at
# :math:`\theta_1 < \dots < \theta_k`, the line is a finite channel of k + 1 outputs
# whose law is differences of the distribution function.


def scalar_attack_risk(
    channel: ScalarChannel, threat: Threat, *, cuts: ArrayLike, decision: Decision
) -> AttackRisk:
    r"""Compute success, correction and advantage of an attack on intervals exactly.

    Parameters
    ----------
    channel : ScalarChannel or mechanism
        Of a Laplace or Gaussian mechanism the records themselves are the answers.
    threat : Threat
        Prior, success rule and knowledge.
    cuts : array_like of shape (k,)
        Ascending; output i is the cell :math:`(\theta_i, \theta_{i+1}]`, the first and
        the last unbounded.
    decision : Decision
        A table of k + 1 outputs for each fibre.

    Returns
    -------
    AttackRisk
        Exact up to rounding, for this attack only: at most
        ``scalar_advantage(channel, threat)``.

    Raises
    ------
    ModelError
        If the cuts are not finite and ascending.
    MismatchError
        If the table does not fit the cuts, the fibres or the guesses.

    Notes
    -----
    Equation 5.5 of [1]_ for the output rounded to its cell, which is all that such an
    attack sees. The best attack is of this kind, with cuts where the best guess
    changes. An atom of clamped noise at a cut belongs to the cell before it; a cut
    just below the upper end makes its atom a cell.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.threat import Prior
    >>> channel = ScalarChannel(LaplaceMechanism(1), [0, 1])
    >>> nearest = Decision([[0], [1]])
    >>> threat = Threat(Prior.uniform(2))
    >>> found = scalar_attack_risk(channel, threat, cuts=[0.5], decision=nearest)
    >>> round(found.advantage, 9)
    0.19673467
    """
    cells = _cells(channel, threat, cuts)
    return attack_risk(cells, threat, decision=decision)


def _cells(channel: ScalarChannel, threat: Threat, cuts: ArrayLike) -> Channel:
    """Return the finite channel of the cell that the output falls into."""
    number = as_scalar(channel, threat.support)
    if number is None:
        raise TypeError(
            "channel must be a ScalarChannel or noise on one number, got "
            f"{type(channel).__name__}; use attack_risk for finitely many outputs."
        )
    places = read_floats(cuts, "cuts", error=ModelError)
    if (
        places.ndim != 1
        or not np.isfinite(places).all()
        or (np.diff(places) <= 0).any()
    ):
        raise ModelError("cuts must be finite numbers in ascending order, got others.")
    below = np.array([number.mechanism.cdf(places, float(a)) for a in number.answers])
    ends = np.zeros((number.size, 1))
    table = np.diff(np.concatenate([ends, below, ends + 1.0], axis=1), axis=1)
    return Channel(table.clip(0.0), threat.support)


# The upper envelope of Laplace gains, by closed-form breakpoints.
#
# Between two neighbouring answers every gain is a combination of :math:`e^y` and
# :math:`e^{-y}`, y in units of b, so it is fixed by its values p and q at the two:
#
# .. math:: V_g(y) = p_g A(y) + q_g B(y), \qquad A(y) = \frac{\sinh(d-y)}{\sinh d},\
#    B(y) = \frac{\sinh y}{\sinh d} .
#
# Divided by A + B it is the line :math:`p_g(1-\tau) + q_g\tau` in :math:`\tau =
# B/(A+B)`, which grows with y. The best guesses are the upper envelope of lines, and
# two of them change places where :math:`A/B = (q_j - q_i)/(p_i - p_j)`.


# Each round splits every open piece; far more than the pieces of any envelope need.
_SPLITS = 4096


def fold_cells(values: Floats, rows: Indices, widths: Floats) -> tuple[Floats, Floats]:
    r"""Integrate the upper envelope over each of many cells.

    .. math:: \int_0^d \max_g\, (p_g A(y) + q_g B(y))\, dy

    Parameters
    ----------
    values : ndarray of shape (places, guesses)
        The gain of each guess at the ends of the cells.
    rows : ndarray of int, of shape (cells,)
        Place of the left end of each cell; the right end is the next place.
    widths : ndarray of shape (cells,)
        The d of each cell; positive.

    Returns
    -------
    value : ndarray of shape (cells,)
        The integral over the pieces found, which an attack attains.
    shortfall : ndarray of shape (cells,)
        What the true envelope can exceed it by, rounding of the values left out.

    Notes
    -----
    The envelope is convex in :math:`\tau`: if one line is best at both ends of a piece
    it is best on all of it; otherwise the lines best at the two ends cross inside, and
    either no line is higher there, which settles the piece, or the highest splits it.
    One evaluation of all lines per piece: O(guesses) each. A piece that is settled with
    an excess e at its crossing misses at most
    :math:`e\,(\tanh\frac{s}{2} + \tanh\frac{t}{2})`, s and t the lengths of its parts.

    Examples
    --------
    >>> import math
    >>> laws = np.array([[1.0, math.exp(-2)], [math.exp(-2), 1.0]])
    >>> value, shortfall = fold_cells(laws, np.array([0]), np.array([2.0]))
    >>> math.isclose(value[0], 2 * (1 - math.exp(-1))), bool(shortfall[0] < 1e-15)
    (True, True)
    """
    cells, best = _Cells(values, rows, widths), values.argmax(axis=1)
    every, zero = np.arange(len(widths), dtype=np.intp), np.zeros(len(widths))
    open_ = _Pieces(every, zero, widths, best[rows], best[rows + 1])
    value, shortfall = zero.copy(), zero.copy()
    for round_ in range(_SPLITS):
        done = open_.left == open_.right
        value += cells.integral(open_.take(done))
        open_ = open_.take(~done)
        if not len(open_.cell):
            break
        # Settling all of them at last keeps the promise: their excess is counted.
        last = round_ == _SPLITS - 1
        settled, lost, open_ = _advance(cells, open_, settle=last)
        value += settled
        shortfall += lost
    return value, shortfall


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of cells, with the lines that are best at their two ends."""

    cell: Indices
    start: Floats
    stop: Floats
    left: Indices
    right: Indices

    def take(self, which: NDArray[np.bool_]) -> _Pieces:
        return _Pieces(
            self.cell[which],
            self.start[which],
            self.stop[which],
            self.left[which],
            self.right[which],
        )

    def split(self, at: Floats, line: Indices) -> _Pieces:
        return _Pieces(
            np.concatenate([self.cell, self.cell]),
            np.concatenate([self.start, at]),
            np.concatenate([at, self.stop]),
            np.concatenate([self.left, line]),
            np.concatenate([line, self.right]),
        )


@dataclass(frozen=True, slots=True)
class _Cells:
    values: Floats
    rows: Indices
    widths: Floats

    def basis(self, cell: Indices, y: Floats) -> tuple[Floats, Floats]:
        """Return A and B, as products that neither overflow nor cancel."""
        d = self.widths[cell]
        whole = np.expm1(-2 * d)
        falling = np.exp(-y) * np.expm1(-2 * (d - y)) / whole
        return falling, np.exp(y - d) * np.expm1(-2 * y) / whole

    def crossing(self, pieces: _Pieces) -> Floats:
        """Return where the lines of the two ends cross, inside the piece."""
        row, i, j = self.rows[pieces.cell], pieces.left, pieces.right
        fall = np.maximum(self.values[row, i] - self.values[row, j], 0.0)
        rise = np.maximum(self.values[row + 1, j] - self.values[row + 1, i], 0.0)
        d = self.widths[pieces.cell]
        far = np.exp(-d)
        tiny = np.finfo(np.float64).tiny  # equal lines cross anywhere
        above, below = fall + rise * far + tiny, fall * far + rise + tiny
        place = (d + np.log(above) - np.log(below)) / 2
        return np.asarray(np.clip(place, pieces.start, pieces.stop))

    def integral(self, pieces: _Pieces) -> Floats:
        """Add up the left lines of the pieces of each cell."""
        d, start, stop = self.widths[pieces.cell], pieces.start, pieces.stop
        share = -np.expm1(start - stop) / np.expm1(-2 * d)
        falling = np.exp(-start) * np.expm1(start + stop - 2 * d) * share
        rising = np.exp(stop - d) * np.expm1(-start - stop) * share
        row = self.rows[pieces.cell]
        p, q = self.values[row, pieces.left], self.values[row + 1, pieces.left]
        return self.collect(pieces.cell, p * falling + q * rising)

    def collect(self, cell: Indices, parts: Floats) -> Floats:
        """Add up what belongs to each cell."""
        added = np.bincount(cell, weights=parts, minlength=len(self.widths))
        return added.astype(np.float64, copy=False)


def _advance(
    cells: _Cells, pieces: _Pieces, *, settle: bool
) -> tuple[Floats, Floats, _Pieces]:
    """Settle the pieces whose crossing no line passes, split the others."""
    row, number = cells.rows[pieces.cell], np.arange(len(pieces.cell))
    at = cells.crossing(pieces)
    falling, rising = cells.basis(pieces.cell, at)
    lines = cells.values[row] * falling[:, None]
    lines += cells.values[row + 1] * rising[:, None]
    best = lines.argmax(axis=1)
    left, right = lines[number, pieces.left], lines[number, pieces.right]
    excess = lines[number, best] - np.minimum(left, right)
    size = np.abs(cells.values[row, pieces.left])
    size += np.abs(cells.values[row + 1, pieces.right])
    done = (excess <= 8 * UNIT * size) | (best == pieces.left)
    done |= (best == pieces.right) | settle
    closed = pieces.take(done)
    reach = np.tanh((at[done] - closed.start) / 2)
    reach += np.tanh((closed.stop - at[done]) / 2)
    lost = cells.collect(closed.cell, excess[done] * reach)
    value = cells.integral(closed.split(at[done], closed.right))
    return value, lost, pieces.take(~done).split(at[~done], best[~done])


# Two-sided sums for Gaussian gains: what an attack attains, and what none exceeds.
#
# A gain is :math:`V_g(\theta) = \sum_a C_{ga}\varphi(\theta - a)`. On a cell of width h
# on which every :math:`|V_g''| \le B`, chords are off by at most
# :math:`(\theta-p)(q-\theta)B/2`, and the largest of chords is convex; so the trapezoid
# of the two end values plus :math:`B h^3/12` is above the integral of the maximum. The
# integral of any one gain is below it. Cells are halved until the two agree.

REACH, TAIL = 9.0, 3e-19
"""Standard deviations from every answer, and what is left beyond: 2.3e-19."""

_STEP = 0.5
_HALVINGS = 60
# Cells open at a time, and products of cells, guesses and answers in all.
_CELLS = 1 << 18
_PRODUCTS = 2e11
_CELL_ENTRIES = 1 << 22
_PEAK = 1 / math.sqrt(2 * math.pi)
_SHOULDER = 2 * math.exp(-1.5) * _PEAK  # |phi''| at sqrt(3)
# Rows of coefficients that agree to this are one guess.
_GRAIN = 2.0**-44


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A lower and an upper value of the same number."""

    lower: float
    upper: float


def enclose(
    gains: Floats, centres: Floats, law: ScalarLaw, *, tolerance: float
) -> Enclosure:
    """Enclose the integral of the largest of Gaussian sums.

    Parameters
    ----------
    gains : ndarray of shape (guesses, answers)
        Coefficient of each answer's law in the gain of each guess.
    centres : ndarray of shape (answers,)
        Distinct answers, ascending.
    law : ScalarLaw
        Of Gaussian noise.
    tolerance : float
        Gap to aim at.

    Returns
    -------
    Enclosure
        The gap may stay above the tolerance where that would need more than 2^18 open
        cells; the values hold all the same.

    Raises
    ------
    NotApplicable
        If the first pass alone would need more than 2e11 products.

    Examples
    --------
    >>> noise = ScalarLaw("gaussian", 1.0)
    >>> found = enclose(np.eye(2) / 2, np.array([0.0, 2.0]), noise, tolerance=1e-9)
    >>> round(found.upper, 8), found.upper - found.lower <= 1.1e-9
    (0.84134475, True)
    """
    atoms = law.atoms(centres)
    fixed = float((gains @ atoms).max(axis=0).sum()) if atoms.size else 0.0
    clusters = _clusters(centres, law)
    work = sum((span[1] - span[0]) * part.size for part, span in clusters)
    if work / _STEP * len(gains) > _PRODUCTS:
        raise NotApplicable(
            f"Gaussian noise must need at most {_PRODUCTS:.0e} products, got "
            f"{work / _STEP * len(gains):.1e}; merge answers, or use the bound by "
            "total variation."
        )
    weighted = gains * law.weights(centres)
    # Guesses change from cell to cell, so each answer counts with its largest weight.
    size = float(np.abs(weighted).max(axis=0).sum())
    lower, upper = [fixed], [fixed]
    for part, span in clusters:
        line = (centres[part] - centres[part[0]]) / law.scale
        sums = _Sums(_distinct(weighted[:, part]), line)
        found, cells = _refine(sums, span, tolerance / len(clusters))
        slack = 4 * UNIT * (cells + len(part) + float(line[-1])) * size
        lower.append(found.lower - slack)
        upper.append(found.upper + slack + 2 * _GRAIN * len(part))
    outside = TAIL * size
    return Enclosure(math.fsum(lower) - outside, math.fsum(upper) + outside)


def _clusters(
    centres: Floats, law: ScalarLaw
) -> list[tuple[NDArray[np.intp], tuple[float, float]]]:
    """Group answers within reach of each other, and the stretch they reach.

    Stretches are in standard deviations from the first answer of the group, so that
    answers far apart lose no digits; a group sees nothing of another but its tail.
    """
    numbers = np.arange(len(centres), dtype=np.intp)
    breaks = np.flatnonzero(np.diff(centres) / law.scale > 2 * REACH)
    found = []
    for part in np.split(numbers, breaks + 1):
        first, last = centres[part[0]], centres[part[-1]]
        start = max(-REACH, (law.low - first) / law.scale)
        stop = min((last - first) / law.scale + REACH, (law.high - first) / law.scale)
        if stop > start:
            found.append((part, (float(start), float(stop))))
    return found


def _distinct(gains: Floats) -> Floats:
    """Keep one of the guesses whose gains agree everywhere."""
    _, first = np.unique(np.round(gains / _GRAIN), axis=0, return_index=True)
    return np.asarray(gains[np.sort(first)])


def _refine(
    sums: _Sums, span: tuple[float, float], tolerance: float
) -> tuple[Enclosure, int]:
    """Halve the cells that matter until the gap is within the tolerance."""
    edges = np.linspace(*span, 2 + int((span[1] - span[0]) / _STEP))
    low, high = edges[:-1], edges[1:]
    lowers: list[float] = []
    uppers: list[float] = []
    for _ in range(_HALVINGS):
        lower, upper = sums.enclose(low, high)
        gap = upper - lower
        spent = math.fsum(uppers) - math.fsum(lowers)
        # A cell may stay open-ended by its share of half of what is left.
        share = max(0.0, tolerance - spent) / 2 / max(1, len(low))
        finished = gap <= share
        if spent + gap.sum() <= tolerance or 2 * (~finished).sum() > _CELLS:
            finished[:] = True
        lowers += lower[finished].tolist()
        uppers += upper[finished].tolist()
        low, high = low[~finished], high[~finished]
        if not len(low):
            break
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    else:
        lower, upper = sums.enclose(low, high)
        lowers += lower.tolist()
        uppers += upper.tolist()
    return Enclosure(math.fsum(lowers), math.fsum(uppers)), len(lowers)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of normal densities, in standard deviations."""

    gains: Floats
    line: Floats

    def enclose(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return a lower and an upper value of each cell's integral."""
        lower, upper = np.empty_like(low), np.empty_like(low)
        step = max(1, _CELL_ENTRIES // max(self.gains.shape))
        for start in range(0, len(low), step):
            part = slice(start, start + step)
            lower[part], upper[part] = self._enclose(low[part], high[part])
        return lower, upper

    def _enclose(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        left, right = low - self.line[:, None], high - self.line[:, None]
        first, last = self.gains @ _density(left), self.gains @ _density(right)
        bend = (np.abs(self.gains) @ _curvature(left, right)).max(axis=0)
        width, cell = high - low, np.arange(len(low))
        chords = width * (first.max(axis=0) + last.max(axis=0)) / 2
        guess = (first + last).argmax(axis=0)
        masses = _STANDARD.masses(low, high, self.line)
        lower = (self.gains[guess].T * masses).sum(axis=0)
        rival = np.full(len(low), -np.inf)
        for values in (first, last):
            lead = values[guess, cell]
            values[guess, cell] = -np.inf
            rival = np.maximum(rival, (values - lead).max(axis=0))
        # A rival can pass the guess by this much, at most, anywhere in the cell.
        excess = np.maximum(0.0, rival + width**2 * bend / 4)
        upper = np.minimum(chords + width**3 * bend / 12, lower + width * excess)
        return lower, np.maximum(lower, upper)


_STANDARD = ScalarLaw("gaussian", 1.0)


def _density(z: Floats) -> Floats:
    return np.asarray(_PEAK * np.exp(-(z**2) / 2))


def _curvature(left: Floats, right: Floats) -> Floats:
    """Return the largest second derivative of the density between two places.

    It is largest at an end, at 0 or at the square root of 3 on either side.
    """
    ends = [np.abs(z**2 - 1) * _density(z) for z in (left, right)]
    most = np.maximum(*ends)
    root = math.sqrt(3)
    for place, value in ((-root, _SHOULDER), (root, _SHOULDER), (0.0, _PEAK)):
        inside = (left <= place) & (right >= place)
        most = np.where(inside, np.maximum(most, value), most)
    return most


# A known record and Gaussian noise: the record is in where its law exceeds the mean.
#
# The attacker only says whether the target took part, so its gain is :math:`\pi_x \int
# (p(\theta\mid x) - p(\theta))_+`. With distances in standard deviations from the
# answer of x,
#
# .. math:: r_x(t) = \frac{p(\theta)}{p(\theta\mid x)}
#    = \sum_y \pi_y \, e^{t d_y - d_y^2/2}
#
# is convex, as a sum of exponentials of lines, and at most 1 at 0. So the answer is yes
# on an interval around 0: two roots, each bracketed, and normal probabilities.

_WIDTH = 2.0**-40
_ROOT_ROUNDS = 200
_ROOT_ENTRIES = 1 << 20


def enclose_known(
    weights: Floats, masses: Floats, centres: Floats, law: ScalarLaw
) -> Enclosure:
    r"""Enclose the gain of an attacker who knows the record.

    .. math:: \sum_x w_x \int (p(\theta\mid x) - p(\theta))_+\, d\theta

    Parameters
    ----------
    weights : ndarray of shape (answers,)
        Probability of the known records with each answer.
    masses : ndarray of shape (answers,)
        Probability of all records with each answer.
    centres : ndarray of shape (answers,)
        Distinct answers.
    law : ScalarLaw
        Of Gaussian noise, plain or clamped.

    Returns
    -------
    Enclosure
        What the intervals found attain, and that plus what they can miss.

    Notes
    -----
    O(answers squared) for each of about ten rounds. With an error e of r, a root
    bracketed in [l, h] misses at most e where the interval is too long,
    :math:`e\,\varphi(l)/|l|` where it is too short, and the peak of the density times
    the width between; proved on the page *Risk of a noisy number*.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> noise = ScalarLaw("gaussian", 1.0)
    >>> found = enclose_known(half, half, np.array([0.0, 1.0]), noise)
    >>> round(found.upper, 9), found.upper - found.lower < 1e-11
    (0.191462461, True)
    """
    atoms = law.atoms(centres)
    fixed = float((weights @ np.maximum(0.0, atoms - masses @ atoms)).sum())
    lower, lost = [fixed], [0.0]
    used = np.flatnonzero(weights > 0)
    step = max(1, _ROOT_ENTRIES // len(centres))
    for start in range(0, len(used), step):
        part = used[start : start + step]
        value, missed = _rows(part, masses, centres, law)
        lower += (weights[part] * value).tolist()
        lost += (weights[part] * missed).tolist()
    attained = math.fsum(lower)
    return Enclosure(attained, attained + math.fsum(lost))


def _rows(
    part: NDArray[np.intp], masses: Floats, centres: Floats, law: ScalarLaw
) -> tuple[Floats, Floats]:
    """Return what the intervals of some answers attain, and what they can miss."""
    apart = (centres - centres[part, None]) / law.scale
    right, missed = _left_ends(-apart, masses)
    left, more = _left_ends(apart, masses)
    start = np.maximum(left, (law.low - centres[part]) / law.scale)
    stop = np.maximum(start, np.minimum(-right, (law.high - centres[part]) / law.scale))
    inside = np.empty(len(part))
    for row, far in enumerate(apart):
        ends = start[row : row + 1], stop[row : row + 1]
        inside[row] = masses @ _STANDARD.masses(*ends, far)[:, 0]
    own = _STANDARD.masses(start, stop, np.zeros(1))[0]
    return own - inside, missed + more


def _left_ends(apart: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Return the left ends of the intervals, and what they can miss."""
    error = (2 * len(masses) + 4096) * UNIT
    low, high = np.full(len(apart), -REACH), np.zeros(len(apart))
    ratio, slope = _ratio(apart, masses, low)
    high[ratio < 1] = -REACH  # the rest of the law is negligible
    for round_ in range(_ROOT_ROUNDS):
        wide = np.flatnonzero(high - low > _WIDTH)
        if not wide.size:
            break
        place = (low[wide] + high[wide]) / 2
        if round_ % 3 < 2:
            # ln r is convex: the step of Newton from the left never passes the root.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                jump = -np.log(ratio[wide]) * ratio[wide] / slope[wide]
                near = low[wide] + jump * (1 + jump) + _WIDTH / 2
            place = np.where((near > low[wide]) & (near < high[wide]), near, place)
        found, steep = _ratio(apart[wide], masses, place)
        outside = found >= 1
        low[wide[outside]], high[wide[~outside]] = place[outside], place[~outside]
        ratio[wide[outside]], slope[wide[outside]] = found[outside], steep[outside]
    reach = np.abs(apart).max(axis=1)
    with np.errstate(divide="ignore", over="ignore"):
        # Close answers have like laws, whatever the ends.
        short = np.minimum(_PEAK * error / -low, _PEAK * reach + reach**2 / 2)
    return high, error + short + _PEAK * (high - low) + TAIL


def _ratio(apart: Floats, masses: Floats, place: Floats) -> tuple[Floats, Floats]:
    """Return p(theta) / p(theta | x) and its slope; infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.exp(apart * (place[:, None] - apart / 2))
        ratio = terms @ masses
        slope = (terms * apart) @ masses
    return np.asarray(ratio), np.asarray(slope)


# A channel under a threat, reduced to sums over the possible records.
#
# Between neighbouring answers every Laplace density is :math:`e^{\pm\theta/b}` times a
# constant, so gains on a cell are fixed by those at the answers; Gaussian gains are
# written on the distinct answers. Records of no probability take no part, but may be
# guessed.

# Narrower cells hold nothing that the margin does not cover.
_NARROWEST = 1e-290
# Entries of the arrays held at a time.
_LINE_ENTRIES = 1 << 21


@dataclass(frozen=True, slots=True)
class _Fibre:
    """Possible records that share what is known, and the sets that guesses hit."""

    records: NDArray[np.intp]
    sets: HitSets
    silent: NDArray[np.intp]  # sets whose gains cancel
    declines: bool

    @property
    def asks(self) -> bool:
        """Whether the target may be both hit and missed."""
        hit = self.sets.sizes > 0
        return bool(hit.any()) and (self.declines or not hit.all())

    def sums(self, weights: Floats) -> Floats:
        """Add a column of weights over each set: shape (columns, guesses)."""
        sums = self.sets.sums(weights[self.records])
        if self.silent.size:
            sums[self.silent] = 0.0
        if self.declines:
            sums = np.concatenate([sums, np.zeros((1, sums.shape[1]))])
        return np.ascontiguousarray(sums.T)


@dataclass(frozen=True, slots=True)
class Setting:
    """A threat, reduced to the possible records.

    Parameters
    ----------
    possible : ndarray of bool
        Which records have positive probability.
    pmf : ndarray
        Their probabilities.
    fibres : tuple
        Those that share what is known, with the sets that guesses hit.
    centred : bool
        Whether gains over the prior are summed, or the success itself.
    """

    possible: NDArray[np.bool_]
    pmf: Floats
    fibres: tuple[_Fibre, ...]
    centred: bool

    @classmethod
    def of(cls, threat: Threat, *, centred: bool) -> Setting:
        """Read a threat."""
        possible = threat.prior.pmf > 0
        number = np.cumsum(possible) - 1
        kept = [f[possible[f]] for f in threat.fibres]
        kept = [f for f in kept if len(f)]
        sets = threat.success.sets(threat.support, kept)
        whole = centred and len(kept) == 1
        fibres = tuple(
            _Fibre(number[f], s, np.flatnonzero(s.full & whole), threat.abstain)
            for f, s in zip(kept, sets, strict=True)
        )
        return cls(possible, threat.prior.pmf[possible], fibres, centred)

    @property
    def idle(self) -> bool:
        """Whether all guesses gain nothing: each hits every record, or none."""
        if not self.centred or len(self.fibres) > 1:
            return False
        sets = self.fibres[0].sets
        return bool((sets.full | (sets.sizes == 0)).all())


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring places under one of the laws; rays leave from some of them."""

    law: int
    edges: Floats
    rays: tuple[int, ...]


class Problem:
    """Scalar channels on the same answers, in a setting.

    Parameters
    ----------
    channels : sequence of ScalarChannel
        Mechanisms, such as one at many scales; answers as of the first.
    setting : Setting
        Prior, hit sets and what is summed.

    Raises
    ------
    NotApplicable
        If the sums over guesses would take more than minutes.
    """

    __slots__ = ("answers", "laws", "setting")

    def __init__(self, channels: Sequence[ScalarChannel], setting: Setting) -> None:
        self.laws, self.setting = [c.law for c in channels], setting
        self.answers: Floats = channels[0].answers[setting.possible]
        sets = sum(f.sets.work + len(f.sets.sizes) for f in setting.fibres)
        work = 4.0 * sets * len(np.unique(self.answers)) * len(channels)
        if work > WORK_LIMIT / 100:
            raise NotApplicable(
                f"the scalar engine must need at most {WORK_LIMIT / 100:.0e} "
                f"additions, got {work:.1e}; merge answers, or use the bound by total "
                "variation, which needs no integral."
            )

    def solve(self, tolerance: float) -> list[Enclosure]:
        """Enclose the integral of the best guesses for each law, rounding included."""
        setting = self.setting
        if setting.idle or (setting.centred and np.ptp(self.answers) == 0):
            return [Enclosure(0.0, 0.0)] * len(self.laws)
        if all(law.family == "laplace" for law in self.laws):
            found = self._fold_laplace()
        else:
            found = [self._fold_gaussian(law, tolerance) for law in self.laws]
        # Sums over n records of at most unit mass, in prefix form, and exponentials.
        margin = (16 * len(setting.pmf) + 256) * UNIT
        return [Enclosure(f.lower - margin, f.upper + margin) for f in found]

    def _centre(self, laws: Floats) -> Floats:
        """Return pi_x (p - mean p), or pi_x p for success."""
        pmf = self.setting.pmf
        if self.setting.centred:
            laws = laws - pmf @ laws
        return np.asarray(pmf[:, None] * laws)

    def _fold_laplace(self) -> list[Enclosure]:
        totals = [self._atoms(law) for law in self.laws]
        value, shortfall = np.array(totals), np.zeros(len(totals))
        sets = [len(f.sets.sizes) for f in self.setting.fibres]
        step = max(1, _LINE_ENTRIES // max([len(self.answers), *sets]))
        batch: list[_Block] = []
        for block in self._blocks(step):
            if sum(len(b.edges) for b in batch) + len(block.edges) > step + 1:
                self._fold_batch(batch, value, shortfall)
                batch = []
            batch.append(block)
        self._fold_batch(batch, value, shortfall)
        pairs = zip(value.tolist(), shortfall.tolist(), strict=True)
        return [Enclosure(v, v + lost) for v, lost in pairs]

    def _atoms(self, law: ScalarLaw) -> float:
        columns = self._centre(law.atoms(self.answers))
        tops = [f.sums(columns).max(axis=1).sum() for f in self.setting.fibres]
        return math.fsum(tops) if columns.size else 0.0

    def _blocks(self, step: int) -> Iterator[_Block]:
        """Cut the line at the answers and the ends of the interval."""
        for number, law in enumerate(self.laws):
            inside = (self.answers > law.low) & (self.answers < law.high)
            ends = np.concatenate([self.answers[inside], [law.low, law.high]])
            edges = np.unique(ends[np.isfinite(ends)])
            for start in range(0, max(1, len(edges) - 1), step):
                part = edges[start : start + step + 1]
                first = (0,) if start == 0 else ()
                last = (len(part) - 1,) if start + step >= len(edges) - 1 else ()
                yield _Block(number, part, first + last if law.kind == "plain" else ())

    def _fold_batch(
        self, batch: list[_Block], value: Floats, shortfall: Floats
    ) -> None:
        """Integrate over cells that no answer lies inside of, and over the rays.

        Beyond the outermost answers all ratios are constant: a ray has the gain at its
        end times b, and is there for plain noise only.
        """
        sizes = [len(block.edges) for block in batch]
        offsets = np.cumsum([0, *sizes])
        owner = np.repeat([block.law for block in batch], sizes)
        edges = np.concatenate([block.edges for block in batch])
        scales = np.array([law.scale for law in self.laws])[owner]
        rows = np.delete(np.arange(len(edges)), offsets[1:] - 1)
        pairs = zip(batch, offsets[:-1], strict=True)
        rays = np.array([o + k for b, o in pairs for k in b.rays], dtype=np.intp)
        gains = self._centre(self._laws_at(edges, scales, owner))
        widths = (edges[rows + 1] - edges[rows]) / scales[rows]
        rows, widths = rows[widths > _NARROWEST], widths[widths > _NARROWEST]
        for fibre in self.setting.fibres:
            values = fibre.sums(gains)
            found, lost = fold_cells(values, rows, widths)
            np.add.at(value, owner[rows], found)
            np.add.at(value, owner[rays], values[rays].max(axis=1))
            np.add.at(shortfall, owner[rows], lost)

    def _laws_at(self, edges: Floats, scales: Floats, owner: Indices) -> Floats:
        """Return the Laplace densities at the edges, per unit of the scale."""
        laws = np.abs(edges - self.answers[:, None])
        laws /= -scales
        np.exp(laws, out=laws)
        laws /= 2
        if any(law.kind == "truncated" for law in self.laws):
            weights = np.stack([law.weights(self.answers) for law in self.laws], axis=1)
            laws *= weights[:, owner]
        return laws

    def _fold_gaussian(self, law: ScalarLaw, tolerance: float) -> Enclosure:
        """Enclose fibre by fibre, the gains written on the distinct answers."""
        centres, place = np.unique(self.answers, return_inverse=True)
        laws = np.zeros((len(self.answers), len(centres)))
        laws[np.arange(len(place)), place.reshape(-1)] = 1.0
        weights, parts = self._centre(laws), []
        fibres = self.setting.fibres
        known = [f for f in fibres if len(f.records) == 1]
        if known and law.kind != "truncated":
            found = self._fold_known(known, law)
            # Otherwise answers too close for the roots go the general way.
            if found.upper - found.lower <= tolerance / 2:
                fibres = tuple(f for f in fibres if len(f.records) > 1)
                tolerance /= 2
                parts.append(found)
        for fibre in fibres:
            share = min(1.0, float(self.setting.pmf[fibre.records].sum()))
            gains = fibre.sums(weights).T
            parts.append(enclose(gains, centres, law, tolerance=tolerance * share))
        return Enclosure(
            math.fsum(part.lower for part in parts),
            math.fsum(part.upper for part in parts),
        )

    def _fold_known(self, fibres: Sequence[_Fibre], law: ScalarLaw) -> Enclosure:
        """Enclose the part of the records that are known."""
        pmf = self.setting.pmf
        if not self.setting.centred:
            # The known record is named, whatever the output.
            hit = [f.records[0] for f in fibres if (f.sets.sizes > 0).any()]
            sure = math.fsum(pmf[hit].tolist())
            return Enclosure(sure, sure)
        records = np.array([f.records[0] for f in fibres if f.asks], dtype=np.intp)
        centres, place = np.unique(self.answers, return_inverse=True)
        place, size = place.reshape(-1), len(centres)
        weights, masses = np.zeros(size), np.zeros(size)
        np.add.at(weights, place[records], pmf[records])
        np.add.at(masses, place, pmf)
        return enclose_known(weights, masses, centres, law)
