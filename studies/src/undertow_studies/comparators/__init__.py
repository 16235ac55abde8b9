"""What others do about correlated records, computed beside our own methods.

Every comparator states the attackers it speaks of and whether its scale is a guarantee
in the sense of Bayesian differential privacy. None of them is used to calibrate.
"""

from undertow_studies.comparators.comparison import (
    CASES,
    ReferenceCase,
    compare_scales,
    reference_case,
    side_by_side,
)
from undertow_studies.comparators.pufferfish import (
    ConversionCurve,
    MarkovQuilt,
    approximate_quilt_scale,
    best_quilt,
    count_wasserstein_scale,
    gaussian_wasserstein_scale,
    quilt_curve,
    quilt_influence,
    quilt_scale,
    wasserstein_infinity,
    wasserstein_scale,
)
from undertow_studies.comparators.scale import (
    EVERY_ATTACKER,
    NO_KNOWLEDGE,
    ComparatorScale,
    PrintedResponse,
    group_scale,
    printed_gaussian_scale,
    printed_response,
    response_accuracy,
    response_accuracy_normal,
    response_confidence,
    response_law,
    yang_scale,
    zhao_leakage,
    zhao_scale,
)

__all__ = [
    "CASES",
    "EVERY_ATTACKER",
    "NO_KNOWLEDGE",
    "ComparatorScale",
    "ConversionCurve",
    "MarkovQuilt",
    "PrintedResponse",
    "ReferenceCase",
    "approximate_quilt_scale",
    "best_quilt",
    "compare_scales",
    "count_wasserstein_scale",
    "gaussian_wasserstein_scale",
    "group_scale",
    "printed_gaussian_scale",
    "printed_response",
    "quilt_curve",
    "quilt_influence",
    "quilt_scale",
    "reference_case",
    "response_accuracy",
    "response_accuracy_normal",
    "response_confidence",
    "response_law",
    "side_by_side",
    "wasserstein_infinity",
    "wasserstein_scale",
    "yang_scale",
    "zhao_leakage",
    "zhao_scale",
]
