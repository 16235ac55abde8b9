"""What releases cost together: plans, reports, ledgers and the theorems behind."""

from undertow.composition.allocation import (
    Allocation,
    allocate,
)
from undertow.composition.common import (
    CommonApprox,
    MinimumPrivacy,
    best_common_bound,
    compose_common,
    compose_common_approx,
    minimum_privacy_approx,
)
from undertow.composition.document import (
    domain_to_document,
    plan_from_document,
    plan_schema,
    plan_to_document,
    release_to_document,
)
from undertow.composition.engine import (
    EngineResult,
    compose_coded,
    compose_columns,
    loss_at_distance,
    price_row,
)
from undertow.composition.finite import (
    FiniteEngine,
    pairwise_loss,
    specialise,
    specialise_metric,
)
from undertow.composition.finite_claim import ApproxProfile
from undertow.composition.independence import (
    Disintegration,
    Leakage,
    bayesian_leakage,
    disintegrate,
)
from undertow.composition.ledger import (
    Ledger,
    Receipt,
    WindowLedger,
)
from undertow.composition.lint import (
    Finding,
    Stage,
    lint,
)
from undertow.composition.parallel import (
    bounded_parallel,
    bounded_profile,
    move_cost_matrix,
    overlap_loss,
    parallel_max,
    parallel_profile,
    top_m_loss,
)
from undertow.composition.plan import (
    Plan,
    Report,
    infinite_loss_error,
    reports_table,
)
from undertow.composition.reciprocal import (
    UnprotectedPart,
    after_post_processing,
    check_adaptive_step,
    check_reciprocal,
    reciprocal_lower_bound,
)
from undertow.composition.release import (
    Claim,
    Release,
    count_release,
    degree_release,
)
from undertow.composition.sequential import (
    ComposedApprox,
    ComposedMetric,
    compose_approx,
    compose_gauss,
    compose_pure,
    compose_zc,
    sequential,
)

__all__ = [
    "Allocation",
    "ApproxProfile",
    "Claim",
    "CommonApprox",
    "ComposedApprox",
    "ComposedMetric",
    "Disintegration",
    "EngineResult",
    "Finding",
    "FiniteEngine",
    "Leakage",
    "Ledger",
    "MinimumPrivacy",
    "Plan",
    "Receipt",
    "Release",
    "Report",
    "Stage",
    "UnprotectedPart",
    "WindowLedger",
    "after_post_processing",
    "allocate",
    "bayesian_leakage",
    "best_common_bound",
    "bounded_parallel",
    "bounded_profile",
    "check_adaptive_step",
    "check_reciprocal",
    "compose_approx",
    "compose_coded",
    "compose_columns",
    "compose_common",
    "compose_common_approx",
    "compose_gauss",
    "compose_pure",
    "compose_zc",
    "count_release",
    "degree_release",
    "disintegrate",
    "domain_to_document",
    "infinite_loss_error",
    "lint",
    "loss_at_distance",
    "minimum_privacy_approx",
    "move_cost_matrix",
    "overlap_loss",
    "pairwise_loss",
    "parallel_max",
    "parallel_profile",
    "plan_from_document",
    "plan_schema",
    "plan_to_document",
    "price_row",
    "reciprocal_lower_bound",
    "release_to_document",
    "reports_table",
    "sequential",
    "specialise",
    "specialise_metric",
    "top_m_loss",
]
