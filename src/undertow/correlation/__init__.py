"""What is really learnt when records depend on each other, and the noise for it."""

from undertow.correlation.accountant import (
    CorrelatedAccountant,
    compose_leakages,
)
from undertow.correlation.adversary import (
    Adversary,
)
from undertow.correlation.attack import (
    AdvantageCalibration,
    Attack,
    calibrate_advantage,
    finite_attack,
    laplace_attack,
    leakage_advantage,
    leakage_for_advantage,
    leakage_tradeoff,
    optimal_attack,
    strongest_attack,
)
from undertow.correlation.blocks import (
    Blocks,
    Independent,
    block_leakage,
)
from undertow.correlation.calibrate import (
    calibrate,
)
from undertow.correlation.empirical import (
    KernelSettings,
    Trial,
    Verdict,
    estimate_laplace_leakage,
    estimate_leakage,
    estimate_tail_leakage,
    kernel_leakage,
    propose_trials,
    verify_claim,
)
from undertow.correlation.finite import (
    JointTable,
    exact_leakage,
    is_bayesian_metric_private,
    laplace_leakage,
    laplace_ratio_supremum,
    leakage_by_adversary,
    local_kernel,
    pair_leakage,
    two_point_law,
    worst_case_kernel,
    worst_case_leakage,
)
from undertow.correlation.fitting import (
    GaussianFit,
    GoodnessOfFit,
    MarkovFit,
    anytime_interval,
    correlation_upper_limit,
    fit_gaussian,
    fit_markov,
    fit_markov_private,
)
from undertow.correlation.floor import (
    AccuracyGap,
    accuracy_floor,
    accuracy_gap,
    impossibility_beta,
    packing_beta,
    packing_floor,
)
from undertow.correlation.gaussian import (
    Gaussian,
    LimitedGaussian,
    adversary_factor,
    clipped_tail_leakage,
    gaussian_correlation_limit,
    gaussian_crossover,
    gaussian_factor,
    partial_shift,
    worst_factor,
)
from undertow.correlation.general import (
    general_budget,
    general_leakage,
)
from undertow.correlation.leak import (
    leakage,
)
from undertow.correlation.markov import (
    HigherOrderChain,
    MarkovChain,
    MarkovFamily,
    TreeModel,
    column_ratio,
    gamma_budget,
    gamma_leakage,
    mixing_time,
    projective_budget,
    projective_diameter,
    projective_leakage,
    ratio_threshold,
    transition_ratio,
    window_leakage,
)
from undertow.correlation.mechanism_leak import (
    leakage_of,
)
from undertow.correlation.method import (
    Method,
)
from undertow.correlation.model import (
    Assumptions,
    Conditional,
    Model,
)
from undertow.correlation.native import (
    NativeMechanism,
    native_mechanism,
)
from undertow.correlation.odds import (
    posterior_odds_interval,
    posterior_probability_interval,
)
from undertow.correlation.pedigree import (
    Genotype,
    Pedigree,
    family_conjecture,
    genomic_accuracy,
    genomic_bounds,
    pedigree_leakage,
)
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
    Query,
)
from undertow.correlation.result import (
    Accuracy,
    Leakage,
    LeakageCalibration,
    LeakageEstimate,
)
from undertow.correlation.robust import (
    WhatIf,
    calibrate_over,
    explain,
    what_if,
)
from undertow.correlation.scope import (
    Scope,
)
from undertow.correlation.tightness import (
    tightness_law,
    tightness_leakage,
    tightness_lower_bound,
    tightness_parameter,
    tightness_pearson,
)
from undertow.correlation.units import (
    IndependentUnits,
)

__all__ = [
    "Accuracy",
    "AccuracyGap",
    "AdvantageCalibration",
    "Adversary",
    "AnyQuery",
    "Assumptions",
    "Attack",
    "Blocks",
    "Conditional",
    "CorrelatedAccountant",
    "CountQuery",
    "Gaussian",
    "GaussianFit",
    "Genotype",
    "GoodnessOfFit",
    "HigherOrderChain",
    "Independent",
    "IndependentUnits",
    "JointTable",
    "KernelSettings",
    "Leakage",
    "LeakageCalibration",
    "LeakageEstimate",
    "LimitedGaussian",
    "LinearQuery",
    "LipschitzQuery",
    "MarkovChain",
    "MarkovFamily",
    "MarkovFit",
    "Method",
    "Model",
    "NativeMechanism",
    "Pedigree",
    "Query",
    "Scope",
    "TreeModel",
    "Trial",
    "Verdict",
    "WhatIf",
    "accuracy_floor",
    "accuracy_gap",
    "adversary_factor",
    "anytime_interval",
    "block_leakage",
    "calibrate",
    "calibrate_advantage",
    "calibrate_over",
    "clipped_tail_leakage",
    "column_ratio",
    "compose_leakages",
    "correlation_upper_limit",
    "estimate_laplace_leakage",
    "estimate_leakage",
    "estimate_tail_leakage",
    "exact_leakage",
    "explain",
    "family_conjecture",
    "finite_attack",
    "fit_gaussian",
    "fit_markov",
    "fit_markov_private",
    "gamma_budget",
    "gamma_leakage",
    "gaussian_correlation_limit",
    "gaussian_crossover",
    "gaussian_factor",
    "general_budget",
    "general_leakage",
    "genomic_accuracy",
    "genomic_bounds",
    "impossibility_beta",
    "is_bayesian_metric_private",
    "kernel_leakage",
    "laplace_attack",
    "laplace_leakage",
    "laplace_ratio_supremum",
    "leakage",
    "leakage_advantage",
    "leakage_by_adversary",
    "leakage_for_advantage",
    "leakage_of",
    "leakage_tradeoff",
    "local_kernel",
    "mixing_time",
    "native_mechanism",
    "optimal_attack",
    "packing_beta",
    "packing_floor",
    "pair_leakage",
    "partial_shift",
    "pedigree_leakage",
    "posterior_odds_interval",
    "posterior_probability_interval",
    "projective_budget",
    "projective_diameter",
    "projective_leakage",
    "propose_trials",
    "ratio_threshold",
    "strongest_attack",
    "tightness_law",
    "tightness_leakage",
    "tightness_lower_bound",
    "tightness_parameter",
    "tightness_pearson",
    "transition_ratio",
    "two_point_law",
    "verify_claim",
    "what_if",
    "window_leakage",
    "worst_case_kernel",
    "worst_case_leakage",
    "worst_factor",
]
