"""What others do about correlated records, computed beside our own methods.

Every comparator states the attackers it speaks of and whether its scale is a guarantee
in the sense of Bayesian differential privacy. None of them is used to calibrate.
"""

from undertow.correlation.comparators.case import CASES, ReferenceCase, reference_case
from undertow.correlation.comparators.curve import ConversionCurve, quilt_curve
from undertow.correlation.comparators.quilt import (
    MarkovQuilt,
    approximate_quilt_scale,
    best_quilt,
    quilt_influence,
    quilt_scale,
)
from undertow.correlation.comparators.response import (
    PrintedResponse,
    printed_response,
    response_accuracy,
    response_accuracy_normal,
    response_confidence,
    response_law,
)
from undertow.correlation.comparators.scale import (
    EVERY_ATTACKER,
    NO_KNOWLEDGE,
    ComparatorScale,
)
from undertow.correlation.comparators.scaling import (
    group_scale,
    printed_gaussian_scale,
    yang_scale,
    zhao_leakage,
    zhao_scale,
)
from undertow.correlation.comparators.side import compare_scales, side_by_side
from undertow.correlation.comparators.wasserstein import (
    count_wasserstein_scale,
    gaussian_wasserstein_scale,
    wasserstein_infinity,
    wasserstein_scale,
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
