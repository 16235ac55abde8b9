r"""The four currencies a privacy loss is stated in.

=========== ============================ ================================
class       parameter                    over several releases
=========== ============================ ================================
`Pure`      :math:`\varepsilon`          adds
`Approx`    :math:`(\varepsilon,\delta)` adds in both coordinates
`ZCDP`      :math:`\rho`                 adds
`GDP`       :math:`\mu`                  adds in squares
=========== ============================ ================================

A loss keeps its parameter exactly; the float it shows is rounded up. One that is about
continuous noise says so (:attr:`Loss.continuous`): no computer draws such noise, and
what is drawn in its place may lose more, so no budget takes it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Self

from undertow.errors import NotionMismatchError
from undertow.numeric.exact import (
    Exact,
    Number,
    exact,
    ext_sum,
    format_up,
    round_up,
    sqrt_up,
)

_SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu": "μ"}


class Loss(ABC):
    """A privacy loss in one currency; immutable, hashable, exact.

    Losses of one notion compare with :meth:`within`; ``a + b`` is their sequential
    composition. Different notions never mix: convert first. A sum is about continuous
    noise if a term of it is; losses are compared by their parameters alone.
    """

    __slots__ = ("_continuous",)
    notion: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    _continuous: bool

    @classmethod
    @abstractmethod
    def zero(cls) -> Self:
        """Return the loss of a constant output."""

    @abstractmethod
    def exact_parameters(self) -> tuple[Exact, ...]:
        """Return the parameters that add up over releases, exactly."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the notion and its parameters, by `names`, as floats rounded up.

        With ``continuous`` where the loss is about continuous noise.
        """

    @abstractmethod
    def _from_parameters(self, parameters: tuple[Exact, ...]) -> Self: ...

    @property
    def continuous(self) -> bool:
        """Whether it is about continuous noise, which no computer draws."""
        return self._continuous

    def of_continuous_noise(self, continuous: bool = True) -> Self:
        """Return the same loss as one about continuous noise, if `continuous`.

        Nothing takes the mark away again: a loss that has it keeps it.

        Examples
        --------
        >>> GDP(1).of_continuous_noise() + GDP(1)
        GDP(mu=1.41421356238, continuous=True)
        """
        if self._continuous or not continuous:
            return self
        marked = self._from_parameters(self.exact_parameters())
        object.__setattr__(marked, "_continuous", True)
        return marked

    @property
    def is_infinite(self) -> bool:
        """Whether nothing is promised."""
        return any(value == math.inf for value in self.exact_parameters())

    def within(self, budget: Loss) -> bool:
        """Return whether this loss is no larger than `budget`, exactly."""
        self._same_notion(budget)
        pairs = zip(self.exact_parameters(), budget.exact_parameters(), strict=True)
        return all(mine <= theirs for mine, theirs in pairs)

    def _same_notion(self, other: Loss) -> None:
        if type(self) is not type(other):
            raise NotionMismatchError(
                f"losses must be of one notion, got {self.notion} and {other.notion}; "
                "convert one of them first (undertow.privacy.convert)."
            )

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Loss):
            return NotImplemented
        self._same_notion(other)
        pairs = zip(self.exact_parameters(), other.exact_parameters(), strict=True)
        whole = self._from_parameters(tuple(ext_sum(pair) for pair in pairs))
        return whole.of_continuous_noise(self._continuous or other._continuous)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Loss)
        return self.exact_parameters() == other.exact_parameters()

    def __hash__(self) -> int:
        return hash((self.notion, self.exact_parameters()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.exact_parameters(), self._continuous)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable.")

    def _record(self, **parameters: float) -> dict[str, Any]:
        mark = {"continuous": True} if self._continuous else {}
        return {"notion": self.notion, **parameters, **mark}

    def _shown(self, parameters: str) -> str:
        mark = ", continuous=True" if self._continuous else ""
        return f"{type(self).__name__}({parameters}{mark})"

    def __str__(self) -> str:
        return repr(self)


class Pure(Loss):
    r""":math:`\varepsilon`-DP.

    Parameters
    ----------
    epsilon : int, float, str, Decimal or Fraction
        In :math:`[0, \infty]`.
    continuous : bool
        Whether it is about continuous noise.

    Examples
    --------
    >>> Pure("0.1") + Pure("0.1") + Pure("0.1")
    Pure(epsilon=0.3)
    """

    __slots__ = ("_epsilon",)
    notion = "pure"
    names = ("epsilon",)
    _epsilon: Exact

    def __init__(self, epsilon: Number, *, continuous: bool = False) -> None:
        object.__setattr__(self, "_continuous", bool(continuous))
        object.__setattr__(self, "_epsilon", exact(epsilon, "epsilon"))

    @classmethod
    def zero(cls) -> Self:
        """Return the loss of a constant output."""
        return cls(0)

    @property
    def epsilon(self) -> float:
        """The parameter as a float, rounded up."""
        return round_up(self._epsilon)

    def exact_parameters(self) -> tuple[Exact, ...]:
        """Return ``(epsilon,)``."""
        return (self._epsilon,)

    def _from_parameters(self, parameters: tuple[Exact, ...]) -> Self:
        return type(self)(parameters[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the notion and its parameters as floats rounded up."""
        return self._record(epsilon=self.epsilon)

    def __repr__(self) -> str:
        return self._shown(f"epsilon={format_up(self._epsilon)}")


