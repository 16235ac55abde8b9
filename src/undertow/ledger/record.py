"""What a ledger writes: its terms, its entries and what they say of a charge.

The terms are agreed before the first charge: data set, domain, budgets and models.
Entries are canonical text with exact losses, each chained to the one before it by its
hash. A charge is one spend of a budget, and where it stands.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal, Self

from undertow.composition import domain_to_document
from undertow.composition.document import domain_from_document, granularity_to_document
from undertow.composition.ledger import exact_texts, require_budget
from undertow.errors import LedgerError
from undertow.numeric.exact import Number, exact
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.results import Calibration
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.domain import Stream
from undertow.spaces.unit import LTrajectory, WEvent, parse_granularity

Kind = Literal["charge", "output", "failure"]
"""What an entry says: budget was taken, its output is stored, it has none for good."""

# Python writes and reads numbers of up to 4300 digits.
_MOST_BITS = 13_000
_BUILD: dict[str, Callable[..., Loss]] = {
    "pure": Pure,
    "approx": Approx,
    "zcdp": ZCDP,
    "gdp": GDP.from_square,
}


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chain ends: how many entries there are, and the hash of the last.

    Parameters
    ----------
    count : int
        The number of entries.
    hash : str
        The hash of the last entry; that of the terms where there is none.
    """

    count: int
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the chain.

    Parameters
    ----------
    number : int
        Its place, from 1; never reused, whatever the clock says.
    kind : {"charge", "output", "failure"}
        What it says.
    key : str
        The name of the charge it is about.
    hash : str
        Over the whole body, which holds the hash of the entry before it.
    time : str
        When it was written, by the writer's clock.
    clock_back : bool
        Whether that clock was behind the entry before it.
    body : mapping
        Everything that was written.
    """

    number: int
    kind: Kind
    key: str
    hash: str
    time: str
    clock_back: bool
    body: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the body and its hash."""
        return {**self.body, "hash": self.hash}


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces.

    Examples
    --------
    >>> canonical({"b": [1, 2], "a": "x"})
    '{"a":"x","b":[1,2]}'
    """
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def digest(content: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes, in hexadecimal."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def plain_text(value: object, name: str) -> str:
    """Return a text that can be written as UTF-8."""
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} must be a text of whole characters, got half of one."
        ) from None
    return text


def instant(now: datetime) -> str:
    """Return a moment as text that sorts like the moments do."""
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def loss_to_document(loss: Loss) -> dict[str, Any]:
    """Return a loss as its notion and exact fractions.

    Examples
    --------
    >>> loss_to_document(Pure("0.1"))
    {'notion': 'pure', 'exact': ['1/10']}

    Raises
    ------
    LedgerError
        If a fraction is longer than can be read back.
    """
    if bits_of(loss) > _MOST_BITS:
        raise LedgerError(
            "losses must add up to fractions of at most 3900 digits, got a longer one; "
            "state losses of fewer digits, or with a common denominator."
        )
    return {"notion": loss.notion, "exact": exact_texts(loss)}


def bits_of(loss: Loss) -> int:
    """Return the length of the longest number in the exact fractions of a loss.

    Examples
    --------
    >>> bits_of(Pure("1/256"))
    9
    """
    finite = (Fraction(x) for x in loss.exact_parameters() if x != math.inf)
    ends = (end for x in finite for end in (x.numerator, x.denominator))
    return max((end.bit_length() for end in ends), default=0)


def loss_from_document(document: Mapping[str, Any]) -> Loss:
    """Read a loss back, exactly, however long its fractions have become."""
    exact = (x if x in ("inf", math.inf) else Fraction(x) for x in document["exact"])
    return _BUILD[document["notion"]](*exact)


def write_entry(
    kind: Kind,
    key: str,
    content: Mapping[str, Any],
    *,
    after: Head,
    time: str,
    last: str,
) -> tuple[str, Entry]:
    """Return the text of the next entry, and the entry.

    Parameters
    ----------
    kind, key : str
        What it says, and about which charge.
    content : mapping
        The rest of the body.
    after : Head
        Where the chain ends now.
    time, last : str
        The writer's clock, and the time of the entry before; empty for the first.
    """
    body = {
        **content,
        "number": after.count + 1,
        "kind": kind,
        "key": key,
        "time": time,
        "clock_back": time < last,
        "previous": after.hash,
    }
    text = canonical(body)
    return text, _entry(body, digest(text))


def read_entry(text: str) -> Entry:
    """Read an entry from its text; its hash is computed, not believed.

    Raises
    ------
    LedgerError
        If the text is no entry.
    """
    try:
        if not isinstance(text, str):
            raise TypeError("an entry is a text")
        return _entry(json.loads(text), digest(text))
    except (
        ArithmeticError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        raise LedgerError(
            "an entry must be as the ledger wrote it, got another text; run "
            "undertow ledger verify."
        ) from None


def _entry(body: Mapping[str, Any], computed: str) -> Entry:
    # Ledgers of schema 1 knew charges only and did not compare clocks.
    return Entry(
        number=int(body["number"]),
        kind=body.get("kind", "charge"),
        key=str(body["key"]),
        hash=computed,
        time=str(body["time"]),
        clock_back=bool(body.get("clock_back", False)),
        body=body,
    )


# One spend of a budget, and where it stands.

State = Literal["charged", "done", "spoiled"]
"""``charged``: paid, no output stored yet, so none was ever handed out; ``done``: the
output is stored and is the only one there will be; ``spoiled``: closed without one."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A committed spend.

    Parameters
    ----------
    number : int
        The entry that holds it.
    key : str
        The caller's name for it; one key is charged once.
    state : {"charged", "done", "spoiled"}
        Where it stands.
    label : str
        What a person called it.
    time : str
        When it was charged.
    losses : mapping of str to Loss
        The loss at every budget after it.
    hash : str
        Of its entry.
    repeated : bool
        Whether the key had been charged before, so that nothing was taken now.
    reason : str
        Why it was closed, if it was.
    """

    number: int
    key: str
    state: State
    label: str
    time: str
    losses: Mapping[str, Loss]
    hash: str
    repeated: bool = False
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the charge as a record, losses as floats rounded up."""
        return {
            "number": self.number,
            "key": self.key,
            "state": self.state,
            "label": self.label,
            "time": self.time,
            "losses": {name: loss.to_dict() for name, loss in self.losses.items()},
            "hash": self.hash,
            "repeated": self.repeated,
            "reason": self.reason,
        }


