"""Audits: whether the code keeps its promise, and how sure one can be.

An audit attacks a mechanism and turns counts into a certificate: a lower limit of its
privacy parameter that holds with a stated confidence. A claim is violated exactly if
the certificate exceeds it; it is never confirmed.
"""

from undertow.audit.baseline import Baseline, Tail, ldp_auditor, ldp_auditor_epsilon
from undertow.audit.certify import (
    claim_p_value,
    epsilon_from_advantage,
    epsilon_from_success,
    event_epsilon,
    event_mu,
    odds_epsilon,
    success_ceiling,
    success_epsilon,
    success_mu,
    trials_needed,
)
from undertow.audit.claim import Adjacency, Claim
from undertow.audit.inversion import Inversion, estimate_level, family_success
from undertow.audit.local import audit_local, audit_until_refuted, pilot_size
from undertow.audit.result import AuditResult, MethodResult, Verdict
from undertow.audit.sequential import (
    SequentialTest,
    SequentialVerdict,
    proportion_sequence,
    ratio_mu_sequence,
    ratio_sequence,
)

__all__ = [
    "Adjacency",
    "AuditResult",
    "Baseline",
    "Claim",
    "Inversion",
    "MethodResult",
    "SequentialTest",
    "SequentialVerdict",
    "Tail",
    "Verdict",
    "audit_local",
    "audit_until_refuted",
    "claim_p_value",
    "epsilon_from_advantage",
    "epsilon_from_success",
    "estimate_level",
    "event_epsilon",
    "event_mu",
    "family_success",
    "ldp_auditor",
    "ldp_auditor_epsilon",
    "odds_epsilon",
    "pilot_size",
    "proportion_sequence",
    "ratio_mu_sequence",
    "ratio_sequence",
    "success_ceiling",
    "success_epsilon",
    "success_mu",
    "trials_needed",
]
