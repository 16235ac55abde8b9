"""What is really at risk: priors, threats, the exact advantage and its best attack.

Calibration in units of risk, measured attacks, and cards a person can read.
"""

from undertow.risk._finite import WORK_LIMIT, Risk
from undertow.risk.calibrate import CalibrationTable, RiskCalibration, calibrate
from undertow.risk.card import OtherThreat, RiskCard, risk_card
from undertow.risk.channel import Channel, ChannelSource, ChannelStream, as_channel
from undertow.risk.comparison import Comparison, compare
from undertow.risk.decision import ABSTAIN, AttackRisk, Decision, attack_risk
from undertow.risk.estimate import (
    Attack,
    AttackEstimate,
    ChannelSampler,
    Design,
    LawAttack,
    MechanismSampler,
    Progress,
    ProtocolSampler,
    Sampler,
    estimate_attack,
)
from undertow.risk.exact import advantage, success_rate
from undertow.risk.families import FAMILIES, Curve, Family, family
from undertow.risk.intervals import (
    Side,
    clopper_pearson,
    empirical_bernstein,
    hoeffding_halfwidth,
    hoeffding_trials,
    weighted_hoeffding_halfwidth,
)
from undertow.risk.knowledge import Knowledge
from undertow.risk.likelihood import (
    GaussianTranscript,
    LikelihoodSource,
    LinearRule,
    PosteriorGain,
    estimate_advantage,
)
from undertow.risk.optimal import OptimalAttack
from undertow.risk.prior import Prior, estimate_collision
from undertow.risk.rero import (
    advantage_range,
    is_reconstruction_robust,
    reconstruction_robustness,
    require_no_knowledge,
)
from undertow.risk.scalar import (
    ContinuousPrior,
    ScalarChannel,
    advantage_curve,
    continuous_advantage,
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
from undertow.risk.transcript import (
    TRANSCRIPT_LIMIT,
    JointSampler,
    chain_channel,
    joint_channel,
    repeat_channel,
)
from undertow.risk.utility import EqualRisk, Utility, utility_at, utility_at_equal_risk
from undertow.risk.worst_prior import WorstPrior, worst_prior

__all__ = [
    "ABSTAIN",
    "FAMILIES",
    "TRANSCRIPT_LIMIT",
    "WORK_LIMIT",
    "Attack",
    "AttackEstimate",
    "AttackRisk",
    "BoundReport",
    "BoundRow",
    "CalibrationTable",
    "Channel",
    "ChannelSampler",
    "ChannelSource",
    "ChannelStream",
    "Comparison",
    "ContinuousPrior",
    "Curve",
    "Decision",
    "Design",
    "EqualRisk",
    "Family",
    "GaussianTranscript",
    "JointSampler",
    "Knowledge",
    "LawAttack",
    "LikelihoodSource",
    "LinearRule",
    "MechanismSampler",
    "OptimalAttack",
    "OtherThreat",
    "PosteriorGain",
    "Prior",
    "Progress",
    "ProtocolSampler",
    "Risk",
    "RiskCalibration",
    "RiskCard",
    "Sampler",
    "ScalarChannel",
    "Side",
    "Success",
    "Threat",
    "Utility",
    "WorstPrior",
    "advantage",
    "advantage_curve",
    "advantage_range",
    "as_channel",
    "attack_risk",
    "best_bound",
    "best_success_bound",
    "calibrate",
    "calibrate_black_box",
    "chain_channel",
    "clopper_pearson",
    "compare",
    "continuous_advantage",
    "empirical_bernstein",
    "estimate_advantage",
    "estimate_attack",
    "estimate_collision",
    "family",
    "hoeffding_halfwidth",
    "hoeffding_trials",
    "is_reconstruction_robust",
    "joint_channel",
    "named_bound",
    "reconstruction_robustness",
    "repeat_channel",
    "require_no_knowledge",
    "risk_card",
    "success_rate",
    "utility_at",
    "utility_at_equal_risk",
    "weighted_hoeffding_halfwidth",
    "worst_prior",
]
