"""What the best attacker achieves: exact advantage, and noise calibrated to it."""

from undertow.correlation.attack.optimal import Attack, finite_attack, laplace_attack
from undertow.correlation.attack.promise import (
    leakage_advantage,
    leakage_for_advantage,
    leakage_tradeoff,
)
from undertow.correlation.attack.search import (
    AdvantageCalibration,
    calibrate_advantage,
    optimal_attack,
    strongest_attack,
)

__all__ = [
    "AdvantageCalibration",
    "Attack",
    "calibrate_advantage",
    "finite_attack",
    "laplace_attack",
    "leakage_advantage",
    "leakage_for_advantage",
    "leakage_tradeoff",
    "optimal_attack",
    "strongest_attack",
]
