r"""Subset selection: report a set that is likelier to hold the truth.

A report is a set of :math:`\omega` of the m categories; it holds the true one with
probability :math:`p = \omega e^\varepsilon/(\omega e^\varepsilon + m - \omega)` and is
otherwise uniform. The size steps down as epsilon grows, so nothing here is continuous,
and the way from an advantage back to a level goes from one range of levels with the
same size to the next.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_index, check_probability
from undertow.mechanisms.local._bitset import (
    Words,
    bernoulli,
    bits_at,
    clear_bits,
    column_counts,
    count_bits,
    draw_cost,
    read_words,
    sample_rows,
    set_bits,
    unpack,
    width,
)
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    advantage_up,
    disagreement,
    log_fraction,
    lowered_target,
    never_binds,
    ordered_masses,
    read_categories,
    read_knowledge,
    read_level,
    read_prior,
    read_values,
)
from undertow.mechanisms.noise.bits import BitSource, bits_of, uniform_below
from undertow.mechanisms.noise.draw import Draw, UniformSource
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.randomized_response import (
    exact_odds,
    response_loss,
)
from undertow.numeric.exact import Number
from undertow.privacy.loss import Pure
from undertow.results import Bound, Calibration


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SubsetSelection(LocalProtocol):
    r"""Subset selection over 0, ..., m - 1.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.
    subset : int, optional
        The size :math:`\omega`, below m; by default
        :func:`~undertow.mechanisms.local.subset_size`. A calibrated level must come
        with its own size.

    Notes
    -----
    The set holds the truth with the rational probability
    :math:`\omega/(\omega + (m-\omega) r)`, r being :math:`e^{-\varepsilon}` rounded up,
    and the loss is exactly :math:`-\ln r`. Size 1 is generalised randomised response.
    A report is a row of packed bits.

    References
    ----------
    .. [1] S. Wang et al., *Mutual Information Optimally Local Private Discrete
       Distribution Estimation*, 2016.
    .. [2] M. Ye and A. Barg, *Optimal Schemes for Discrete Distribution Estimation
       under Locally Differential Privacy*, IEEE Trans. Inf. Theory 64, 2018.

    Examples
    --------
    >>> protocol = SubsetSelection(10, 1)
    >>> protocol.subset, round(float(protocol.keep), 6)
    (2, 0.40461)
    """

    name: ClassVar[str] = "SS"
    monotone: ClassVar[bool] = False
    categories: int
    epsilon: Fraction
    odds: Fraction
    subset: int

    def __init__(
        self,
        categories: SupportsIndex,
        epsilon: Number,
        *,
        subset: int | None = None,
    ) -> None:
        m = read_categories(categories)
        level, odds = exact_odds(epsilon)
        object.__setattr__(self, "categories", m)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "odds", odds)
        object.__setattr__(self, "subset", read_subset(m, float(level), subset))

    @property
    def keep(self) -> Fraction:
        """Probability that the set holds the truth."""
        m, size = self.categories, self.subset
        return size / (size + (m - size) * self.odds)

    @property
    def noise(self) -> Fraction:
        """Probability that the set holds one given other category."""
        return (self.subset - self.keep) / (self.categories - 1)

    @property
    def structure(self) -> int:
        """The size of the sets."""
        return self.subset

    @property
    def follows_rule(self) -> bool:
        """Whether the size is that of the floor rule."""
        return self.subset == subset_size(self.categories, float(self.epsilon))

    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""
        return Pure(response_loss(self.epsilon))

    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""
        return subset_variation(
            self.categories, float(self.epsilon), subset=self.subset
        )

    def attack_success(self) -> float:
        """Return how often a uniform element of the set is the truth, uniform prior."""
        return subset_success(self.categories, float(self.epsilon), subset=self.subset)

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage; exact for every prior."""
        value = subset_advantage(
            self.categories,
            float(self.epsilon),
            subset=self.subset,
            prior=prior,
            knowledge=knowledge,
        )
        return self._bound(
            value, "Local protocols, Proposition 3 (thesis, Example 5.6)"
        )

    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log probability of each packed set; minus infinity off size."""
        truth = check_index(given, "given", size=self.categories)
        table = read_words(reports, self.categories)
        inside = bits_at(table, np.full(len(table), truth))
        others, size = self.categories - 1, self.subset
        held = log_fraction(self.keep) - _log_binomial(others, size - 1)
        missed = log_fraction(1 - self.keep) - _log_binomial(others, size)
        law = np.where(inside, held, missed)
        return np.where(count_bits(table) == size, law, -np.inf)

    def sample(self, values: ArrayLike, *, source: UniformSource | None = None) -> Draw:
        """Draw one packed set per client, with exactly the stated law."""
        truths, origin = read_values(values, self.categories), read_source(source)
        bits, m = bits_of(origin), self.categories
        held = bernoulli(self.keep, len(truths), bits=bits)
        table = sample_sets(truths, self.subset - held, categories=m, bits=bits)
        set_bits(table, truths, held)
        return Draw(table, origin.simulated, origin.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category): membership in the set."""
        return unpack(read_words(reports, self.categories), self.categories)

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return how many sets hold each category."""
        return column_counts(read_words(reports, self.categories), self.categories)

    def listed_outputs(self) -> NDArray[np.uint32]:
        """Return the sets in lexical order; for at most 10^5."""
        m, size = self.categories, self.subset
        self._require_few(_log10_binomial(m, size))
        members = list_sets(m, size)
        words = np.zeros((len(members), width(m)), dtype="<u4")
        for column in members.T:
            set_bits(words, column, np.ones(len(members), dtype=bool))
        return words

    def table(self, inputs: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of each set; every entry is correctly rounded."""
        supports, rest = self.support(self.listed_outputs()), self.categories - 1
        held = self.keep / math.comb(rest, self.subset - 1)
        missed = (1 - self.keep) / max(1, math.comb(rest, self.subset))
        return np.where(supports.T[np.asarray(inputs)], float(held), float(missed))

    def _shape(self) -> tuple[tuple[str, float], ...]:
        return (("subset", self.subset),)


