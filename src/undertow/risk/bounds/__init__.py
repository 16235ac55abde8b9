"""Bounds on the advantage from a guarantee alone, with the hypotheses of each."""

from undertow.risk.bounds.accounted import (
    AccountedTradeOff,
    tradeoff_from_callable,
    tradeoff_from_curve,
    tradeoff_from_pld,
)
from undertow.risk.bounds.approximate import (
    baseline_bound,
    exact_guess_bound,
    region_capacity,
    uniform_guess_bound,
)
from undertow.risk.bounds.baselines import Baselines, ThreatLike
from undertow.risk.bounds.composed import (
    composed_bound,
    composed_tradeoff,
    composed_variation,
    variation_product,
)
from undertow.risk.bounds.conjectured import (
    Conjecture,
    black_box_conjecture,
    curve_conjecture,
)
from undertow.risk.bounds.inverse import (
    calibrate_baseline,
    calibrate_exact_guess,
    calibrate_uniform_guess,
    calibrate_variation,
    uniform_guess_epsilon_bound,
    variation_epsilon_bound,
)
from undertow.risk.bounds.knapsack import (
    pair_knapsack,
)
from undertow.risk.bounds.program import LARGEST_PROGRAM, program_bound
from undertow.risk.bounds.published import (
    superseded_bound,
    symmetrised_channel,
    uniform_interval,
    uniform_interval_bound,
)
from undertow.risk.bounds.renyi import (
    divergence_variation,
    tradeoff_from_rdp,
)
from undertow.risk.bounds.rero import (
    calibrate_success,
    success_advantage_bound,
    success_bound,
)
from undertow.risk.bounds.sgd import calibrate_sgd, sgd_bound, sgd_mu, zero_out_bound
from undertow.risk.bounds.sgd_simulation import (
    estimate_sgd_success,
)
from undertow.risk.bounds.subsampled import (
    SubsampledTradeOff,
    sgd_success_bound,
    subsampled_distribution,
    subsampled_tradeoff,
)
from undertow.risk.bounds.tabulated import tradeoff_from_channel
from undertow.risk.bounds.tradeoff import (
    calibrate_gaussian,
    calibrate_uniform_gaussian,
    gaussian_bound,
    tradeoff_bound,
    uniform_gaussian_bound,
    uniform_tradeoff_bound,
)
from undertow.risk.bounds.variation import (
    pairwise_variation_bound,
    prior_free_bound,
    projected_variation_bound,
    uniform_prior_bound,
    variation_bound,
    variation_matrix,
)

__all__ = [
    "LARGEST_PROGRAM",
    "AccountedTradeOff",
    "Baselines",
    "Conjecture",
    "SubsampledTradeOff",
    "ThreatLike",
    "baseline_bound",
    "black_box_conjecture",
    "calibrate_baseline",
    "calibrate_exact_guess",
    "calibrate_gaussian",
    "calibrate_sgd",
    "calibrate_success",
    "calibrate_uniform_gaussian",
    "calibrate_uniform_guess",
    "calibrate_variation",
    "composed_bound",
    "composed_tradeoff",
    "composed_variation",
    "curve_conjecture",
    "divergence_variation",
    "estimate_sgd_success",
    "exact_guess_bound",
    "gaussian_bound",
    "pair_knapsack",
    "pairwise_variation_bound",
    "prior_free_bound",
    "program_bound",
    "projected_variation_bound",
    "region_capacity",
    "sgd_bound",
    "sgd_mu",
    "sgd_success_bound",
    "subsampled_distribution",
    "subsampled_tradeoff",
    "success_advantage_bound",
    "success_bound",
    "superseded_bound",
    "symmetrised_channel",
    "tradeoff_bound",
    "tradeoff_from_callable",
    "tradeoff_from_channel",
    "tradeoff_from_curve",
    "tradeoff_from_pld",
    "tradeoff_from_rdp",
    "uniform_gaussian_bound",
    "uniform_guess_bound",
    "uniform_guess_epsilon_bound",
    "uniform_interval",
    "uniform_interval_bound",
    "uniform_prior_bound",
    "uniform_tradeoff_bound",
    "variation_bound",
    "variation_epsilon_bound",
    "variation_matrix",
    "variation_product",
    "zero_out_bound",
]
