"""Markov chains and trees: what a release leaks about records that follow one."""

from undertow.correlation.group import GeneralTheorem
from undertow.correlation.markov.chain import MarkovChain, MarkovFamily
from undertow.correlation.markov.count import CountTheorem
from undertow.correlation.markov.pairwise import BoxTheorem, PairwiseTheorem
from undertow.correlation.markov.projective import (
    OmegaTheorem,
    ProjectiveTheorem,
    column_ratio,
    finite_leakage,
    mixing_time,
    projective_budget,
    projective_diameter,
    projective_leakage,
    ratio_diameter,
    stationary_law,
    transition_ratio,
    window_leakage,
)
from undertow.correlation.markov.published import (
    GammaTheorem,
    RatioTheorem,
    ZhaoTheorem,
    accuracy_factor,
    gamma_budget,
    gamma_leakage,
    largest_gamma,
    largest_log_ratio,
    ratio_threshold,
)
from undertow.correlation.markov.steps import (
    BlockTheorem,
    HigherOrderChain,
    StepTheorem,
    WindowTheorem,
    step_diameters,
    step_leakage,
    window_bound,
)
from undertow.correlation.markov.tree import TreeModel, TreeTheorem, tree_leakages
from undertow.correlation.markov.two_state import TwoStateTheorem
from undertow.correlation.theorem import state_methods

state_methods(
    MarkovChain,
    TwoStateTheorem(),
    CountTheorem(),
    PairwiseTheorem(),
    BoxTheorem(),
    ProjectiveTheorem(),
    StepTheorem(),
    WindowTheorem(),
    RatioTheorem(),
    OmegaTheorem(),
    GammaTheorem(),
    ZhaoTheorem(),
    GeneralTheorem(),
)

__all__ = [
    "BlockTheorem",
    "GammaTheorem",
    "HigherOrderChain",
    "MarkovChain",
    "MarkovFamily",
    "OmegaTheorem",
    "ProjectiveTheorem",
    "RatioTheorem",
    "StepTheorem",
    "TreeModel",
    "TreeTheorem",
    "WindowTheorem",
    "ZhaoTheorem",
    "accuracy_factor",
    "column_ratio",
    "finite_leakage",
    "gamma_budget",
    "gamma_leakage",
    "largest_gamma",
    "largest_log_ratio",
    "mixing_time",
    "projective_budget",
    "projective_diameter",
    "projective_leakage",
    "ratio_diameter",
    "ratio_threshold",
    "stationary_law",
    "step_diameters",
    "step_leakage",
    "transition_ratio",
    "tree_leakages",
    "window_bound",
    "window_leakage",
]
