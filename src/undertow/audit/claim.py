"""What is promised: a loss, and for which change of the data it is promised."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, SupportsIndex

from scipy.special import ndtri

from undertow._validate import check_choice, check_count
from undertow.numeric.exact import Number
from undertow.numeric.rounding import exp_up, inflate, keep_exact
from undertow.privacy.loss import GDP, Approx, Pure
from undertow.privacy.tradeoff import ApproxTradeOff, GaussianTradeOff, refutes
from undertow.results import to_plain

Parameter = Literal["epsilon", "mu"]
"""What a claim bounds; its certificates and estimates are about the same."""

Adjacency = Literal["replace", "add-remove", "one-apart", "local"]
"""What may change: one record's value, its presence, or one client's category.

``"add-remove"`` is for inputs that differ in a record's value, ``"one-apart"`` for the
same promise on inputs of which one has a record more.
"""

_ADJACENCIES = ("replace", "add-remove", "one-apart", "local")
# Covers the rounding of the success a claim allows.
_MARGIN = 1e-12
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Claim:
    r"""A promise that an audit can refute.

    Parameters
    ----------
    loss : Pure, Approx or GDP
        What is promised; finite.
    adjacency : {"replace", "add-remove", "one-apart", "local"}
        For which change. A claim about adding or removing a record is ``"add-remove"``
        if the inputs that are compared differ in the value of a record, and
        ``"one-apart"`` if one of them has a record more than the other.

    Notes
    -----
    Every claim is tested as :meth:`for_replacement`, which changes nothing unless the
    adjacency is ``"add-remove"``. A claim that promises nothing
    (infinite, or delta of 1) is refused: no audit could refute it.

    Examples
    --------
    >>> Claim.pure(1, adjacency="add-remove").for_replacement()
    Claim(loss=Pure(epsilon=2), adjacency='replace')
    """

    loss: Pure | Approx | GDP
    adjacency: Adjacency = "replace"

    def __post_init__(self) -> None:
        check_choice(self.adjacency, "adjacency", choices=_ADJACENCIES)
        if not isinstance(self.loss, Pure | Approx | GDP):
            raise TypeError(
                "loss must be Pure, Approx or GDP, got "
                f"{type(self.loss).__name__}; convert it first."
            )
        if isinstance(self.loss, Approx) and self.loss.no_guarantee:
            raise ValueError(
                "delta must be below 1, got 1; no audit can refute such a claim."
            )
        if self.loss.is_infinite:
            raise ValueError(
                f"loss must promise something, got {self.loss}; no audit can refute it."
            )

    @classmethod
    def pure(cls, epsilon: Number, *, adjacency: Adjacency = "replace") -> Claim:
        """Claim pure DP."""
        return cls(Pure(epsilon), adjacency)

    @classmethod
    def approx(
        cls, epsilon: Number, delta: Number, *, adjacency: Adjacency = "replace"
    ) -> Claim:
        """Claim approximate DP; a delta of 0 is pure DP."""
        loss = Approx(epsilon, delta)
        return cls(loss if loss.delta else Pure(epsilon), adjacency)

    @classmethod
    def gaussian(cls, mu: Number, *, adjacency: Adjacency = "replace") -> Claim:
        """Claim Gaussian DP."""
        return cls(GDP(mu), adjacency)

    @property
    def parameter(self) -> Parameter:
        """Name of what a certificate is compared with: ``"epsilon"`` or ``"mu"``."""
        return "mu" if isinstance(self.loss, GDP) else "epsilon"

    @property
    def level(self) -> float:
        """The claimed epsilon or mu, rounded up."""
        return self.loss.mu if isinstance(self.loss, GDP) else self.loss.epsilon

    @property
    def delta(self) -> float:
        """The claimed delta, rounded up; 0 for pure and Gaussian claims."""
        return self.loss.delta if isinstance(self.loss, Approx) else 0.0

    def for_replacement(self) -> Claim:
        r"""Return the claim about replacing one record that follows from this one.

        Notes
        -----
        A replacement is a removal and an addition:
        :math:`(\varepsilon, \delta) \mapsto (2\varepsilon, (1+e^\varepsilon)\delta)`
        and :math:`\mu \mapsto 2\mu`; exact up to rounding the new delta up.
        """
        if self.adjacency != "add-remove":
            return self
        if isinstance(self.loss, GDP):
            (square,) = self.loss.exact_parameters()
            return Claim(GDP.from_square(4 * Fraction(square)))
        epsilon, *rest = (Fraction(value) for value in self.loss.exact_parameters())
        if not rest:
            return Claim(Pure(2 * epsilon))
        growth = keep_exact(exp_up(epsilon))
        doubled = Approx.capped(2 * epsilon, (1 + growth) * rest[0])
        if doubled.no_guarantee:
            raise ValueError(
                "delta must be below 1/(1 + e^epsilon) for adding or removing a "
                f"record, got {self}; it promises nothing for replacing one, and no "
                "audit can refute it."
            )
        return Claim(doubled)

    def allows(self, true_positive: float, false_positive: float) -> bool:
        """Return whether a test with these exact rates is possible under the claim.

        Both the event and its complement are held against the promise, in both orders
        of the inputs, as a replacement can be undone by another; an excess below
        1e-12 is not counted. Sampled rates must first be replaced by their limits.

        Examples
        --------
        >>> claim = Claim.pure(1)
        >>> claim.allows(0.5, 0.2), claim.allows(0.6, 0.2)
        (True, False)
        """
        loss = self.for_replacement().loss
        f = (
            GaussianTradeOff(loss.mu)
            if isinstance(loss, GDP)
            else ApproxTradeOff(loss.epsilon, self.for_replacement().delta)
        )
        rates = (true_positive, false_positive)
        other = (1.0 - rates[0], 1.0 - rates[1])
        return not any(refutes(f, tpr=p, fpr=q) for p, q in (rates, other))

    def success_limit(self, categories: SupportsIndex) -> float:
        r"""Return how often one of m equally likely values can be named, rounded up.

        .. math:: \frac{e^\varepsilon + \delta (m-1)}{e^\varepsilon + m - 1}

        and for Gaussian DP the s with
        :math:`\mu = \Phi^{-1}(s) - \Phi^{-1}((1-s)/(m-1))`.

        Notes
        -----
        Thesis, Corollary 5.16, plus 1/m; for Gaussian DP, proved on the page *Audit
        certificates*.

        Examples
        --------
        >>> round(Claim.pure(1).success_limit(10), 6)
        0.231969
        """
        m = check_count(categories, "categories", minimum=2)
        claim = self.for_replacement()
        if isinstance(claim.loss, GDP):
            value = 1.0 - _least_failure(claim.level, m)
        else:
            decay = math.exp(-claim.level) * (m - 1)
            value = (1.0 + claim.delta * decay) / (1.0 + decay)
        return min(1.0, inflate(value, _MARGIN))

    def to_dict(self) -> dict[str, Any]:
        """Return the loss and the adjacency as plain values.

        A claim is somebody's number, not a guarantee of ours: it is shown as it was
        stated, to the nearest float, where a guarantee would be rounded up.
        """
        stated = {
            name: _nearest(value) for name, value in _parameters(self.loss).items()
        }
        return {"notion": self.loss.notion, **stated, "adjacency": self.adjacency}

    def __str__(self) -> str:
        return f"{self.loss} ({self.adjacency})"


def _least_failure(mu: float, m: int) -> float:
    """Return how often a name is wrong at least, of m values under Gaussian DP."""
    low, high = 0.0, 1.0 - 1.0 / m
    for _ in range(_STEPS):
        mid = (low + high) / 2
        needed = -float(ndtri(mid)) - float(ndtri(mid / (m - 1)))
        low, high = (low, mid) if needed <= mu else (mid, high)
    return low


def _parameters(loss: Pure | Approx | GDP) -> dict[str, Any]:
    """Return the parameters as they were stated."""
    values = loss.exact_parameters()
    if isinstance(loss, GDP):  # its square is what is kept exactly
        return {"mu": math.sqrt(values[0])}
    return dict(zip(("epsilon", "delta"), values, strict=False))


def _nearest(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction | int) else to_plain(value)
