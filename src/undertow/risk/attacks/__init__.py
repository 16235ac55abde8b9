"""Attacks as people mount them, and their exact figures where there are some."""

from undertow.risk.attacks.attribute import (
    Classifier,
    ImputationGuess,
    ModelGuess,
    ReleasedModel,
    choose_confident,
    choose_consistent,
    choose_weighted,
    expand_classes,
)
from undertow.risk.attacks.crowd import (
    CrowdSampler,
    EstimationGuess,
    exact_estimation_figures,
)
from undertow.risk.attacks.guess import (
    OptimalGuess,
    PosteriorGuess,
    PriorGuess,
    ReportGuess,
    SupportGuess,
    attack_figures,
)
from undertow.risk.attacks.movement import (
    CorrelationGuess,
    GraphSampler,
    StepSampler,
    exact_correlation_figures,
    exact_report_figures,
    fit_transitions,
    graph_stream,
    graph_success,
    transition_threat,
)

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