class Approx(Loss):
    r""":math:`(\varepsilon, \delta)`-DP.

    Parameters
    ----------
    epsilon : int, float, str, Decimal or Fraction
        In :math:`[0, \infty]`.
    delta : int, float, str, Decimal or Fraction
        In :math:`[0, 1]`; 1 promises nothing.
    continuous : bool
        Whether it is about continuous noise.

    Examples
    --------
    >>> Approx(1, "1e-5") + Approx("0.5", 0)
    Approx(epsilon=1.5, delta=0.00001)
    """

    __slots__ = ("_delta", "_epsilon")
    notion = "approx"
    names = ("epsilon", "delta")
    _epsilon: Exact
    _delta: Exact

    def __init__(
        self, epsilon: Number, delta: Number, *, continuous: bool = False
    ) -> None:
        object.__setattr__(self, "_continuous", bool(continuous))
        object.__setattr__(self, "_epsilon", exact(epsilon, "epsilon"))
        object.__setattr__(self, "_delta", exact(delta, "delta", at_most=1))

    @classmethod
    def zero(cls) -> Self:
        """Return the loss of a constant output."""
        return cls(0, 0)

    @classmethod
    def capped(cls, epsilon: Number, delta: Exact) -> Self:
        """Build a computed loss; a delta of 1 or more is kept as 1."""
        return cls(epsilon, 1 if delta >= 1 else delta)

    @property
    def epsilon(self) -> float:
        """The first parameter as a float, rounded up."""
        return round_up(self._epsilon)

    @property
    def delta(self) -> float:
        """The second parameter as a float, rounded up."""
        return round_up(self._delta)

    @property
    def no_guarantee(self) -> bool:
        """Whether delta has reached 1."""
        return self._delta >= 1

    @property
    def is_infinite(self) -> bool:
        """Whether nothing is promised: epsilon infinite or delta at 1."""
        return self._epsilon == math.inf or self.no_guarantee

    def exact_parameters(self) -> tuple[Exact, ...]:
        """Return ``(epsilon, delta)``."""
        return (self._epsilon, self._delta)

    def _from_parameters(self, parameters: tuple[Exact, ...]) -> Self:
        return self.capped(*parameters)

    def to_dict(self) -> dict[str, Any]:
        """Return the notion and its parameters as floats rounded up."""
        return self._record(epsilon=self.epsilon, delta=self.delta)

    def __repr__(self) -> str:
        epsilon, delta = format_up(self._epsilon), format_up(self._delta)
        return self._shown(f"epsilon={epsilon}, delta={delta}")


