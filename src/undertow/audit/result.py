"""What an audit hands back: a verdict that rests on a certificate alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from undertow._validate import check_count, check_non_negative, check_probability
from undertow.audit.claim import Claim
from undertow.privacy.result import Estimate, Witness, _Shown, to_plain

__all__ = ["AuditResult", "MethodResult", "Verdict"]

Verdict = Literal["violated", "not refuted"]
"""Refuted with the stated confidence, or not; a promise is never confirmed."""


@dataclass(frozen=True, slots=True)
class MethodResult(_Shown):
    """One way to look at the reports, and what it gave.

    Parameters
    ----------
    name : str
        The method.
    estimate : float
        Point estimate of epsilon; may exceed the truth.
    certified : float
        Lower limit of the claimed parameter with the confidence of the audit, for this
        method alone; choices made on the same trials are paid for.
    trials : int
        Number of trials behind both.
    decides : bool
        Whether the verdict rests on it; exactly one method decides, and it was chosen
        without its trials.
    """

    name: str
    estimate: float
    certified: float
    trials: int
    decides: bool = False


@dataclass(frozen=True, slots=True)
class AuditResult(_Shown):
    """The outcome of an audit.

    Parameters
    ----------
    subject : str
        What was audited.
    claim : Claim
        What was promised.
    certified : float
        Lower limit of the claimed parameter (epsilon, or mu of a Gaussian claim) with
        the stated confidence; all that the verdict rests on.
    confidence : float
        Probability that `certified` is right; that a true claim is not refuted.
    trials : int
        Outputs of the subject behind the choice and the certificate.
    epsilon_certified : float
        Lower limit of epsilon at the delta of the claim; equal to `certified` unless
        the claim is Gaussian.
    epsilon_estimate : float, optional
        Point estimate of epsilon: no evidence by itself.
    advantage : Estimate, optional
        Empirical advantage of the attack, with its interval.
    methods : tuple of MethodResult, optional
        What was tried.
    witness : Witness, optional
        The event or attack that refutes the claim.
    power : mapping, optional
        What the audit could have found: ``trials_needed`` to refute the claim at all,
        those for a choice included; ``ceiling`` the largest certificate that the method
        could have given; ``detectable`` the estimate of epsilon from which the claim
        would have been refuted, infinite if none.
    baseline : mapping, optional
        What LDP-Auditor gives on as many trials.
    seed : int, optional
        What reproduces the run.
    verdict : str
        ``"violated"`` exactly if `certified` exceeds the claim at its price for
        replacing a record; computed, not given.

    Examples
    --------
    >>> AuditResult("code", Claim.pure(1), 1.2, confidence=0.99, trials=1000,
    ...             epsilon_certified=1.2).verdict
    'violated'
    """

    subject: str
    claim: Claim
    certified: float
    confidence: float
    trials: int
    epsilon_certified: float
    epsilon_estimate: float | None = None
    advantage: Estimate | None = None
    methods: tuple[MethodResult, ...] = ()
    witness: Witness | None = None
    power: Mapping[str, float] = field(default_factory=dict, hash=False)
    baseline: Mapping[str, Any] | None = field(default=None, hash=False)
    seed: int | None = None
    verdict: Verdict = field(init=False)

    def __post_init__(self) -> None:
        check_non_negative(self.certified, "certified")
        check_non_negative(self.epsilon_certified, "epsilon_certified")
        check_probability(self.confidence, "confidence", open_interval=True)
        check_count(self.trials, "trials")
        if self.epsilon_estimate is not None and math.isnan(self.epsilon_estimate):
            raise ValueError("epsilon_estimate must be a number, got nan.")
        level = self.claim.for_replacement().level
        verdict = "violated" if self.certified > level else "not refuted"
        object.__setattr__(self, "verdict", verdict)
        object.__setattr__(self, "power", MappingProxyType(dict(self.power)))

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted with the stated confidence."""
        return self.verdict == "violated"

    def __reduce__(self) -> tuple[Any, ...]:
        given = (
            self.subject, self.claim, self.certified, self.confidence, self.trials,
            self.epsilon_certified, self.epsilon_estimate, self.advantage,
            self.methods, self.witness, dict(self.power), self.baseline, self.seed,
        )  # fmt: skip
        return AuditResult, given

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        # Explicit, as slots and zero-argument super do not mix in data classes.
        return {
            **_Shown.to_dict(self),
            "tested": to_plain(self.claim.for_replacement()),
        }
