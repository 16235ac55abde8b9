"""All studies, in the order of their sources."""

from __future__ import annotations

from undertow_studies.audit_fault import AUDIT_BUGS
from undertow_studies.audit_protocol import AUDIT_SAUER, AUDIT_THESIS
from undertow_studies.master_bound import MASTER_BOUNDS, MASTER_UTILITY
from undertow_studies.master_simulation import MASTER_SIMULATION
from undertow_studies.risk_attack import RISK_LAPLACE, RISK_LOCAL
from undertow_studies.risk_bound import RISK_BOUNDS, RISK_IMPUTATION
from undertow_studies.risk_theory import RISK_THEORY, RISK_UTILITY
from undertow_studies.sauer_bound import SAUER_BOUNDS, SAUER_MAP, SAUER_TABLES
from undertow_studies.sauer_graph import SAUER_GRAPH
from undertow_studies.sauer_report import SAUER_PRIOR, SAUER_RESPONSE
from undertow_studies.sauer_walk import SAUER_CORRELATION, SAUER_GRAPH_WALKS
from undertow_studies.thesis_bound import THESIS_BOUNDS, THESIS_RESPONSE
from undertow_studies.thesis_model import THESIS_GAUSSIAN, THESIS_MARKOV

STUDIES = (
    *RISK_THEORY,
    *RISK_UTILITY,
    *RISK_BOUNDS,
    *RISK_IMPUTATION,
    *RISK_LAPLACE,
    *RISK_LOCAL,
    *AUDIT_THESIS,
    *THESIS_BOUNDS,
    *THESIS_RESPONSE,
    *THESIS_GAUSSIAN,
    *THESIS_MARKOV,
    *MASTER_BOUNDS,
    *MASTER_SIMULATION,
    *MASTER_UTILITY,
    *SAUER_BOUNDS,
    *SAUER_TABLES,
    *SAUER_MAP,
    *SAUER_PRIOR,
    *SAUER_RESPONSE,
    *SAUER_CORRELATION,
    *SAUER_GRAPH,
    *SAUER_GRAPH_WALKS,
    *AUDIT_SAUER,
    *AUDIT_BUGS,
)
"""Every study, by source."""