class ZCDP(Loss):
    r""":math:`\rho`-zero-concentrated DP.

    Parameters
    ----------
    rho : int, float, str, Decimal or Fraction
        In :math:`[0, \infty]`; the square of the root metric.
    continuous : bool
        Whether it is about continuous noise.
    """

    __slots__ = ("_rho",)
    notion = "zcdp"
    names = ("rho",)
    _rho: Exact

    def __init__(self, rho: Number, *, continuous: bool = False) -> None:
        object.__setattr__(self, "_continuous", bool(continuous))
        object.__setattr__(self, "_rho", exact(rho, "rho"))

    @classmethod
    def zero(cls) -> Self:
        """Return the loss of a constant output."""
        return cls(0)

    @property
    def rho(self) -> float:
        """The parameter as a float, rounded up."""
        return round_up(self._rho)

    def exact_parameters(self) -> tuple[Exact, ...]:
        """Return ``(rho,)``."""
        return (self._rho,)

    def _from_parameters(self, parameters: tuple[Exact, ...]) -> Self:
        return type(self)(parameters[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the notion and its parameters as floats rounded up."""
        return self._record(rho=self.rho)

    def __repr__(self) -> str:
        return self._shown(f"rho={format_up(self._rho)}")


class GDP(Loss):
    r""":math:`\mu`-Gaussian DP.

    The square is what adds up over releases, so the square is what is kept exactly.

    Parameters
    ----------
    mu : int, float, str, Decimal or Fraction
        In :math:`[0, \infty]`.
    continuous : bool
        Whether it is about continuous noise.

    Examples
    --------
    >>> GDP(1) + GDP(1)
    GDP(mu=1.41421356238)
    """

    __slots__ = ("_square",)
    notion = "gdp"
    names = ("mu",)
    _square: Exact

    def __init__(self, mu: Number, *, continuous: bool = False) -> None:
        object.__setattr__(self, "_continuous", bool(continuous))
        root = exact(mu, "mu")
        object.__setattr__(self, "_square", root if root == math.inf else root**2)

    @classmethod
    def zero(cls) -> Self:
        """Return the loss of a constant output."""
        return cls(0)

    @classmethod
    def from_square(cls, square: Number) -> Self:
        """Build the loss whose squared parameter is `square`, exactly."""
        loss = cls(0)
        object.__setattr__(loss, "_square", exact(square, "mu squared"))
        return loss

    @property
    def mu(self) -> float:
        """The parameter as a float, rounded up."""
        return sqrt_up(self._square)

    def exact_parameters(self) -> tuple[Exact, ...]:
        """Return the square of mu."""
        return (self._square,)

    def _from_parameters(self, parameters: tuple[Exact, ...]) -> Self:
        return self.from_square(parameters[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the notion and its parameters as floats rounded up."""
        return self._record(mu=self.mu)

    def exact_root(self) -> Fraction | None:
        """Return mu itself where it is a fraction, else None."""
        if self._square == math.inf:
            return None
        square = Fraction(self._square)
        root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
        return root if root**2 == square else None

    def __repr__(self) -> str:
        root = self.exact_root()
        return self._shown(f"mu={format_up(self.mu if root is None else root)}")


def shown_loss(loss: Loss) -> str:
    """Write a loss the way people do, rounded up.

    Examples
    --------
    >>> shown_loss(Approx("1/3", "1e-6"))
    'ε = 0.333334, δ = 0.000001'
    """
    # The exact parameter of GDP is the square of mu; its float is already rounded up.
    values = (loss.mu,) if isinstance(loss, GDP) else loss.exact_parameters()
    return ", ".join(
        f"{_SYMBOLS[name]} = {'∞' if value == math.inf else format_up(value, 6)}"
        for name, value in zip(loss.names, values, strict=True)
    )


def _restored(
    kind: type[Loss], parameters: tuple[Exact, ...], continuous: bool
) -> Loss:
    """Return a copied or stored loss; what is exact is kept so."""
    return kind.zero()._from_parameters(parameters).of_continuous_noise(continuous)