def charge_of(found: Mapping[str, Entry], *, repeated: bool) -> Charge:
    """Return the charge that entries of one key tell of.

    Raises
    ------
    LedgerError
        If they do not tell of one.
    """
    try:
        return _charge_of(found, repeated=repeated)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        raise LedgerError(
            "a charge must be as the ledger wrote it, got another entry; run undertow "
            "ledger verify."
        ) from None


def _charge_of(found: Mapping[str, Entry], *, repeated: bool) -> Charge:
    entry = found["charge"]
    state: State = "charged"
    if "output" in found:
        state = "done"
    elif "failure" in found:
        state = "spoiled"
    failure = found.get("failure")
    return Charge(
        number=entry.number,
        key=entry.key,
        state=state,
        label=entry.body["label"],
        time=entry.time,
        losses={
            name: loss_from_document(loss)
            for name, loss in entry.body["losses"].items()
        },
        hash=entry.hash,
        repeated=repeated,
        reason="" if failure is None else failure.body["reason"],
    )


# What is agreed before the first charge: data set, domain, budgets and models.


@dataclass(frozen=True, slots=True)
class LeakageBudget:
    r"""The most that all releases may leak to an attacker who knows a correlation.

    Leakages do not add up, but DP levels do: if a theorem bounds the leakage of every
    :math:`\varepsilon`-DP mechanism by a function :math:`f(\varepsilon)` that does not
    decrease, all releases together stay within the budget as long as their summed level
    stays below the largest :math:`\varepsilon'` with :math:`f(\varepsilon') \le B`.

    Parameters
    ----------
    leakage : number
        The budget :math:`B`.
    epsilon : number
        The level :math:`\varepsilon'`; rounded down.
    granularity : Granularity
        The change of one record that the theorem takes the level at.
    theorem : str
        The statement that turns the level into the leakage.
    model : mapping
        The correlation model as a document, or its fingerprint; kept, never read.

    See Also
    --------
    LeakageBudget.from_calibration : the level found by ``undertow.correlation``.
    """

    leakage: Number
    epsilon: Number
    granularity: Granularity
    theorem: str
    model: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        exact(self.leakage, "leakage")
        exact(self.epsilon, "epsilon")
        if not isinstance(self.granularity, Granularity):
            raise TypeError(
                "granularity must be a Granularity such as User(), got "
                f"{type(self.granularity).__name__}."
            )

    @classmethod
    def from_calibration(
        cls,
        calibration: Calibration,
        *,
        granularity: Granularity,
        model: Mapping[str, Any],
    ) -> Self:
        """Take level, leakage and theorem from ``undertow.correlation.calibrate``.

        Examples
        --------
        >>> import undertow as ut
        >>> from undertow.correlation import Blocks, calibrate
        >>> found = calibrate(Blocks.of_size(5, groups=2000), 1.0)
        >>> LeakageBudget.from_calibration(
        ...     found, granularity=ut.User(), model={"kind": "blocks"}
        ... ).epsilon
        0.2
        """
        return cls(
            leakage=getattr(calibration, "target", calibration.achieves.value),
            epsilon=calibration.value,
            granularity=granularity,
            theorem=calibration.achieves.theorem,
            model=model,
        )

    def to_document(self) -> dict[str, Any]:
        """Return the budget as a document, numbers as exact fractions."""
        return {
            "leakage": str(exact(self.leakage)),
            "epsilon": str(exact(self.epsilon)),
            "granularity": granularity_to_document(self.granularity),
            "theorem": self.theorem,
            "model": dict(self.model),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a budget back."""
        return cls(
            leakage=Fraction(document["leakage"]),
            epsilon=Fraction(document["epsilon"]),
            granularity=parse_granularity(document["granularity"]),
            theorem=str(document["theorem"]),
            model=dict(document["model"]),
        )


@dataclass(frozen=True, slots=True)
class Limit:
    """One inequality that every charge must keep.

    Parameters
    ----------
    name : str
        The granularity, or ``model:`` and the name of a model.
    granularity : Granularity
        Where the loss is taken.
    budget : Loss
        The most it may be.
    """

    name: str
    granularity: Granularity
    budget: Loss


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a ledger; the first entry is chained to them.

    Parameters
    ----------
    dataset : str
        The data set whose budget this is.
    domain : Domain
        The databases the guarantee ranges over.
    budgets : mapping of Granularity to Loss
        The most that may be lost at each granularity.
    models : mapping of str to LeakageBudget
        Correlation models by name.
    created : str
        When, by the clock of who made it.
    agreed : bool
        Whether they were agreed before and are read back. New ones name no level of
        several times where the domain has one.

    Raises
    ------
    LedgerError
        If new terms have a budget for several times and the domain has one.
    """

    dataset: str
    domain: Domain
    budgets: Mapping[Granularity, Loss]
    models: Mapping[str, LeakageBudget]
    created: str
    agreed: InitVar[bool] = False

    def __post_init__(self, agreed: bool) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise ValueError("dataset must be a non-empty text, got another value.")
        plain_text(self.dataset, "dataset")
        if not self.budgets and not self.models:
            raise ValueError("budgets must name at least one granularity, got none.")
        for target, budget in self.budgets.items():
            require_budget(target, budget, domain=self.domain)
            if not agreed:
                _require_times(target, self.domain)
        for name, model in self.models.items():
            if not isinstance(model, LeakageBudget):
                raise TypeError(
                    f"model {name!r} must be a LeakageBudget, got "
                    f"{type(model).__name__}."
                )
            model.granularity.require_domain(self.domain)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Every inequality that a charge must keep."""
        losses = [Limit(g.name, g, loss) for g, loss in self.budgets.items()]
        levels = [
            Limit(f"model:{name}", model.granularity, Pure(model.epsilon))
            for name, model in self.models.items()
        ]
        return (*losses, *levels)

    def to_text(self) -> str:
        """Return the canonical text that the chain starts from."""
        return canonical(
            {
                "format": "undertow ledger",
                "dataset": self.dataset,
                "domain": domain_to_document(self.domain),
                "budgets": {
                    granularity_to_document(target): loss_to_document(loss)
                    for target, loss in self.budgets.items()
                },
                "models": {k: m.to_document() for k, m in self.models.items()},
                "created": self.created,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read terms back.

        Raises
        ------
        LedgerError
            If the text is not what a ledger wrote.
        """
        try:
            document = json.loads(text)
            return cls(
                dataset=document["dataset"],
                domain=domain_from_document(document["domain"]),
                budgets={
                    parse_granularity(name): loss_from_document(loss)
                    for name, loss in document["budgets"].items()
                },
                models={
                    name: LeakageBudget.from_document(model)
                    for name, model in document["models"].items()
                },
                created=document["created"],
                agreed=True,
            )
        except (
            ArithmeticError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            RecursionError,
        ):
            raise LedgerError(
                "the terms of a ledger must be as they were written, got another text; "
                "run undertow ledger verify."
            ) from None


def _require_times(target: Granularity, domain: Domain) -> None:
    """Refuse a level of several times where there is one: it promises no more."""
    length = target.w if isinstance(target, WEvent) else 1
    length = target.length if isinstance(target, LTrajectory) else length
    if length > 1 and isinstance(domain, Stream) and domain.times == 1:
        raise LedgerError(
            f"a ledger with a budget at {target.name} level must count windows, got "
            "users as a whole; give the domain of a release with source.per = "
            "{ window = … }, or a budget at user level."
        )
