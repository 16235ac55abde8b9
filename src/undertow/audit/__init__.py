"""Audits: whether the code keeps its promise, and how sure one can be.

An audit attacks a mechanism and turns counts into a certificate: a lower limit of its
privacy parameter that holds with a stated confidence. A claim is violated exactly if
the certificate exceeds it; it is never confirmed.
"""

from undertow.audit._method import pilot_size
from undertow.audit.certificate import (
    SequentialTest,
    SequentialVerdict,
    claim_p_value,
    epsilon_from_advantage,
    epsilon_from_success,
    event_epsilon,
    event_mu,
    odds_epsilon,
    proportion_sequence,
    ratio_mu_sequence,
    ratio_sequence,
    success_ceiling,
    success_epsilon,
    success_mu,
    trials_needed,
)
from undertow.audit.claim import Adjacency, Claim, Parameter
from undertow.audit.event import (
    LabelEvent,
    Score,
    ScoreEvent,
    learned_scores,
    lowest_bit,
    residue,
)
from undertow.audit.inversion import (
    Inversion,
    estimate_level,
    estimate_protocol_level,
    family_success,
)
from undertow.audit.leakage import audit_leakage
from undertow.audit.local import (
    Baseline,
    Curve,
    Tail,
    audit_local,
    audit_until_refuted,
    ldp_auditor,
    ldp_auditor_epsilon,
    recorded_curve,
    repeated_curve,
)
from undertow.audit.pair import (
    audit_pair,
    audit_pair_until_refuted,
    pair_trials_needed,
)
from undertow.audit.program import CommandSubject
from undertow.audit.record import RecordedSubject
from undertow.audit.result import AuditResult, MethodResult, Verdict
from undertow.audit.runner import affordable_trials, run_chunks
from undertow.audit.subject import (
    CallableSubject,
    ClientSubject,
    DiffprivlibSubject,
    LawSubject,
    MechanismSubject,
    OpenDPSubject,
    ProtocolSubject,
    Subject,
)
from undertow.audit.threat import advantage_epsilon, advantage_limit, advantage_mu
from undertow.errors import AuditError

__all__ = [
    "Adjacency",
    "AuditError",
    "AuditResult",
    "Baseline",
    "CallableSubject",
    "Claim",
    "ClientSubject",
    "CommandSubject",
    "Curve",
    "DiffprivlibSubject",
    "Inversion",
    "LabelEvent",
    "LawSubject",
    "MechanismSubject",
    "MethodResult",
    "OpenDPSubject",
    "Parameter",
    "ProtocolSubject",
    "RecordedSubject",
    "Score",
    "ScoreEvent",
    "SequentialTest",
    "SequentialVerdict",
    "Subject",
    "Tail",
    "Verdict",
    "advantage_epsilon",
    "advantage_limit",
    "advantage_mu",
    "affordable_trials",
    "audit_leakage",
    "audit_local",
    "audit_pair",
    "audit_pair_until_refuted",
    "audit_until_refuted",
    "claim_p_value",
    "epsilon_from_advantage",
    "epsilon_from_success",
    "estimate_level",
    "estimate_protocol_level",
    "event_epsilon",
    "event_mu",
    "family_success",
    "ldp_auditor",
    "ldp_auditor_epsilon",
    "learned_scores",
    "lowest_bit",
    "odds_epsilon",
    "pair_trials_needed",
    "pilot_size",
    "proportion_sequence",
    "ratio_mu_sequence",
    "ratio_sequence",
    "recorded_curve",
    "repeated_curve",
    "residue",
    "run_chunks",
    "success_ceiling",
    "success_epsilon",
    "success_mu",
    "trials_needed",
]
