r"""The exact risk of a known mechanism: the best advantage and the best success.

.. math:: \mathrm{RAD}^* = \sum_\theta \sum_z \max_{g} \sum_{x :\, a(x) = z,\,
   \ell(g, x) \le \eta} \pi_x \, (p(\theta \mid x) - p(\theta))

One pass over the columns: O(m) per output for exact or attribute success, for full
knowledge and on a line; otherwise one addition per hit of a guess on a truth. Numbers
with Laplace or Gaussian noise are handed to :mod:`undertow.risk.scalar`.
"""

from __future__ import annotations

from typing import Any

from undertow.mechanisms.local.base import LocalProtocol
from undertow.risk._finite import Risk, finite_advantage, finite_success_rate
from undertow.risk.threat import Threat

__all__ = ["advantage", "success_rate"]


def advantage(source: Any, threat: Threat) -> Risk:
    r"""Compute the reconstruction advantage of the best attack on a known mechanism.

    .. math:: \mathrm{RAD}^* = \sum_\theta \sum_z \max_{g} \sum_{x :\, a(x) = z,\,
       \ell(g, x) \le \eta} \pi_x \, (p(\theta \mid x) - p(\theta))

    Parameters
    ----------
    source : Channel, ChannelStream, ScalarChannel or mechanism
        The law of everything that is released, for each record. A mechanism has
        finitely many outputs, is Laplace or Gaussian noise on records that are
        numbers, or is a local protocol whose categories are the records.
    threat : Threat
        Prior, success rule and knowledge.

    Returns
    -------
    Risk
        The exact value, raised by a bound on its rounding: about m units of
        :math:`2^{-50}`. For Gaussian noise it may be 1e-9 above the exact value; see
        :func:`~undertow.risk.scalar.scalar_advantage`.

    Raises
    ------
    NotApplicable
        If more than `WORK_LIMIT` additions are needed, or `source` has infinitely many
        outputs of another kind.

    Notes
    -----
    Theorem 5.3 of [1]_, attained by Algorithm 1 (Corollary 5.9), so the value is a
    guarantee and an attack at once. Membership, attribute and reconstruction attacks
    are the same formula. Departures from the source: Equation 5.12 sums over the truths
    hit by a guess, Equation 5.10 needs a guess that misses the target, and Equation
    5.13 holds for exact success only; the general formula is used throughout. Checked:
    probability laws, matching records. Not checkable: independent records, a public
    prior, and that the channel is what runs. Sums over all possible truths vanish
    identically and are taken as zero.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.prior import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> prior = Prior(3, [0.5, 0.3, 0.2])
    >>> round(advantage(P, Threat.reconstruction(prior)).value, 9)
    0.242
    >>> round(advantage(P, Threat.membership(prior)).value, 9)
    0.248
    """
    from undertow.risk.scalar import as_scalar, scalar_advantage

    if isinstance(source, LocalProtocol):
        from undertow.risk.families.protocol import protocol_risk

        return protocol_risk(source, threat)
    number = as_scalar(source, threat.support)
    if number is not None:
        return scalar_advantage(number, threat)
    return finite_advantage(source, threat)


def success_rate(source: Any, threat: Threat) -> Risk:
    r"""Compute the success probability of the best guess: Bayes vulnerability.

    .. math:: \sum_\theta \sum_z \max_{g} \sum_{x :\, a(x) = z,\, \ell(g, x) \le \eta}
       \pi_x \, p(\theta \mid x)

    Parameters
    ----------
    source : Channel, ChannelStream, ScalarChannel or mechanism
        The law of everything that is released, for each record. A mechanism has
        finitely many outputs, is Laplace or Gaussian noise on records that are
        numbers, or is a local protocol with few reports.
    threat : Threat
        Prior, success rule and knowledge.

    Returns
    -------
    Risk
        The exact probability, raised by a bound on its rounding; its `baseline` is the
        best success without the output.

    Notes
    -----
    A success probability is not a risk: the attack that always names a known record
    succeeds with probability 1 and learns nothing. Definition 2.18 of [1]_ has no
    knowledge; see :func:`~undertow.risk.rero.reconstruction_robustness` for that. The
    attack that attains this value maximises the posterior, not its gain over the prior,
    and its advantage may be zero.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.prior import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> round(success_rate(P, Threat(Prior(3, [0.5, 0.3, 0.2]))).value, 9)
    0.59
    """
    from undertow.risk.scalar import as_scalar, scalar_success_rate

    number = as_scalar(source, threat.support)
    if number is not None:
        return scalar_success_rate(number, threat)
    return finite_success_rate(source, threat)
