"""Attacks as people mount them, and their exact figures where there are some."""

from undertow.risk.attacks.attribute import (
    ModelGuess,
    ReleasedModel,
    choose_confident,
    choose_consistent,
    choose_weighted,
)
from undertow.risk.attacks.base import attack_figures
from undertow.risk.attacks.correlation import CorrelationGuess, StepSampler
from undertow.risk.attacks.correlation_risk import exact_correlation_figures
from undertow.risk.attacks.estimation import (
    CrowdSampler,
    EstimationGuess,
    exact_estimation_figures,
)
from undertow.risk.attacks.finite import (
    OptimalGuess,
    PosteriorGuess,
    PriorGuess,
    ReportGuess,
    SupportGuess,
)
from undertow.risk.attacks.graph import (
    GraphSampler,
    exact_report_figures,
    graph_stream,
    graph_success,
)
from undertow.risk.attacks.imputation import (
    Classifier,
    ImputationGuess,
    expand_classes,
)
from undertow.risk.attacks.transition import fit_transitions, transition_threat

__all__ = [
    "Classifier",
    "CorrelationGuess",
    "CrowdSampler",
    "EstimationGuess",
    "GraphSampler",
    "ImputationGuess",
    "ModelGuess",
    "OptimalGuess",
    "PosteriorGuess",
    "PriorGuess",
    "ReleasedModel",
    "ReportGuess",
    "StepSampler",
    "SupportGuess",
    "attack_figures",
    "choose_confident",
    "choose_consistent",
    "choose_weighted",
    "exact_correlation_figures",
    "exact_estimation_figures",
    "exact_report_figures",
    "expand_classes",
    "fit_transitions",
    "graph_stream",
    "graph_success",
    "transition_threat",
]
