r"""What a given attack achieves, measured by simulation, with limits that hold.

The advantage of an attack is measured from one set of outputs: each output scores the
hit on its own target minus the prior probability of a hit on an independent one. That
is unbiased and needs no second run of the mechanism. The interval fits the design: how
targets were drawn decides which limits are valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import numpy as np

from undertow._validate import check_choice, check_probability
from undertow.privacy.result import Estimate, to_plain
from undertow.risk._draws import Design, Progress, Sampler, plan_draws
from undertow.risk._measured import Measured
from undertow.risk._nested import Streams, nested_estimates, score_draws
from undertow.risk._sampler import ChannelSampler, MechanismSampler, ProtocolSampler
from undertow.risk._score import Attack, LawAttack, Scorer, constant_baseline
from undertow.risk.threat import Threat

__all__ = [
    "Attack",
    "AttackEstimate",
    "ChannelSampler",
    "Design",
    "LawAttack",
    "MechanismSampler",
    "Progress",
    "ProtocolSampler",
    "Sampler",
    "estimate_attack",
]

_INTERVALS = ("auto", "clopper-pearson", "hoeffding", "bernstein")
_ESTIMATORS = ("paired", "nested")


@dataclass(frozen=True, slots=True)
class AttackEstimate:
    """The measured figures of one attack; they bound no other attack.

    Parameters
    ----------
    success, advantage : Estimate
        Each with a certified interval of its own; the two do not hold jointly.
    correction : Estimate or float
        Success on an independent target; a float where it is the same for all attacks.
    descriptive : tuple of float, optional
        Student's interval of the advantage. It fails for rare successes, so it is no
        limit to rely on.
    design, estimator : str
        How the outputs were drawn and scored.
    mechanism_runs, attack_calls : int
        Outputs drawn, and outputs times fibres scored.
    """

    success: Estimate
    correction: Estimate | float
    advantage: Estimate
    descriptive: tuple[float, float] | None
    design: str
    estimator: str
    mechanism_runs: int
    attack_calls: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name, ready for JSON."""
        return {name: to_plain(getattr(self, name)) for name in self.__slots__}


def estimate_attack(
    sampler: Sampler,
    attack: Attack,
    threat: Threat,
    *,
    trials: SupportsIndex | None = None,
    design: Design = "plain",
    runs: SupportsIndex | None = None,
    confidence: float = 0.95,
    interval: Literal["auto", "clopper-pearson", "hoeffding", "bernstein"] = "auto",
    estimator: Literal["paired", "nested"] = "paired",
    progress: Progress | None = None,
    rng: np.random.Generator,
) -> AttackEstimate:
    r"""Measure success, correction and advantage of one attack.

    .. math:: \widehat{\mathrm{RAD}} = \frac1n \sum_i \Big( s(x_i, \theta_i) -
       \sum_{x'} \pi_{x'} s(x', \theta_i) \Big), \qquad
       s(x, \theta) = 1[\ell(A(\theta, a(x)), x) \le \eta]

    Parameters
    ----------
    sampler : Sampler
        Runs the mechanism on a target.
    attack : Attack
        The attack. A :class:`LawAttack` is scored by expected hits.
    threat : Threat
        Prior, success rule and knowledge.
    trials : int, optional
        Targets drawn from the prior; in the exhaustive design the least number of
        outputs, rounded up to full rounds over the records.
    design : {"plain", "exhaustive", "clustered"}, optional
        One output for each drawn target; `runs` outputs of every possible record,
        weighted by the prior; or `runs` outputs of each drawn target.
    runs : int, optional
        Outputs per target; not for the plain design.
    confidence : float, optional
        Of each interval by itself.
    interval : {"auto", "clopper-pearson", "hoeffding", "bernstein"}, optional
        ``"auto"`` takes Clopper-Pearson where hits are independent trials and the
        correction is constant, else Hoeffding with the weights of the exhaustive
        design, else empirical Bernstein on one value per target.
    estimator : {"paired", "nested"}, optional
        ``"nested"`` is the source's: a second set of outputs for the correction, scored
        against a second set of drawn targets. For comparison; it is wider.
    progress : callable, optional
        Called with the number of outputs scored so far and in all.
    rng : numpy.random.Generator
        Split into streams for targets, mechanism and attack, so that another attack
        meets the same outputs.

    Returns
    -------
    AttackEstimate
        Values as measured, negative ones included.

    Raises
    ------
    NotApplicable
        If the interval asked for is not valid for the design.

    Notes
    -----
    The estimator is unbiased in every design (Equation 5.5 of [1]_; proved on the page
    on estimation). Several outputs of one drawn target are one observation of the
    average over targets: pooled as if independent, limits of 99 % fail in 13 % to 30 %
    of runs. In the exhaustive design the sample is worth :math:`J/\kappa_\pi` trials.
    Not checkable: that the sampler draws independent outputs of what is really
    released. The nested estimator follows Section 5.5 of [2]_.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> from undertow.risk import ProtocolSampler
    >>> from undertow.risk.prior import Prior
    >>> class Report:
    ...     def guess(self, outputs, known, *, rng):
    ...         return outputs
    >>> measured = estimate_attack(
    ...     ProtocolSampler(GeneralizedResponse(10, 2)), Report(),
    ...     Threat(Prior.uniform(10)), trials=20_000, rng=np.random.default_rng(1),
    ... )
    >>> measured.correction, measured.advantage.method
    (0.1, 'Clopper-Pearson, less the constant correction')
    >>> measured.advantage.low < 0.350848 < measured.advantage.high
    True
    """
    check_probability(confidence, "confidence", open_interval=True)
    check_choice(interval, "interval", choices=_INTERVALS)
    check_choice(estimator, "estimator", choices=_ESTIMATORS)
    targets, runner, guesser = rng.spawn(3)
    plan = plan_draws(threat, design=design, trials=trials, runs=runs, rng=targets)
    scorer = Scorer(attack, threat, expected=interval != "clopper-pearson")
    measured = Measured(plan, threat, confidence, interval, not scorer.expected)
    score = _paired if estimator == "paired" else _nested
    return score(sampler, scorer, measured, (targets, runner, guesser), progress)


def _paired(
    sampler: Sampler,
    scorer: Scorer,
    measured: Measured,
    streams: Streams,
    progress: Progress | None,
) -> AttackEstimate:
    plan, constant = measured.plan, constant_baseline(measured.threat)
    hit, base = score_draws(sampler, scorer, plan, streams, progress)
    advantage = measured.advantage(hit, base, constant)
    return AttackEstimate(
        measured.success(hit),
        measured.mean(base, 0.0, 1.0) if constant is None else constant,
        advantage,
        measured.student(hit - base, advantage.value),
        plan.design,
        "paired",
        plan.total,
        scorer.calls,
    )


def _nested(
    sampler: Sampler,
    scorer: Scorer,
    measured: Measured,
    streams: Streams,
    progress: Progress | None,
) -> AttackEstimate:
    plan = measured.plan
    found = nested_estimates(
        sampler, scorer, measured, streams=streams, progress=progress
    )
    return AttackEstimate(
        *found, None, plan.design, "nested", 2 * plan.total, scorer.calls
    )