def list_sets(categories: int, size: int) -> NDArray[np.int64]:
    """Return the sets of a size in lexical order, one in each row."""
    sets = itertools.combinations(range(categories), size)
    return np.array(list(sets), dtype=np.int64)


def _log10_binomial(size: int, chosen: int) -> float:
    """Return the decimal log of a binomial coefficient that may be huge, in O(1)."""
    logs = (math.lgamma(k + 1) for k in (size, chosen, size - chosen))
    whole, *parts = logs
    return (whole - sum(parts)) / math.log(10)


def _log_binomial(n: int, k: int) -> float:
    """Return the log of a binomial coefficient, exactly rounded but for the log."""
    return math.log(math.comb(n, k))


# Keeps a ratio that is a whole number but for its rounding from losing a unit.
_WHOLE_GUARD = 1e-9


def subset_size(
    categories: SupportsIndex,
    epsilon: float,
    *,
    rule: Literal["floor", "nearest"] = "floor",
) -> int:
    r"""Return the size of the reported set.

    .. math:: \omega = \max(1, \lfloor m/(e^\varepsilon + 1) \rfloor)

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    rule : {"floor", "nearest"}
        Rounding; published curves differ in it.

    Returns
    -------
    int
        At least one, at most m/2 but for two categories.

    Notes
    -----
    The floor is taken after adding 1e-9, so that exact ratios survive their rounding.

    Examples
    --------
    >>> subset_size(10, 1.0), subset_size(1000, math.log(199)), subset_size(10, 1e4)
    (2, 5, 1)
    """
    m, level = read_categories(categories), read_level(epsilon)
    check_choice(rule, "rule", choices=("floor", "nearest"))
    ratio = m * math.exp(-level) / (1.0 + math.exp(-level))
    whole = math.floor(ratio + _WHOLE_GUARD) if rule == "floor" else round(ratio)
    return max(1, whole)


