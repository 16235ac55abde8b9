"""The risk of one local protocol, read as a member of its family.

A client's protocol has too many outputs for a table; its family knows the closed forms
and the engines that need none.
"""

from __future__ import annotations

from collections.abc import Callable

from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalProtocol,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    the_threshold,
)
from undertow.privacy.exact import round_up
from undertow.risk._finite import Risk
from undertow.risk.families.base import Family, closed_view, uniform_prior
from undertow.risk.families.local import grr, she
from undertow.risk.families.steps import ss
from undertow.risk.families.unary import oue, sue, the
from undertow.risk.threat import Threat

__all__ = ["protocol_risk"]

_FAMILIES: dict[type[LocalProtocol], Callable[[int], Family]] = {
    GeneralizedResponse: grr,
    SymmetricUnary: sue,
    OptimizedUnary: oue,
    SubsetSelection: ss,
    SummationHistogram: she,
    ThresholdHistogram: the,
}
_UNCHECKED = (
    "the target is independent of the other records",
    "the prior is public",
    "the client follows the protocol",
    "one report per client",
)


def protocol_risk(protocol: LocalProtocol, threat: Threat) -> Risk:
    r"""Return the advantage of the best attack on one report of a protocol.

    Parameters
    ----------
    protocol : LocalProtocol
        The categories are the records of the threat, in their order.
    threat : Threat
        Prior, success rule and knowledge.

    Returns
    -------
    Risk
        Exact (`tight`) where a closed form or an engine covers the threat; otherwise
        total variation times :math:`1 - \kappa_\pi`, and for hashing protocols always
        a bound that holds for every hash.

    Raises
    ------
    MismatchError
        If the threat has another number of records.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> threat = Threat(Prior.uniform(10))
    >>> round(protocol_risk(OptimizedUnary(10, 1), threat).value, 6)
    0.08079
    """
    family = _family(protocol)
    if family is not None:
        size = protocol.subset if isinstance(protocol, SubsetSelection) else None
        return family.risk(round_up(protocol.epsilon), threat, structure=size)
    grr(protocol.categories).require_match(threat)
    view = closed_view(threat)
    if view is None:
        value = min(1.0, protocol.total_variation() * threat.ceiling)
        theorem, tight = "thesis, Theorem 5.2", None
    else:
        # Equal to rounding, which the margin of the closed forms covers.
        prior = None if uniform_prior(threat) else threat.prior.pmf
        bound = protocol.advantage_bound(prior, knowledge=view)
        value, theorem, tight = bound.value, bound.theorem, bound.tight
    return Risk(
        min(value, threat.ceiling),
        theorem,
        _UNCHECKED,
        ("records of protocol and threat agree",),
        tight=tight,
        threat=threat.summary,
        ceiling=threat.ceiling,
    )


def _family(protocol: LocalProtocol) -> Family | None:
    """Return the family a protocol is a member of; None if its own choice is not.

    Hashing protocols have none: their families assume an ideal hash, which no client
    has, and a guarantee must hold for every one.
    """
    if isinstance(protocol, ThresholdHistogram) and protocol.threshold != the_threshold(
        float(protocol.epsilon)
    ):
        return None
    build = _FAMILIES.get(type(protocol))
    return None if build is None else build(protocol.categories)
