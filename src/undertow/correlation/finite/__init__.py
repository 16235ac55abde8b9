"""Records with a finite joint law: exact leakage, and the worst of all mechanisms."""

from undertow.correlation.finite.exact import (
    MetricVerdict,
    exact_leakage,
    is_bayesian_metric_private,
    leakage_by_adversary,
    pair_leakage,
)
from undertow.correlation.finite.joint import (
    ConditionalTable,
    JointTable,
    local_kernel,
    two_point_law,
)
from undertow.correlation.finite.laplace import (
    LaplaceJointTheorem,
    laplace_leakage,
    laplace_ratio_suprema,
    laplace_ratio_supremum,
)
from undertow.correlation.finite.program import (
    ProgramTheorem,
    worst_case_kernel,
    worst_case_leakage,
)
from undertow.correlation.group import GeneralTheorem
from undertow.correlation.theorem import state_methods

state_methods(JointTable, LaplaceJointTheorem(), ProgramTheorem(), GeneralTheorem())

__all__ = [
    "ConditionalTable",
    "JointTable",
    "LaplaceJointTheorem",
    "MetricVerdict",
    "ProgramTheorem",
    "exact_leakage",
    "is_bayesian_metric_private",
    "laplace_leakage",
    "laplace_ratio_suprema",
    "laplace_ratio_supremum",
    "leakage_by_adversary",
    "local_kernel",
    "pair_leakage",
    "two_point_law",
    "worst_case_kernel",
    "worst_case_leakage",
]
