"""Local protocols by name: what risks, audits and the command line look up.

A new protocol is a class in a file of its own and an entry of `PROTOCOLS`. The risk of
its reports, its calibration, audits and the command line then know it by its name; a
family with closed forms for many levels may be added in :mod:`undertow.risk.families`.
"""

from __future__ import annotations

from dataclasses import dataclass

from undertow.mechanisms.local.base import LocalProtocol
from undertow.mechanisms.local.grr import GeneralizedResponse
from undertow.mechanisms.local.hashing import BinaryHashing, OptimizedHashing
from undertow.mechanisms.local.histogram import SummationHistogram, ThresholdHistogram
from undertow.mechanisms.local.subset import SubsetSelection
from undertow.mechanisms.local.unary import OptimizedUnary, SymmetricUnary
from undertow.numeric.exact import Number


@dataclass(frozen=True, slots=True)
class NamedProtocol:
    """A local protocol that follows from its categories and its level.

    Parameters
    ----------
    protocol : type of LocalProtocol
        Called with the categories and epsilon.
    title : str
        What it is called in a sentence.
    """

    protocol: type[LocalProtocol]
    title: str

    def at(self, categories: int, epsilon: Number) -> LocalProtocol:
        """Return the protocol on so many categories at a level."""
        return self.protocol(categories, epsilon)  # type: ignore[call-arg]


PROTOCOLS: dict[str, NamedProtocol] = {
    "grr": NamedProtocol(GeneralizedResponse, "generalized randomized response"),
    "sue": NamedProtocol(SymmetricUnary, "symmetric unary encoding"),
    "oue": NamedProtocol(OptimizedUnary, "optimized unary encoding"),
    "ss": NamedProtocol(SubsetSelection, "subset selection"),
    "blh": NamedProtocol(BinaryHashing, "binary local hashing"),
    "olh": NamedProtocol(OptimizedHashing, "optimized local hashing"),
    "she": NamedProtocol(SummationHistogram, "summation with histogram encoding"),
    "the": NamedProtocol(ThresholdHistogram, "thresholding with histogram encoding"),
}
"""The local protocols by name, as typed on the command line."""


def protocol_name(protocol: LocalProtocol) -> str | None:
    """Return the name of the class of a protocol; None if it has none.

    A subclass may have another law, so it does not take the name of its parent.

    Examples
    --------
    >>> protocol_name(GeneralizedResponse(3, 1))
    'grr'
    """
    kinds = {entry.protocol: name for name, entry in PROTOCOLS.items()}
    return kinds.get(type(protocol))
