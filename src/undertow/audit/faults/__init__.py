"""Bug fixtures: code that breaks its promise, with its exact law and its repair."""

from undertow.audit.faults.base import Code, Fault, code_subject
from undertow.audit.faults.counting import (
    fixed_noise,
    observed_keys,
    one_sided_noise,
    unhalved_exponent,
)
from undertow.audit.faults.densities import GaussianLaw, LaplaceLaw, TraceLaw
from undertow.audit.faults.encoding import (
    certain_subset,
    full_level_flip,
    missing_reset,
    value_seeded_hash,
)
from undertow.audit.faults.laws import (
    BitsLaw,
    FiniteLaw,
    Law,
    ResponseLaw,
    channel_epsilon,
)
from undertow.audit.faults.numeric import (
    data_bounds,
    float_noise,
    halved_noise,
    variance_as_deviation,
    wrong_sensitivity,
)
from undertow.audit.faults.registry import FAULTS, named_fault
from undertow.audit.faults.response import (
    double_report,
    forgotten_split,
    raised_truth,
    value_seeded_response,
    whole_domain_lie,
)
from undertow.audit.faults.threshold import endless_threshold, noiseless_queries

__all__ = [
    "FAULTS",
    "BitsLaw",
    "Code",
    "Fault",
    "FiniteLaw",
    "GaussianLaw",
    "LaplaceLaw",
    "Law",
    "ResponseLaw",
    "TraceLaw",
    "certain_subset",
    "channel_epsilon",
    "code_subject",
    "data_bounds",
    "double_report",
    "endless_threshold",
    "fixed_noise",
    "float_noise",
    "forgotten_split",
    "full_level_flip",
    "halved_noise",
    "missing_reset",
    "named_fault",
    "noiseless_queries",
    "observed_keys",
    "one_sided_noise",
    "raised_truth",
    "unhalved_exponent",
    "value_seeded_hash",
    "value_seeded_response",
    "variance_as_deviation",
    "whole_domain_lie",
    "wrong_sensitivity",
]
