"""Markov chains and trees: what a release leaks about records that follow one."""

from undertow.correlation.general import GeneralMethod
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.closed import (
    OmegaMethod,
    ProjectiveMethod,
    finite_leakage,
    projective_budget,
    projective_leakage,
    ratio_diameter,
)
from undertow.correlation.markov.count import CountMethod
from undertow.correlation.markov.family import MarkovFamily
from undertow.correlation.markov.higher_order import BlockMethod, HigherOrderChain
from undertow.correlation.markov.mixing import (
    mixing_time,
    stationary_law,
    window_leakage,
)
from undertow.correlation.markov.pairwise import BoxMethod, PairwiseMethod
from undertow.correlation.markov.published import (
    GammaMethod,
    ZhaoMethod,
    accuracy_factor,
    gamma_budget,
    gamma_leakage,
    largest_gamma,
    ratio_threshold,
)
from undertow.correlation.markov.ratio import (
    column_ratio,
    projective_diameter,
    transition_ratio,
)
from undertow.correlation.markov.ratio_exact import RatioMethod, largest_log_ratio
from undertow.correlation.markov.steps import (
    StepMethod,
    WindowMethod,
    step_diameters,
    step_leakage,
    window_bound,
)
from undertow.correlation.markov.tree import TreeModel
from undertow.correlation.markov.tree_leakage import TreeMethod, tree_leakages
from undertow.correlation.markov.two_state import TwoStateMethod
from undertow.correlation.method import state_methods

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
