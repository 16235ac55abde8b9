"""From observed data to a model, with its uncertainty: regions, not points."""

from undertow.correlation.fitting.gaussian import (
    GaussianFit,
    correlation_upper_limit,
    fit_gaussian,
)
from undertow.correlation.fitting.goodness import GoodnessOfFit
from undertow.correlation.fitting.interval import anytime_interval
from undertow.correlation.fitting.markov import MarkovFit, fit_markov
from undertow.correlation.fitting.private import fit_markov_private

__all__ = [
    "GaussianFit",
    "GoodnessOfFit",
    "MarkovFit",
    "anytime_interval",
    "correlation_upper_limit",
    "fit_gaussian",
    "fit_markov",
    "fit_markov_private",
]
