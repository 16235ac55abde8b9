"""What is really at risk: priors, threats, the exact advantage and its best attack.

Calibration in units of risk, measured attacks, and cards a person can read.
"""

from undertow.risk.assessment import RiskAssessment, assess_risk, channel_guarantee
from undertow.risk.calibration import (
    CalibrationTable,
    Comparison,
    RiskCalibration,
    calibrate,
    compare,
)
from undertow.risk.card import OtherThreat, RiskCard, risk_card
from undertow.risk.channel import (
    Channel,
    ChannelSampler,
    ChannelSource,
    ChannelStream,
    LikelihoodSource,
    MechanismSampler,
    ProtocolSampler,
    as_channel,
)
from undertow.risk.estimate import (
    Attack,
    AttackEstimate,
    Design,
    LawAttack,
    Progress,
    Sampler,
    estimate_attack,
)
from undertow.risk.exact import (
    WorstPrior,
    advantage,
    advantage_range,
    is_reconstruction_robust,
    reconstruction_robustness,
    require_no_knowledge,
    success_rate,
    worst_prior,
)
from undertow.risk.families import FAMILIES, Curve, Family, family
from undertow.risk.finite import (
    ABSTAIN,
    WORK_LIMIT,
    AttackRisk,
    Decision,
    OptimalAttack,
    Risk,
    attack_risk,
)
from undertow.risk.intervals import (
    Side,
    clopper_pearson,
    empirical_bernstein,
    hoeffding_halfwidth,
    hoeffding_trials,
    weighted_hoeffding_halfwidth,
)
from undertow.risk.likelihood import (
    GaussianTranscript,
    LinearRule,
    PosteriorGain,
    estimate_advantage,
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
from undertow.risk.threat import Knowledge, Prior, Threat, estimate_collision
from undertow.risk.transcript import (
    TRANSCRIPT_LIMIT,
    JointSampler,
    chain_channel,
    joint_channel,
    repeat_channel,
)
from undertow.risk.utility import EqualRisk, Utility, utility_at, utility_at_equal_risk

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
    "RiskAssessment",
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
    "assess_risk",
    "attack_risk",
    "best_bound",
    "best_success_bound",
    "calibrate",
    "calibrate_black_box",
    "chain_channel",
    "channel_guarantee",
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
