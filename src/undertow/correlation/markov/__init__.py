"""Markov chains and trees: what a release leaks about records that follow one."""

from undertow.correlation.group import GeneralMethod
from undertow.correlation.markov.chain import MarkovChain, MarkovFamily
from undertow.correlation.markov.count import CountMethod
from undertow.correlation.markov.pairwise import BoxMethod, PairwiseMethod
from undertow.correlation.markov.projective import (
    OmegaMethod,
    ProjectiveMethod,
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
    GammaMethod,
    RatioMethod,
    ZhaoMethod,
    accuracy_factor,
    gamma_budget,
    gamma_leakage,
    largest_gamma,
    largest_log_ratio,
    ratio_threshold,
)
from undertow.correlation.markov.steps import (
    BlockMethod,
    HigherOrderChain,
    StepMethod,
    WindowMethod,
    step_diameters,
    step_leakage,
    window_bound,
)
from undertow.correlation.markov.tree import TreeMethod, TreeModel, tree_leakages
from undertow.correlation.markov.two_state import TwoStateMethod
from undertow.correlation.model import state_methods

state_methods(
    MarkovChain,
    TwoStateMethod(),
    CountMethod(),
    PairwiseMethod(),
    BoxMethod(),
    ProjectiveMethod(),
    StepMethod(),
    WindowMethod(),
    RatioMethod(),
    OmegaMethod(),
    GammaMethod(),
    ZhaoMethod(),
    GeneralMethod(),
)

__all__ = [
    "BlockMethod",
    "GammaMethod",
    "HigherOrderChain",
    "MarkovChain",
    "MarkovFamily",
    "OmegaMethod",
    "ProjectiveMethod",
    "RatioMethod",
    "StepMethod",
    "TreeMethod",
    "TreeModel",
    "WindowMethod",
    "ZhaoMethod",
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
