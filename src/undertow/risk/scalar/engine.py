r"""The exact risk of a noisy number: the integral of the best guess.

.. math:: \mathrm{RAD}^* = \int \sum_z \max_g \sum_{x :\, a(x) = z,\, \ell(g,x)\le\eta}
   \pi_x\,(p(\theta\mid x) - p(\theta))\, d\theta

Laplace noise: exact, by the envelope of lines between neighbouring answers. Gaussian
noise: enclosed from both sides until the two differ by at most a tolerance; the upper
value is returned.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from undertow._numeric import inflate
from undertow._validate import check_positive
from undertow.privacy.result import Witness
from undertow.risk._finite import Risk
from undertow.risk.scalar.enclosure import Enclosure
from undertow.risk.scalar.laws import ScalarLaw
from undertow.risk.scalar.problem import Problem, Setting
from undertow.risk.scalar.source import ScalarChannel, as_scalar
from undertow.risk.threat import Threat

__all__ = [
    "TOLERANCE",
    "advantage_curve",
    "scalar_advantage",
    "scalar_success_rate",
]

TOLERANCE = 1e-9
"""Largest gap between the two sides for Gaussian noise, by default."""

# Of the gap, per record; see the page on scalar risk.
_ROUNDING = 2.0**-43
_LEAST = 1e-300

_GAIN = "the guess of largest gain, posterior minus prior"
_UNCHECKED = ("the target is independent of the other records", "the prior is public")


def scalar_advantage(
    channel: ScalarChannel, threat: Threat, *, tolerance: float = TOLERANCE
) -> Risk:
    r"""Compute the advantage of the best attack on a number with noise.

    Parameters
    ----------
    channel : ScalarChannel
        Mechanism and answers.
    threat : Threat
        Prior, success rule and knowledge, of any kind.
    tolerance : float, optional
        For Gaussian noise, the gap between the two sides that is aimed at; the gap
        reached is in ``witness.details["gap"]``.

    Returns
    -------
    Risk
        Never below the exact value. Above it by rounding only for Laplace noise, by at
        most the gap for Gaussian noise; not marked tight where the gap is more than
        twice the tolerance.

    Notes
    -----
    Theorem 5.3 of [1]_, the sum over outputs read as an integral; envelope and
    enclosure are proved on the page *Risk of a noisy number*. Clamping to an interval
    that holds all answers changes nothing for Laplace noise; a narrower one lowers the
    risk. Checked: finite answers, one for each record. Not checkable: independent
    records, a public prior.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.prior import Prior
    >>> hours = Prior.uniform(range(101))
    >>> channel = ScalarChannel(LaplaceMechanism(100), range(101))
    >>> threat = Threat.location(hours, eta=40, distance="absolute")
    >>> round(scalar_advantage(channel, threat).value, 5)
    0.11028
    """
    return advantage_curve([channel], threat, tolerance=tolerance)[0]


def advantage_curve(
    channels: Sequence[ScalarChannel], threat: Threat, *, tolerance: float = TOLERANCE
) -> tuple[Risk, ...]:
    """Compute the advantage for many channels under one threat.

    Parameters
    ----------
    channels : sequence of ScalarChannel
        Such as one mechanism at many scales.
    threat : Threat
        Prior, success rule and knowledge; read once.
    tolerance : float, optional
        As in :func:`scalar_advantage`.

    Returns
    -------
    tuple of Risk
        What :func:`scalar_advantage` gives for each channel.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.prior import Prior
    >>> tenths = [k / 10 for k in range(11)]
    >>> threat = Threat(Prior.uniform(11))
    >>> noise = [LaplaceMechanism(1), LaplaceMechanism("0.2")]
    >>> channels = [ScalarChannel(n, tenths) for n in noise]
    >>> [round(risk.value, 6) for risk in advantage_curve(channels, threat)]
    [0.044337, 0.20109]
    """
    gap = check_positive(tolerance, "tolerance")
    for channel in channels:
        as_scalar(channel, threat.support)
    setting = Setting.of(threat, centred=True)
    ceiling, words = threat.ceiling, threat.summary
    risks = []
    for channel, found in zip(channels, _solve(channels, setting, gap), strict=True):
        most = min(ceiling, _widest(channel, setting) * ceiling)
        value = min(max(0.0, found.upper), most)
        above = max(0.0, value - max(0.0, found.lower))
        risks.append(
            Risk(
                value,
                "thesis, Theorem 5.3",
                _UNCHECKED,
                _checked(channel.law, above),
                witness=Witness("adversary", _GAIN, {"gap": above}),
                tight=above <= 2 * gap + _ROUNDING * len(setting.pmf),
                threat=words,
                ceiling=ceiling,
            )
        )
    return tuple(risks)


def scalar_success_rate(
    channel: ScalarChannel, threat: Threat, *, tolerance: float = TOLERANCE
) -> Risk:
    r"""Compute the success probability of the best guess on a number with noise.

    Parameters
    ----------
    channel : ScalarChannel
        Mechanism and answers.
    threat : Threat
        Prior, success rule and knowledge.
    tolerance : float, optional
        As in :func:`scalar_advantage`.

    Returns
    -------
    Risk
        Its `baseline` is the best success without the output.

    Notes
    -----
    A success probability is not a risk: with a wide threshold it is 1 whatever the
    mechanism does.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.prior import Prior
    >>> channel = ScalarChannel(LaplaceMechanism(1), [0, 2])
    >>> round(scalar_success_rate(channel, Threat(Prior.uniform(2))).value, 6)
    0.81606
    """
    gap = check_positive(tolerance, "tolerance")
    as_scalar(channel, threat.support)
    (found,) = Problem([channel], Setting.of(threat, centred=False)).solve(gap)
    value = min(1.0, found.upper)
    above = max(0.0, value - found.lower)
    summary = "the guess of largest posterior"
    return Risk(
        value,
        "Bayes vulnerability",
        _UNCHECKED,
        _checked(channel.law, above),
        "success",
        Witness("adversary", summary, {"gap": above}),
        above <= 2 * gap + _ROUNDING * threat.prior.pmf.size,
        threat=threat.summary,
        baseline=threat.informed_guess,
    )


def _solve(
    channels: Sequence[ScalarChannel], setting: Setting, tolerance: float
) -> list[Enclosure]:
    """Solve runs of Laplace channels on the same answers together."""

    def kind(channel: ScalarChannel) -> tuple[str, bytes]:
        return channel.law.family, channel.answers.tobytes()

    runs = itertools.groupby(channels, key=kind)
    return [e for _, run in runs for e in Problem(list(run), setting).solve(tolerance)]


def _checked(law: ScalarLaw, gap: float) -> tuple[str, ...]:
    way = "closed-form breakpoints" if law.family == "laplace" else "two-sided sums"
    return (
        "answers are finite, one for each record",
        f"{way}: an attack attains this value less {gap:.1e}",
    )


def _widest(channel: ScalarChannel, setting: Setting) -> float:
    """Return the total variation of the widest pair: Theorem 5.2.

    Clamping only post-processes; truncated noise has another one, which is not used.
    """
    if channel.law.kind == "truncated":
        return 1.0
    answers = channel.answers[setting.possible]
    apart = float(answers.max() - answers.min())
    if apart == 0:
        return 0.0
    # Below the least of the floats the ratio loses its digits.
    return min(1.0, inflate(channel.law.variation(apart), 1e-12) + _LEAST)
