"""Audits of what correlated records leak: the attacker may know some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_probability
from undertow.audit._outcome import require_unmasked, shortened
from undertow.audit.certificate import event_epsilon
from undertow.audit.claim import Claim
from undertow.audit.pair.fixed import runs_needed
from undertow.audit.record import probe
from undertow.audit.result import AuditResult, MethodResult
from undertow.correlation.empirical import BlackBox, Trial, verify_claim
from undertow.correlation.model import Model
from undertow.correlation.result import LeakageEstimate
from undertow.errors import AuditError
from undertow.numeric.rounding import nudge_down
from undertow.privacy.loss import Pure
from undertow.results import Witness

# Covers the rounding of the limits in the certificate.
_MARGIN = 1e-9
_FEWEST = 100


def audit_leakage(
    model: Model,
    mechanism: BlackBox,
    claim: Claim,
    *,
    samples: SupportsIndex = 100_000,
    attackers: Sequence[Trial] | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    confidence: float = 0.99,
    seed: SupportsIndex = 0,
    name: str = "mechanism",
) -> AuditResult:
    r"""Try to refute a claimed leakage of a program on correlated records.

    Parameters
    ----------
    model : Model
        The law of the records; it draws the unknown ones given the known.
    mechanism : callable
        Takes databases (one a row) and a generator, returns one number a row.
    claim : Claim
        Pure: the largest change of any attacker's log odds between two secrets.
    samples : int, optional
        Runs for each of two secrets in the test, and for the search.
    attackers : sequence of Trial, optional
        Attackers and pairs of secrets; by default a heuristic list.
    pairs : sequence of pairs, optional
        Secrets to tell apart, for the heuristic list.
    confidence : float, optional
        Probability that a true claim is not refuted.
    seed : int, optional
        Reproduces everything.
    name : str, optional
        What the report calls the program.

    Returns
    -------
    AuditResult
        With the attacker, the secrets and the event as witness if refuted.

    Raises
    ------
    AuditError
        If the claim is not pure or about adding a record, if so few samples cannot
        refute it, or if the program raises, returns nan or anything but one number a
        row, repeats its batches or draws once for all rows.

    Notes
    -----
    Theorem 1 of the page *Event audits*, for the two laws of the output given each
    secret and what the attacker knows. Not checkable: that `model` is the law of the
    data; a claim refuted under a model may hold under another.

    Examples
    --------
    >>> from undertow.correlation import JointTable
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> def noisy_sum(rows, rng):
    ...     return rows.sum(axis=1) + rng.laplace(size=len(rows))
    >>> found = audit_leakage(flatmates, noisy_sum, Claim.pure(1), samples=40_000)
    >>> found.verdict, found.certified > 1.5
    ('violated', True)
    """
    runs = check_count(samples, "samples", minimum=_FEWEST)
    level = check_probability(confidence, "confidence", open_interval=True)
    root = check_count(seed, "seed", minimum=0)
    ceiling = _ceiling(claim, runs, level)
    checked = _Checked(mechanism, name)
    _check_fresh(model, checked, runs)
    verdict = verify_claim(
        model,
        checked,
        claim.level,
        samples=runs,
        trials=attackers,
        pairs=pairs,
        confidence=level,
        seed=root,
    )
    estimate = verdict.estimate
    least = max(_FEWEST, runs_needed(claim, confidence=level))
    power = {
        "trials_needed": 2 * (least + _searched(least, estimate.tried)),
        "ceiling": ceiling,
        "can_refute": True,  # else it was refused
    }
    return _result(claim, estimate, power, name=name)


class _Checked:
    """The program, with its failures turned into one sentence."""

    def __init__(self, mechanism: BlackBox, name: str) -> None:
        self.mechanism, self.name = mechanism, name

    def __call__(self, rows: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        try:
            raw = self.mechanism(rows, rng)
            outputs = np.array(raw)  # a copy, as the next run may be written over it
        except (Exception, SystemExit) as error:
            raise AuditError(
                f"{self.name} must not raise, got {type(error).__name__}: "
                f"{shortened(str(error))}."
            ) from error
        require_unmasked(raw, self.name)
        if outputs.shape != (len(rows),):
            raise AuditError(
                f"{self.name} must return one number for each of {len(rows)} "
                f"databases, got an array of shape {outputs.shape}."
            )
        if outputs.dtype.kind == "f" and np.isnan(outputs).any():
            raise AuditError(f"{self.name} must return numbers, got nan.")
        return outputs


def _check_fresh(model: Model, checked: _Checked, runs: int) -> None:
    """Refuse a program that repeats its batches, or draws once for all databases."""
    one = model.sample_given({}, 1, rng=np.random.default_rng(0))

    def draw(given: int, size: int, rng: np.random.Generator) -> NDArray[Any]:
        return checked(np.repeat(one, size, axis=0), rng)

    probe(draw, 0, trials=runs, name=checked.name)


def _ceiling(claim: Claim, runs: int, confidence: float) -> float:
    """Return the largest certificate, or refuse a claim out of reach."""
    apart = claim.adjacency in ("add-remove", "one-apart")
    if not isinstance(claim.loss, Pure) or apart:
        raise AuditError(
            f"claim must bound a leakage, Claim.pure(value), got {claim}; leakage "
            "compares two values of one record."
        )
    ceiling = event_epsilon(runs, runs, 0, runs, confidence=confidence).value
    if ceiling <= claim.level:
        raise AuditError(
            f"samples must be enough to certify more than {claim.level:g}, got {runs}, "
            f"which reach {ceiling:.3g} at most; ask for more."
        )
    return ceiling


def _searched(samples: int, attackers: int) -> int:
    """Return the runs on each secret that choose among the attackers."""
    return attackers * max(_FEWEST, samples // attackers)


def _result(
    claim: Claim, estimate: LeakageEstimate, power: dict[str, float], *, name: str
) -> AuditResult:
    certified = max(0.0, nudge_down(estimate.low * (1.0 - _MARGIN)))
    method = MethodResult(
        f"attacker and event: {estimate.event}",
        estimate.value,
        certified,
        2 * estimate.trials,
        decides=True,
        ceiling=power["ceiling"],
    )
    return AuditResult(
        name,
        claim,
        certified,
        confidence=estimate.confidence,
        trials=2 * (estimate.trials + _searched(estimate.trials, estimate.tried)),
        epsilon_certified=certified,
        epsilon_estimate=estimate.value,
        methods=(method,),
        witness=_witness(estimate) if certified > claim.level else None,
        power=power,
        seed=estimate.seed,
    )


def _witness(estimate: LeakageEstimate) -> Witness:
    known = estimate.adversary.known if estimate.adversary is not None else ()
    first, second = estimate.pair if estimate.pair is not None else (None, None)
    attacker = (
        f"someone who knows {len(known)} records" if known else "someone who knows none"
    )
    summary = f"{attacker} tells {first!r} from {second!r} by {estimate.event}"
    details = {
        "adversary": estimate.adversary,
        "pair": estimate.pair,
        "event": estimate.event,
        "attackers_tried": estimate.tried,
    }
    return Witness("event", summary, details)