def subset_breakpoints(categories: SupportsIndex) -> NDArray[np.float64]:
    r"""Return the levels :math:`\ln(m/\omega - 1)` after which the size drops, rising.

    The i-th entry, from 0, ends the range of the size ``m // 2 - i``; sizes that are
    reached at no positive level are left out, and so is size 1, which never ends.

    Parameters
    ----------
    categories : int
        The m; at least two.

    Returns
    -------
    ndarray of float
        Rising; empty below four categories.

    Notes
    -----
    Between two of them the advantage grows with epsilon; a search goes from one to the
    next.

    Examples
    --------
    >>> subset_breakpoints(10).round(6).tolist()
    [0.0, 0.405465, 0.847298, 1.386294]
    """
    m = read_categories(categories)
    sizes = np.arange(m // 2, 1, -1)
    return np.asarray(np.log((m - sizes) / sizes))


def read_subset(categories: int, epsilon: float, subset: int | None) -> int:
    """Read a subset size below m; None is the floor rule."""
    size = subset_size(categories, epsilon) if subset is None else subset
    size = check_count(size, "subset")
    if size >= categories:
        raise ValueError(f"subset must be below {categories} categories, got {size}.")
    return size


def subset_variation(
    categories: SupportsIndex, epsilon: float, *, subset: int | None = None
) -> float:
    r"""Return the total variation :math:`(pm-\omega)/(m-1)`, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    subset : int, optional
        The size; by default that of the floor rule.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 3.

    Examples
    --------
    >>> round(subset_variation(10, 1.0), 10)
    0.2273440835
    """
    m, level = read_categories(categories), read_level(epsilon)
    size = read_subset(m, level, subset)
    return advantage_up(_excess(m, level, size) / (m - 1))


def subset_success(
    categories: SupportsIndex, epsilon: float, *, subset: int | None = None
) -> float:
    r"""Return how often a uniform element of the report is the truth, rounded up.

    .. math:: p/\omega = 1/(\omega + (m-\omega)e^{-\varepsilon})

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    subset : int, optional
        The size; by default that of the floor rule.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Thesis, Example 5.6; uniform prior, under which the attack is optimal.

    Examples
    --------
    >>> round(subset_success(10, 1.0), 8)
    0.20230484
    """
    m, level = read_categories(categories), read_level(epsilon)
    size = read_subset(m, level, subset)
    return advantage_up(1.0 / (size + (m - size) * math.exp(-level)))


def subset_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    subset: int | None = None,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against subset selection, rounded up.

    Uniform prior, no knowledge: :math:`p/\omega - 1/m`. Full knowledge:
    :math:`\frac{pm-\omega}{m-1}(1-\kappa_\pi)`. Any prior, no knowledge, with
    :math:`\pi_1 \le \dots \le \pi_m`,

    .. math:: \frac{pm-\omega}{m-\omega}
              \sum_{i \ge \omega} \frac{\binom{i-1}{\omega-1}}{\binom{m-1}{\omega-1}}
              \pi_i \Bigl[(1-\pi_i) - \tfrac{\omega-1}{i-1} \sum_{z<i} \pi_z\Bigr].

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    subset : int, optional
        The size; by default that of the floor rule.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Thesis, Examples 5.6 and A.18, for the uniform prior; the rest is proved on the page
    *Local protocols*. Not monotone in epsilon with full knowledge: where the size
    drops, the value without knowledge jumps up and the other jumps down. O(m log m).

    Examples
    --------
    >>> round(subset_advantage(10, 1.0), 9)
    0.102304838
    >>> round(subset_advantage(10, 1.0, knowledge="full"), 9)
    0.204609675
    """
    m, level = read_categories(categories), read_level(epsilon)
    size = read_subset(m, level, subset)
    excess = _excess(m, level, size)
    if read_knowledge(knowledge) == "full":
        return advantage_up(excess / (m - 1) * disagreement(prior, m))
    if prior is None:
        return advantage_up(excess / (m * size))
    weight = _ordered_sum(read_prior(prior, m), size)
    return advantage_up(excess / (m - size) * weight, terms=m)


def _excess(m: int, level: float, size: int) -> float:
    """Return p m - omega."""
    odds = math.exp(-level)
    return size * (m - size) * -math.expm1(-level) / (size + (m - size) * odds)


def _ordered_sum(prior: NDArray[np.float64], size: int) -> float:
    (pi, below, above), m = ordered_masses(prior), len(prior)
    rank = np.arange(size, m)  # i - 1 = size, ..., m - 1
    # Ratios of binomials from the top down: C(i-2, w-1)/C(i-1, w-1) = (i-w)/(i-1).
    steps = np.log1p(-(size - 1) / rank)[::-1]
    logs = np.concatenate([[0.0], np.cumsum(steps)])[::-1]  # i = size, ..., m
    i = np.arange(size, m + 1)
    share = (size - 1) / np.maximum(i - 1, 1)
    start = size - 1
    terms = pi[start:] * (above[start:] + (1.0 - share) * below[start:])
    return math.fsum((np.exp(logs) * terms).tolist())


# A calibrated level stays this share below a breakpoint.
_BELOW_BREAKPOINT = 1e-9


def subset_level(categories: SupportsIndex, advantage: float, *, subset: int) -> float:
    r"""Return the level at which a subset size has an advantage, rounded to nearest.

    .. math:: \varepsilon = \ln\frac{s(m-\omega)}{1-s\omega}, \quad s = \gamma + 1/m

    Parameters
    ----------
    categories : int
        The m; at least two.
    advantage : float
        The :math:`\gamma`, in [0, 1]; uniform prior, no knowledge.
    subset : int
        The size seen in the reports.

    Returns
    -------
    float
        Infinite where no level attains the advantage. A guarantee needs
        :func:`calibrate_subset`.

    Notes
    -----
    The inverse of :func:`subset_advantage` at one size.

    Examples
    --------
    >>> round(subset_level(10, 0.102304838, subset=2), 6)
    1.0
    """
    m, target = read_categories(categories), check_probability(advantage, "advantage")
    size = read_subset(m, 0.0, subset)
    excess = target * m * size
    share = excess / (m - size)
    if share >= 1.0:
        return math.inf
    return math.log1p(excess / size) - math.log1p(-share)


@dataclass(frozen=True, slots=True)
class SubsetCalibration(Calibration):
    """A level for subset selection with the subset size it was computed for.

    Parameters
    ----------
    parameter, value, achieves, method, alternatives
        As in :class:`~undertow.privacy.Calibration`; the parameter is ``"epsilon"``.
    subset : int
        The size to deploy; recomputing it at `value` may cross a breakpoint.
    """

    subset: int = 1


def calibrate_subset(
    categories: SupportsIndex,
    advantage: float,
    *,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
    choose: Literal["safe", "largest"] = "safe",
) -> SubsetCalibration:
    r"""Return a level that keeps the advantage of subset selection below a target.

    .. math:: \varepsilon_\omega = \ln\frac{1 + s/\omega}{1 - s/(m-\omega)}, \quad
              s = \gamma m \omega \text{ or } \gamma (m-1)/(1-\kappa_\pi)

    Parameters
    ----------
    categories : int
        The m; at least two.
    advantage : float
        The target, in [0, 1].
    prior : array_like of shape (m,), optional
        Uniform by default; another prior needs full knowledge.
    knowledge : {"none", "full"}
        What the attacker knows of the target.
    choose : {"safe", "largest"}
        ``"safe"``: the largest level up to which the target holds throughout.
        ``"largest"``: the largest level at which it holds.

    Returns
    -------
    SubsetCalibration
        Lowered by a relative 1e-9, together with its subset size; infinite if the
        target never binds.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 3. Where the size drops the
    advantage jumps, up without knowledge and down with it, so the two choices differ.

    Examples
    --------
    >>> chosen = calibrate_subset(1000, 0.1)
    >>> chosen.subset, round(chosen.value, 6), chosen.achieves.value <= 0.1
    (5, 5.293305, True)
    """
    m, target = read_categories(categories), check_probability(advantage, "advantage")
    check_choice(choose, "choose", choices=("safe", "largest"))
    if read_knowledge(knowledge) == "none" and prior is not None:
        raise ValueError(
            "prior must be omitted (uniform) without knowledge, where there is no "
            "closed inverse; search over subset_advantage between subset_breakpoints."
        )
    sizes = np.arange(max(1, m // 2), 0, -1)
    excess = _target_excess(m, target, sizes, prior, knowledge)
    level, size = _choose(m, sizes, excess, safe=choose == "safe")
    level = level * (1.0 - _BELOW_BREAKPOINT)
    value = subset_advantage(m, level, subset=size, prior=prior, knowledge=knowledge)
    if level == math.inf:  # a target that never binds is itself a bound
        value = min(value, target)
    achieved = Bound(
        value,
        "Local protocols, Proposition 3 (thesis, Example 5.6)",
        unchecked=("the prior is the attacker's", "this subset size is deployed"),
        quantity="advantage",
        tight=True,
    )
    return SubsetCalibration("epsilon", level, achieved, choose, (), size)


def _target_excess(
    m: int,
    target: float,
    sizes: NDArray[np.int64],
    prior: ArrayLike | None,
    knowledge: str,
) -> NDArray[np.float64]:
    lowered = lowered_target(target)
    if knowledge == "none":
        # Never binding from the limit 1 - 1/m of size 1 on.
        never = never_binds(target, None, m)
        return np.where(never, np.inf, lowered * m * sizes)
    if never_binds(target, prior, m):
        return np.full(sizes.shape, np.inf)
    return np.full(sizes.shape, lowered * (m - 1) / disagreement(prior, m))


def _choose(
    m: int, sizes: NDArray[np.int64], excess: NDArray[np.float64], *, safe: bool
) -> tuple[float, int]:
    """Pick the level and size; `sizes` fall to 1 and cut the levels into ranges."""
    share = excess / (m - sizes)
    solved = np.full(sizes.shape, np.inf)
    inside = share < 1.0
    solved[inside] = np.log1p(excess[inside] / sizes[inside]) - np.log1p(-share[inside])
    ends = np.append(np.log((m - sizes[:-1]) / sizes[:-1]), np.inf)
    starts = np.concatenate([[0.0], ends[:-1]])
    within = (solved >= starts) | (starts == 0.0)
    if safe:
        stop = int(np.argmax((solved < ends) | (ends == np.inf)))
        place = stop if within[stop] else stop - 1
    else:
        place = int(np.flatnonzero(within)[-1])
    return float(min(solved[place], ends[place])), int(sizes[place])


# Words completed at a time, so that they stay in the cache.
_WORDS = 1 << 19
# Most places drawn at a time, for each set and in all.
_ROUNDS, _PLACES = 255, 1 << 17
# In each part so many of the sets are left, to be completed together.
_LEAVE = 10
# Nanoseconds of a place tried and of 64 bits counted: they choose the bits that sets
# begin with, not the law.
_TRY, _COUNT = 8.0, 3.0
# Bits to begin with are so many quarters of a deviation short of the size on average,
# or have a rate at which they are drawn quickly.
_SHORT, _QUICK = range(4, 16), [Fraction(eighths, 8) for eighths in range(8)]


def sample_sets(
    avoided: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    categories: int,
    bits: BitSource,
) -> Words:
    """Draw uniform sets of the given sizes, each without one category.

    Notes
    -----
    Independent bits of whatever rate, given their number and that it is not too large,
    are a uniform set of that number; a uniform outsider more keeps that.
    """
    if not len(sizes):
        return np.zeros((0, width(categories)), dtype="<u4")
    missing = sizes.copy()
    rate = _rate(int(sizes.max()), categories, bits.width)
    table = sample_rows(rate, len(sizes), length=categories, bits=bits)
    if rate:
        missing -= _settle(table, avoided, sizes, rate, categories, bits)
    # As a member for the time being the avoided category is not added.
    set_bits(table, avoided, np.ones(len(table), dtype=bool))
    step = max(1, _WORDS // table.shape[1])
    for start in range(0, len(table), step):
        part = slice(start, start + step)
        leave = len(missing[part]) // _LEAVE
        _complete(table[part], missing[part], categories, bits, leave=leave)
    _complete(table, missing, categories, bits)
    clear_bits(table, avoided)
    return table


def _settle(
    table: Words,
    avoided: NDArray[np.int64],
    sizes: NDArray[np.int64],
    rate: Fraction,
    categories: int,
    bits: BitSource,
) -> NDArray[np.int64]:
    """Draw again the rows that are too large; return the sizes they have then."""
    clear_bits(table, avoided)
    found = count_bits(table)
    pending = np.flatnonzero(found > sizes)
    while pending.size:
        rows = sample_rows(rate, pending.size, length=categories, bits=bits)
        clear_bits(rows, avoided[pending])
        table[pending] = rows
        found[pending] = count_bits(rows)
        pending = pending[found[pending] > sizes[pending]]
    return found


@lru_cache(maxsize=64)
def _rate(size: int, categories: int, width: int) -> Fraction:
    """Return the rate of the bits from which sets of a size cost least."""
    deviation = math.sqrt(size * (1 - size / categories))
    means = [size - short * deviation / 4 for short in _SHORT]
    rates = {Fraction(math.floor(4096 * mean / categories), 4096) for mean in means}
    choice = sorted(rate for rate in {*rates, *_QUICK} if rate >= 0)
    return min(choice, key=lambda rate: _cost(rate, size, categories, width))


def _cost(rate: Fraction, size: int, categories: int, width: int) -> float:
    """Return about how many nanoseconds a set takes that begins with bits of a rate.

    Notes
    -----
    Their number is taken for normal, k deviations below the size on average: it is not
    too large with the normal probability of k, on which the mean number of bits missing
    is that probability times k, plus the density, in deviations.
    """
    r, share = float(rate), size / categories
    if rate == 0:
        return size * _TRY
    deviation = math.sqrt(categories * r * (1 - r))
    k = (size - categories * r) / deviation
    if k <= 0:
        return math.inf
    density = math.exp(-(k**2) / 2) / math.sqrt(2 * math.pi)
    kept = (1 + math.erf(k / math.sqrt(2))) / 2
    tries = deviation * (density + k * kept) / (1 - share)
    drawn = categories / 64 * (draw_cost(rate, width) + _COUNT)
    return (tries * _TRY + drawn) / kept


def _complete(
    table: Words,
    missing: NDArray[np.int64],
    categories: int,
    bits: BitSource,
    *,
    leave: int = 0,
) -> None:
    """Add uniform outsiders until no more than `leave` rows miss any.

    What they still miss is left in `missing`.
    """
    octets = table.view(np.uint8).reshape(-1)
    rows = missing.nonzero()[0]
    left, base = missing[rows], rows * (4 * table.shape[1])
    missing[:] = 0
    while left.size > leave:
        rounds = max(1, min(_ROUNDS, _PLACES // left.size, int(left.mean())))
        left -= _add_rounds(octets, base, left, rounds, categories, bits)
        more = left.nonzero()[0]
        if more.size < left.size:
            rows, left, base = rows[more], left[more], base[more]
    missing[rows] = left


def _add_rounds(
    octets: NDArray[np.uint8],
    base: NDArray[np.int64],
    left: NDArray[np.int64],
    rounds: int,
    categories: int,
    bits: BitSource,
) -> NDArray[np.uint8]:
    """Try so many places in each row; return how many were added, not too many."""
    places, masks = _draw_places(rounds * left.size, categories, bits)
    shape, gained = (rounds, left.size), np.zeros(left.size, dtype=np.uint8)
    most = np.minimum(left, rounds).astype(np.uint8)
    ends = rounds > int(left.min())  # before the last of these rounds, maybe
    for at, mask in zip(places.reshape(shape), masks.reshape(shape), strict=True):
        at += base
        old = octets.take(at)
        if ends:
            mask *= (gained < most).view(np.uint8)
        mask |= old
        octets[at] = mask
        gained += (mask != old).view(np.uint8)
    return gained


def _draw_places(
    count: int, categories: int, bits: BitSource
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    r"""Draw uniform categories: the octet of each and its bit, or no bit if refused.

    Notes
    -----
    One word x scaled down is :math:`\lfloor xm/2^b \rfloor`; the surplus is refused as
    in :func:`~undertow.mechanisms.noise.bits.uniform_below`, but not drawn again.
    """
    if categories > 1 << bits.width:
        places = uniform_below(bits, count, bound=categories)
        return places >> 3, np.uint8(1) << (places & 7).astype(np.uint8)
    whole, low = 1 << bits.width, np.uint32(7)
    scaled = np.multiply(bits.words(count), np.uint32(categories), dtype=np.uint32)
    kept = (scaled & np.uint32(whole - 1)) >= whole % categories
    scaled >>= np.uint32(bits.width)
    masks = kept.view(np.uint8) << (scaled & low).astype(np.uint8)
    scaled >>= np.uint32(3)
    return scaled.astype(np.int64), masks
