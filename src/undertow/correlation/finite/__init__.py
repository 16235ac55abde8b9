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
    LaplaceJointMethod,
    laplace_leakage,
    laplace_ratio_suprema,
    laplace_ratio_supremum,
)
from undertow.correlation.finite.program import (
    ProgramMethod,
    worst_case_kernel,
    worst_case_leakage,
)
from undertow.correlation.group import GeneralMethod
from undertow.correlation.model import state_methods

state_methods(JointTable, LaplaceJointMethod(), ProgramMethod(), GeneralMethod())

__all__ = [
    "ConditionalTable",
    "JointTable",
    "LaplaceJointMethod",
    "MetricVerdict",
    "ProgramMethod",
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
