"""Table 5.2 of the thesis: an attack that never looks at the output has no advantage.

A classifier learns the sensitive attribute from public records and answers from the
public attributes of the target alone. Its success is its accuracy, which measures the
population and not the mechanism; its advantage is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk import (
    ABSTAIN,
    AttackRisk,
    Channel,
    Decision,
    Knowledge,
    Prior,
    Success,
    Threat,
    advantage,
    attack_risk,
)
from undertow.studies.base import Check, Inputs, Study, StudyResult
from undertow.studies.thesis_bounds import stated

__all__ = ["RISK_IMPUTATION", "enumerated_risk"]

_BACKGROUND, _UNIVERSE, _REPEATS = 40_000, 1_000, 5
_ITERATIONS, _RATE = 15, 0.2
_LEAK, _LEAST = 2.0, 1e-6
_PRINTED = {"people-race": ("Census", 0.81), "people-sex": ("Texas", 0.73)}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Imputer = Callable[[Ints], Floats]


@dataclass(frozen=True)
class _Run:
    """One seed: the accuracy, the two risks, the control with a leak."""

    accuracy: Fraction
    majority: float
    success: Fraction
    advantage: Fraction
    leaked: AttackRisk
    best: float


def enumerated_risk(guesses: Ints, truths: Ints) -> tuple[Fraction, Fraction]:
    """Return success and advantage of an attack on every pair of a finite universe.

    Parameters
    ----------
    guesses : ndarray of int, shape (n, n)
        What is answered about the target (column) when the record of the row took part.
    truths : ndarray of int, shape (n,)
        The sensitive attribute of each record; all records are equally likely.

    Returns
    -------
    tuple of Fraction
        Counted, hence without rounding.

    Examples
    --------
    >>> import numpy as np
    >>> blind = np.broadcast_to(np.array([0, 0, 1]), (3, 3))
    >>> enumerated_risk(blind, np.array([0, 1, 1]))
    (Fraction(2, 3), Fraction(0, 1))
    """
    hits = guesses == truths
    n = len(truths)
    success = Fraction(int(np.trace(hits)), n)
    return success, success - Fraction(int(hits.sum()), n * n)


def _table_imputer(public: Ints, sensitive: Ints, classes: int) -> Imputer:
    """Return the frequencies of the sensitive attribute by public record."""
    cells, place = np.unique(public, axis=0, return_inverse=True)
    counts = np.zeros((len(cells), classes))
    np.add.at(counts, (place.ravel(), sensitive), 1.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    overall = np.bincount(sensitive, minlength=classes) / len(sensitive)
    known = dict(zip(map(tuple, cells.tolist()), shares, strict=True))
    return lambda rows: np.stack([known.get(tuple(r), overall) for r in rows.tolist()])


def _boosted_imputer(
    public: Ints, sensitive: Ints, words: NDArray[np.bool_], *, seed: int
) -> Imputer:
    """Return the probabilities of gradient-boosted trees; needs scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=_ITERATIONS,
        learning_rate=_RATE,
        categorical_features=words,
        early_stopping=False,
        random_state=seed,
    ).fit(public, sensitive)
    probabilities: Imputer = model.predict_proba
    return probabilities


def _one_run(people: Any, *, seed: int) -> _Run:
    order = np.random.default_rng(seed).permutation(len(people))
    past, here = order[:_BACKGROUND], order[_BACKGROUND:][:_UNIVERSE]
    public, sensitive = people.public[past], people.sensitive[past]
    imputer = (
        _boosted_imputer(public, sensitive, people.words, seed=seed)
        if people.real
        else _table_imputer(public, sensitive, people.classes)
    )
    truths, law = people.sensitive[here], imputer(people.public[here])
    guesses = law.argmax(axis=1)
    blind = np.broadcast_to(guesses, (len(here), len(here)))
    success, gained = enumerated_risk(blind, truths)
    return _Run(
        Fraction(int((guesses == truths).sum()), len(truths)),
        float(np.bincount(truths).max() / len(truths)),
        success,
        gained,
        *_with_leak(people.public[here], truths, law),
    )


