"""A fault: code that breaks its promise, with the law that says by how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, SupportsIndex

from undertow.audit.claim import Claim
from undertow.audit.faults.densities import GaussianLaw
from undertow.audit.faults.laws import Law
from undertow.audit.local import audit_local
from undertow.audit.pair import audit_pair
from undertow.audit.result import AuditResult
from undertow.audit.subject_callable import CallableSubject
from undertow.audit.subjects import Subject

__all__ = ["Code", "Fault", "code_subject"]


@dataclass(frozen=True, eq=False)
class Code:
    """Code that can be run, and what it does.

    Parameters
    ----------
    subject : Subject
        The code.
    law : Law
        Its exact output law, derived apart from the code.
    """

    subject: Subject
    law: Law


@dataclass(frozen=True, eq=False)
class Fault:
    """A bug with its claim, its exact law and its repair.

    Parameters
    ----------
    name : str
        A short name.
    bug : str
        What is wrong, in one sentence.
    claim : Claim
        What the code is said to keep.
    broken, repaired : Code
        The code with the bug, and without.
    trials : int
        At so many trials the audit finds the bug in at least 95 of 100 runs.
    method : {"local", "pair"}
        Which audit finds it.
    reader : LocalProtocol, optional
        How the reports are read, for a local audit.
    score : optional
        What else is looked at, for a pair audit.
    pairs : sequence of pairs or "auto", optional
        Which inputs are compared, for a pair audit.
    success : float, optional
        How often the simple attack on the broken code names a uniform value.

    Examples
    --------
    >>> from undertow.audit.faults import whole_domain_lie
    >>> fault = whole_domain_lie()
    >>> round(fault.epsilon, 4), fault.audit(seed=1).verdict
    (1.4126, 'violated')
    >>> fault.audit(seed=1, repaired=True).verdict
    'not refuted'
    """

    name: str
    bug: str
    claim: Claim
    broken: Code
    repaired: Code
    trials: int
    method: Literal["local", "pair"] = "pair"
    reader: Any = None
    score: Any = None
    pairs: Sequence[tuple[int, int]] | Literal["auto"] = "auto"
    success: float | None = None

    @property
    def epsilon(self) -> float:
        """The true epsilon of the broken code."""
        return self.broken.law.epsilon

    @property
    def level(self) -> float:
        """The true value of what is claimed: epsilon, or mu of a Gaussian claim."""
        law = self.broken.law
        return law.mu if isinstance(law, GaussianLaw) else law.epsilon

    def audit(
        self,
        *,
        seed: SupportsIndex,
        repaired: bool = False,
        trials: SupportsIndex | None = None,
        confidence: float = 0.99,
    ) -> AuditResult:
        """Run the audit that finds the bug, on the broken or the repaired code.

        Parameters
        ----------
        seed : int
            Makes the run repeatable.
        repaired : bool, optional
            Whether the code without the bug is audited.
        trials : int, optional
            The stated ones by default.
        confidence : float, optional
            Probability that a true claim is not refuted.
        """
        subject = (self.repaired if repaired else self.broken).subject
        count = self.trials if trials is None else trials
        if self.method == "local":
            return audit_local(
                subject,
                self.claim,
                trials=count,
                confidence=confidence,
                seed=seed,
                reader=self.reader,
            )
        return audit_pair(
            subject,
            self.claim,
            pairs=self.pairs,
            trials=count,
            confidence=confidence,
            seed=seed,
            score=self.score,
        )


def code_subject(
    function: Callable[..., Any], inputs: Sequence[Any], *, name: str, **settings: Any
) -> CallableSubject:
    """Return a function of many equal inputs, `rng` and settings as a subject."""
    return CallableSubject(
        partial(function, **settings), inputs, vectorised=True, name=name
    )
