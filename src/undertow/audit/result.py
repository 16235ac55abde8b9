"""What an audit hands back: a verdict that rests on a certificate alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from undertow._validate import check_count, check_non_negative, check_probability
from undertow.audit.claim import Claim, Parameter
from undertow.audit.inversion import Inversion
from undertow.results import Estimate, Witness, _Shown, to_plain

Verdict = Literal["violated", "not refuted"]
"""Refuted with the stated confidence, or not; a promise is never confirmed."""

_UNTIMED = (
    "not looked at: how long a run takes; code that needs longer on one input tells "
    "inputs apart by its running time"
)


@dataclass(frozen=True, slots=True)
class MethodResult(_Shown):
    """One way to look at the reports, and what it gave.

    Parameters
    ----------
    name : str
        The method.
    estimate : float
        Point estimate of the claimed parameter; may exceed the truth.
    certified : float
        Lower limit of the claimed parameter with the confidence of the audit, for this
        method alone; choices made on the same trials are paid for.
    trials : int
        Number of trials behind both.
    decides : bool
        Whether the verdict rests on it; exactly one method decides, and it was chosen
        without its trials.
    parameter : {"epsilon", "mu"}, optional
        What `estimate`, `certified` and `ceiling` are about.
    ceiling : float, optional
        The largest certificate that so many trials could have given by this method.
    """

    name: str
    estimate: float
    certified: float
    trials: int
    decides: bool = False
    parameter: Parameter = "epsilon"
    ceiling: float | None = None


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
    estimate : float, optional
        Point estimate of the claimed parameter: that of epsilon unless the claim is
        Gaussian, which needs one of its own.
    advantage : Estimate, optional
        Empirical advantage of the attack, with its interval.
    methods : tuple of MethodResult, optional
        What was tried.
    witness : Witness, optional
        The event or attack that refutes the claim.
    power : mapping, optional
        What the audit could have found: ``trials_needed`` to refute the claim at all,
        those for a choice included; ``ceiling`` the largest certificate that the
        deciding method could have given; ``can_refute`` whether any outcome with as
        many informative trials would have refuted the claim, and ``detectable`` the
        estimate of the claimed parameter from which they do, infinite if none. Where
        it is false in a local audit, ``trials_alike`` is about how many trials with as
        large a share of informative ones could refute it.
    baseline : mapping, optional
        What LDP-Auditor gives on as many trials.
    seed : int, optional
        What reproduces the run.
    inversion : Inversion, optional
        Which level the success of the simple attack would mean if the code were the
        protocol that it says it is; its ``status`` says where that is saturated.
    notes : tuple of str, optional
        What a reader should know besides. A claim that is not refuted by an audit
        without times has a note of that.
    times : bool, optional
        Whether the running time of each run was looked at.
    parameter : {"epsilon", "mu"}
        What `certified` and `estimate` are about; that of the claim.
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
    inversion: Inversion | None = None
    estimate: float | None = None
    notes: tuple[str, ...] = ()
    times: bool = False
    parameter: Parameter = field(init=False)
    verdict: Verdict = field(init=False)

    def __post_init__(self) -> None:
        check_non_negative(self.certified, "certified")
        check_non_negative(self.epsilon_certified, "epsilon_certified")
        check_probability(self.confidence, "confidence", open_interval=True)
        check_count(self.trials, "trials")
        for name in ("epsilon_estimate", "estimate"):
            given = getattr(self, name)
            if given is not None and math.isnan(given):
                raise ValueError(f"{name} must be a number, got nan.")
        parameter = self.claim.parameter
        object.__setattr__(self, "parameter", parameter)
        if self.estimate is None and parameter == "epsilon":
            object.__setattr__(self, "estimate", self.epsilon_estimate)
        level = self.claim.for_replacement().level
        verdict = "violated" if self.certified > level else "not refuted"
        object.__setattr__(self, "verdict", verdict)
        untimed = verdict == "not refuted" and not self.times
        told = tuple(note for note in self.notes if note != _UNTIMED)
        object.__setattr__(self, "notes", ((_UNTIMED,) if untimed else ()) + told)
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
            self.inversion, self.estimate, self.notes, self.times,
        )  # fmt: skip
        return AuditResult, given

    def _rows(self) -> list[tuple[str, str]]:
        rows = dict(_Shown._rows(self))
        if self.power.get("can_refute") is False:
            rows["power"] = (
                "the claim could not have been refuted by what was tested, whatever it "
                f"had shown; the largest certificate would be {self.power['ceiling']:g}"
            )
        return list(rows.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        # Explicit, as slots and zero-argument super do not mix in data classes.
        return {
            **_Shown.to_dict(self),
            "tested": to_plain(self.claim.for_replacement()),
        }