def _with_leak(public: Ints, truths: Ints, law: Floats) -> tuple[AttackRisk, float]:
    """Return the risk of the same attack beside a noisy release of the attribute."""
    classes = law.shape[1]
    response = GeneralizedResponse(classes, _LEAK)
    keep, other = float(response.keep), float(response.noise)
    released = np.eye(classes) * (keep - other) + other
    labels = np.unique(public, axis=0, return_inverse=True)[1].ravel()
    threat = Threat(
        Prior.uniform(len(truths)),
        Success.attribute(truths.tolist().__getitem__),
        Knowledge.from_labels(labels.tolist()),
        abstain=True,
    )
    channel = Channel(released[truths])
    # The public part decides the probabilities: any record of a fibre has them.
    fibres = np.array([fibre[0] for fibre in threat.fibres])
    # Algorithm 1 takes the largest gain of the posterior, not the largest posterior.
    gain = released - released[truths].mean(axis=0)[:, None]
    answers = (law[fibres] * gain[:, None, :]).argmax(axis=2)
    decision = Decision(_records_of(truths, classes)[answers])
    risk = attack_risk(channel, threat, decision=decision)
    return risk, advantage(channel, threat).value


def _records_of(truths: Ints, classes: int) -> NDArray[np.intp]:
    """Return a record of each class; nobody has it, nothing is answered."""
    records = np.full(classes, ABSTAIN, dtype=np.intp)
    present, first = np.unique(truths, return_index=True)
    records[present] = first
    return records


def _table_5_2(inputs: Inputs) -> StudyResult:
    checks, rows = [], []
    for key, (name, printed) in _PRINTED.items():
        people = inputs.data[key]
        runs = [_one_run(people, seed=inputs.seed + k) for k in range(_REPEATS)]
        checks += _checks(name, people, printed, runs)
        rows += [(name, people.name, k, *_cells(run)) for k, run in enumerate(runs)]
    header = (
        "stands in for",
        "sensitive",
        "seed",
        "accuracy",
        "majority",
        "ReRo",
        "RAD",
        "ReRo with leak",
        "RAD with leak",
        "best RAD with leak",
    )
    real = all(inputs.data[key].real for key in _PRINTED)
    return StudyResult(
        TABLE_5_2.name,
        TABLE_5_2.title,
        TABLE_5_2.source,
        (),
        header,
        tuple(rows),
        tuple(checks),
        "Adult as a stand-in for Census19 and Texas-100X"
        if real
        else "a latent-class generator as a stand-in for Census19 and Texas-100X",
    )


def _cells(run: _Run) -> tuple[float, ...]:
    return (
        float(run.accuracy),
        run.majority,
        float(run.success),
        float(run.advantage),
        run.leaked.success,
        run.leaked.advantage,
        run.best,
    )


def _checks(name: str, people: Any, printed: float, runs: list[_Run]) -> list[Check]:
    success = float(sum(run.success for run in runs) / len(runs))
    majority = float(np.mean([run.majority for run in runs]))
    leak = float(np.mean([run.leaked.advantage for run in runs]))
    zero = all(run.advantage == 0 for run in runs)
    words = (
        f"Adult, {people.name}; gradient boosting"
        if people.real
        else f"{people.classes} classes, simulated; frequencies by public record"
    )
    return [
        Check(
            f"ReRo of imputation, {name}",
            printed,
            success,
            "stand-in",
            f"{words}, mean of {len(runs)} seeds; the commonest value has "
            f"{majority:.3f}",
        ),
        Check(
            f"RAD of imputation, {name}",
            0.0,
            0.0 if zero else float(max(abs(run.advantage) for run in runs)),
            "match" if zero else "differs",
            f"counted on all pairs of a universe of {_UNIVERSE}, so exactly zero; it "
            "is zero for every attack that ignores the output, on any data",
        ),
        stated(
            f"ReRo of imputation is the accuracy of the imputer, {name}",
            all(run.success == run.accuracy for run in runs),
            "in each of the seeds",
        ),
        stated(
            f"beside a leak, GRR with ε = 2 on the attribute, RAD is positive, {name}",
            all(_LEAST < run.leaked.advantage <= run.best for run in runs),
            f"{leak:.4f} for the imputer that looks for the largest gain, "
            f"{np.mean([run.best for run in runs]):.4f} for the best attack",
        ),
    ]


TABLE_5_2 = Study(
    "table-5.2",
    "success and advantage of imputation",
    "Guerra-Balboa (2026), Table 5.2",
    _table_5_2,
    ("people-race", "people-sex"),
)
RISK_IMPUTATION = (TABLE_5_2,)
