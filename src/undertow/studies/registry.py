"""All studies, in the order of their sources."""

from undertow.studies.audit_bugs import AUDIT_BUGS
from undertow.studies.audit_sauer import AUDIT_SAUER
from undertow.studies.audit_thesis import AUDIT_THESIS
from undertow.studies.master_bounds import MASTER_BOUNDS
from undertow.studies.master_simulation import MASTER_SIMULATION
from undertow.studies.master_utility import MASTER_UTILITY
from undertow.studies.risk_bounds import RISK_BOUNDS
from undertow.studies.risk_imputation import RISK_IMPUTATION
from undertow.studies.risk_laplace import RISK_LAPLACE
from undertow.studies.risk_local import RISK_LOCAL
from undertow.studies.risk_theory import RISK_THEORY
from undertow.studies.risk_utility import RISK_UTILITY
from undertow.studies.sauer_bounds import SAUER_BOUNDS
from undertow.studies.sauer_correlation import SAUER_CORRELATION
from undertow.studies.sauer_graph import SAUER_GRAPH
from undertow.studies.sauer_graph_walks import SAUER_GRAPH_WALKS
from undertow.studies.sauer_map import SAUER_MAP
from undertow.studies.sauer_prior import SAUER_PRIOR
from undertow.studies.sauer_response import SAUER_RESPONSE
from undertow.studies.sauer_tables import SAUER_TABLES
from undertow.studies.thesis_bounds import THESIS_BOUNDS
from undertow.studies.thesis_gaussian import THESIS_GAUSSIAN
from undertow.studies.thesis_markov import THESIS_MARKOV
from undertow.studies.thesis_response import THESIS_RESPONSE

__all__ = ["STUDIES"]

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
