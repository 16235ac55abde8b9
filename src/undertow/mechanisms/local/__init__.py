"""Local protocols: each client reports its own category, with exact laws and attacks.

GRR, unary encodings (SUE, OUE, any p and q), subset selection, local hashing (BLH, OLH)
and histogram encodings (SHE, THE): output law, loss, total variation, closed forms of
the reconstruction advantage, samplers for millions of clients, frequency estimation.
"""

from undertow.mechanisms.local.base import (
    FrequencyEstimate,
    LocalProtocol,
    estimate_frequencies,
    frequency_from_counts,
    frequency_variance,
)
from undertow.mechanisms.local.grr import (
    GeneralizedResponse,
    calibrate_grr,
    grr_advantage,
    grr_level,
    grr_success,
    grr_variation,
)
from undertow.mechanisms.local.hashing import (
    BinaryHashing,
    LocalHashing,
    OptimizedHashing,
    hash_bucket,
    hash_buckets,
    hashing_advantage,
    hashing_success,
    hashing_variation,
)
from undertow.mechanisms.local.histogram import (
    SummationHistogram,
    ThresholdHistogram,
    she_advantage,
    she_success,
    she_variation,
    the_advantage,
    the_threshold,
    the_variation,
)
from undertow.mechanisms.local.registry import (
    PROTOCOLS,
    NamedProtocol,
    protocol_name,
)
from undertow.mechanisms.local.subset import (
    SubsetCalibration,
    SubsetSelection,
    calibrate_subset,
    subset_advantage,
    subset_breakpoints,
    subset_level,
    subset_size,
    subset_success,
    subset_variation,
)
from undertow.mechanisms.local.unary import (
    OptimizedUnary,
    SymmetricUnary,
    UnaryEncoding,
    oue_advantage,
    oue_variation,
    sue_advantage,
    sue_variation,
    unary_advantage,
    unary_success,
)

__all__ = [
    "PROTOCOLS",
    "BinaryHashing",
    "FrequencyEstimate",
    "GeneralizedResponse",
    "LocalHashing",
    "LocalProtocol",
    "NamedProtocol",
    "OptimizedHashing",
    "OptimizedUnary",
    "SubsetCalibration",
    "SubsetSelection",
    "SummationHistogram",
    "SymmetricUnary",
    "ThresholdHistogram",
    "UnaryEncoding",
    "calibrate_grr",
    "calibrate_subset",
    "estimate_frequencies",
    "frequency_from_counts",
    "frequency_variance",
    "grr_advantage",
    "grr_level",
    "grr_success",
    "grr_variation",
    "hash_bucket",
    "hash_buckets",
    "hashing_advantage",
    "hashing_success",
    "hashing_variation",
    "oue_advantage",
    "oue_variation",
    "protocol_name",
    "she_advantage",
    "she_success",
    "she_variation",
    "subset_advantage",
    "subset_breakpoints",
    "subset_level",
    "subset_size",
    "subset_success",
    "subset_variation",
    "sue_advantage",
    "sue_variation",
    "the_advantage",
    "the_threshold",
    "the_variation",
    "unary_advantage",
    "unary_success",
]
