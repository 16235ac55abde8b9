"""What is really at risk: priors, threats, the exact advantage and its best attack."""

from undertow.risk.channel import Channel, ChannelSource, ChannelStream, as_channel
from undertow.risk.decision import ABSTAIN, AttackRisk, Decision, attack_risk
from undertow.risk.exact import WORK_LIMIT, Risk, advantage, success_rate
from undertow.risk.knowledge import Knowledge
from undertow.risk.optimal import OptimalAttack
from undertow.risk.prior import Prior, estimate_collision
from undertow.risk.rero import (
    advantage_range,
    is_reconstruction_robust,
    reconstruction_robustness,
    require_no_knowledge,
)
from undertow.risk.selector import (
    BoundReport,
    BoundRow,
    best_bound,
    best_success_bound,
    calibrate_black_box,
    named_bound,
)
from undertow.risk.success import Success
from undertow.risk.threat import Threat

__all__ = [
    "ABSTAIN",
    "WORK_LIMIT",
    "AttackRisk",
    "BoundReport",
    "BoundRow",
    "Channel",
    "ChannelSource",
    "ChannelStream",
    "Decision",
    "Knowledge",
    "OptimalAttack",
    "Prior",
    "Risk",
    "Success",
    "Threat",
    "advantage",
    "advantage_range",
    "as_channel",
    "attack_risk",
    "best_bound",
    "best_success_bound",
    "calibrate_black_box",
    "estimate_collision",
    "is_reconstruction_robust",
    "named_bound",
    "reconstruction_robustness",
    "require_no_knowledge",
    "success_rate",
]
