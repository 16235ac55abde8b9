"""Chapter 5 of the thesis: bounds for any mechanism, and an attack without advantage.

Figure 5.3, Table 5.1, and Table 5.2 on attacks that never look at the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import AssumptionError
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow.numeric.array import Floats, Ints
from undertow.privacy import GDP, Approx, Loss
from undertow.risk import (
    ABSTAIN,
    AttackRisk,
    BoundReport,
    BoundRow,
    Channel,
    Decision,
    Knowledge,
    Prior,
    Success,
    Threat,
    advantage,
    attack_risk,
    best_bound,
    best_success_bound,
    success_rate,
)
from undertow.risk.bounds import (
    baseline_bound,
    uniform_gaussian_bound,
    uniform_guess_bound,
)
from undertow_studies.risk_theory import ADVANTAGE_LABEL, EPSILON_LABEL, printed_oue
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow_studies.thesis_bound import finished, stated

_SIZE = 30
_PRIOR = Prior.from_counts({x: _SIZE - x for x in range(_SIZE)})
_KNOWN = Threat.membership(_PRIOR)
_NEAR = Threat(_PRIOR, Success.within("absolute", 1))
_EXACT = Threat.reconstruction(_PRIOR)
_LOSS = Approx(1, "1e-5")
_LEVEL = 1.0
_DELTA, _CATEGORIES = 1e-5, 10

Risk = Callable[[float], float]


def _figure_5_3(inputs: Inputs) -> StudyResult:
    bounds: Mapping[str, Risk] = {
        "Proposition 5.13": _proposition,
        "Corollary 5.16": lambda e: (
            uniform_guess_bound(Approx(e, _DELTA), _CATEGORIES).value
        ),
        "OUE": lambda e: OptimizedUnary(_CATEGORIES, e).advantage_bound().value,
    }
    grid = tuple(float(e) for e in (0.01, *np.arange(0.1, 10.05, 0.1)))
    curves = tuple(
        Curve(name, grid, tuple(bound(e) for e in grid))
        for name, bound in bounds.items()
    )
    general, perfect, known = (curve.y for curve in curves)
    ordered = all(a < b < c for a, b, c in zip(known, perfect, general, strict=True))
    checks = [
        stated(
            "OUE is below Corollary 5.16, and that below Proposition 5.13, for all ε",
            ordered,
            f"on {len(grid)} levels from 0.01 to 10",
        ),
        *_black_box_checks(bounds),
    ]
    panel = Panel("10 records, δ = 10⁻⁵", curves, EPSILON_LABEL, ADVANTAGE_LABEL)
    return finished(FIGURE_5_3, [panel], checks)


def _proposition(epsilon: float) -> float:
    share = 1 / _CATEGORIES
    return baseline_bound(
        Approx(epsilon, _DELTA),
        best_guess=share,
        worst_guess=share,
        collision=share,
        sharpen=False,
    ).value


def _black_box_checks(bounds: Mapping[str, Risk]) -> list[Check]:
    m, checks = _CATEGORIES, []
    for e in (1.0, 2.0, 6.0):
        rise, odds = math.expm1(e), math.exp(e)
        general = min(
            rise / m + _DELTA,
            ((1 - 1 / m) * rise + _DELTA) / odds,
            (rise + 2 * _DELTA) / (odds + 1) * (1 - 1 / m),
        )
        perfect = (rise + _DELTA * m) / (odds + m - 1) * (m - 1) / m
        checks += [
            compare(
                f"{name} at ε = {e:g}",
                value,
                bounds[name](e),
                note="published: the statement, evaluated",
            )
            for name, value in (
                ("Proposition 5.13", general),
                ("Corollary 5.16", perfect),
                ("OUE", printed_oue(e, m)),
            )
        ]
    return checks


@dataclass(frozen=True)
class _Line:
    """One line of the printed table and an example to which it is applied.

    `row` names the row of our table; `wider` is a threat beyond its assumption, where
    it has one.
    """

    notion: str
    assumption: str
    theorem: str
    counterpart: str
    row: str
    guarantee: Loss | float
    threat: Threat
    wider: Threat | None = None
    source: Channel | None = None

    def report(self, threat: Threat) -> BoundReport:
        return best_bound(self.guarantee, threat, source=self.source)

    def found(self, threat: Threat) -> BoundRow:
        return next(r for r in self.report(threat).rows if r.name == self.row)


def _response(categories: int, epsilon: float) -> Channel:
    protocol = GeneralizedResponse(categories, epsilon)
    keep, other = float(protocol.keep), float(protocol.noise)
    return Channel(np.eye(categories) * (keep - other) + other)


def _lines() -> tuple[_Line, ...]:
    blind, exact = "aux = {∅}", "aux = {∅}, η = 0"
    pair, none = "(ε, δ)-DP", "none"
    return (
        _Line(
            "total variation", none, "Theorem 5.2", none, "total variation", 0.3, _KNOWN
        ),
        _Line(
            "f-DP",
            blind,
            "Theorem 5.11",
            "Equation 2.6",
            "trade-off",
            GDP(1),
            _NEAR,
            _KNOWN,
        ),
        _Line(
            "mechanism",
            "aux known",
            "Theorem 5.3",
            none,
            "exact advantage",
            _LOSS,
            _KNOWN,
            source=_response(_SIZE, _LEVEL),
        ),
        _Line(pair, none, "Theorem 5.2", none, "total variation", _LOSS, _KNOWN),
        _Line(
            pair,
            blind,
            "Proposition 5.13",
            "Equation 2.3",
            "baselines",
            _LOSS,
            _NEAR,
            _KNOWN,
        ),
        _Line(
            pair,
            exact,
            "Theorem 5.15",
            "Equation 2.3",
            "exact guess",
            _LOSS,
            _EXACT,
            _NEAR,
        ),
    )


def _table_5_1(inputs: Inputs) -> StudyResult:
    lines = _lines()
    checks = [
        *(check for line in lines for check in _line_checks(line)),
        *_composition_checks(),
        _pure_only(),
    ]
    header = ("notion", "assumption", "row", "applies", "theorem", "value", "reason")
    rows = tuple(
        (
            line.notion,
            line.assumption,
            row.name,
            "yes" if row.applies else "no",
            row.bound.theorem if row.bound else "",
            "" if row.value is None else row.value,
            row.reason,
        )
        for line in lines
        for row in line.report(line.threat).rows
    )
    return StudyResult(
        TABLE_5_1.name,
        TABLE_5_1.title,
        TABLE_5_1.source,
        (),
        header,
        rows,
        tuple(checks),
    )


def _line_checks(line: _Line) -> list[Check]:
    name = f"{line.notion}, assumption {line.assumption}"
    row, report = line.found(line.threat), line.report(line.threat)
    theorem = row.bound.theorem if row.bound else "none"
    agrees = row.applies and line.theorem in theorem
    checks = [
        Check(
            f"bound for {name}",
            line.theorem,
            theorem,
            "match" if agrees else "differs",
            f"{row.value:.6g} in the example; the best of our rows is "
            f"{report.name!r} with {report.value:.6g}",
        ),
    ]
    if line.wider is not None:
        refused = not line.found(line.wider).applies
        checks.append(
            stated(f"{line.theorem} needs {line.assumption}", refused, line.row)
        )
    if line.counterpart in ("none", "Equation 2.6"):
        checks.append(_counterpart(line, name))
    return checks


def _counterpart(line: _Line, name: str) -> Check:
    loss = line.guarantee if isinstance(line.guarantee, Loss) else _LOSS
    found = _stated_or_none(lambda: best_success_bound(loss, line.threat).theorem)
    agrees = found == line.counterpart
    return Check(
        f"bound on the success of reconstruction for {name}",
        line.counterpart,
        found,
        "match" if agrees else "differs",
        "refused where the attacker knows anything of the target",
    )


def _stated_or_none(theorem: Callable[[], str]) -> str:
    try:
        return theorem()
    except AssumptionError:
        return "none"


def _composition_checks() -> list[Check]:
    first, second = _response(4, _LEVEL), _same_risk()
    once = [advantage(channel, _UNIFORM).value for channel in (first, second)]
    twice = [advantage(_repeated(c), _UNIFORM).value for c in (first, second)]
    differ = math.isclose(*once, rel_tol=1e-9) and abs(twice[0] - twice[1]) > 1e-3
    sigma = uniform_gaussian_bound(10 / 22, 10, sharpen=False).value
    return [
        Check(
            "composition of Theorem 5.3",
            "no",
            "no" if differ else "yes",
            "match" if differ else "differs",
            f"two mechanisms of advantage {once[0]:.6g} have {twice[0]:.6g} and "
            f"{twice[1]:.6g} when run twice; the law of both outputs gives the value",
        ),
        compare(
            "advantage of 100 steps of DP-SGD at σ = 22, ten records",
            "0.1",
            sigma,
            note="Theorem 5.11 with μ = 10/22 for adding or removing a record, as in "
            "Example 5.17; replacing one doubles μ and needs σ = 43.87",
        ),
    ]


_UNIFORM = Threat.reconstruction(Prior.uniform(4))


def _same_risk() -> Channel:
    """Return the channel that tells the record, or nothing, with the same risk."""
    target = advantage(_response(4, _LEVEL), _UNIFORM).value
    told = target / 0.75
    return Channel(np.hstack([told * np.eye(4), np.full((4, 1), 1 - told)]))


def _repeated(channel: Channel) -> Channel:
    laws = channel.matrix
    return Channel((laws[:, :, None] * laws[:, None, :]).reshape(len(laws), -1))


def _pure_only() -> Check:
    """Return the counterexample to Equation 2.3 for approximate DP."""
    delta, m = 0.1, 4
    # The record with probability delta, else nothing: (0, delta)-DP.
    leak = Channel(np.hstack([delta * np.eye(m), np.full((m, 1), 1 - delta)]))
    success = success_rate(leak, _UNIFORM).value
    return Check(
        "bound on the success of reconstruction for (ε, δ)-DP",
        "Equation 2.3",
        "Equation 2.6",
        "erratum" if success > 1 / m else "match",
        "Equation 2.3 needs δ = 0: a (0, 0.1)-DP mechanism on four records has success "
        f"{success:.4g}, above κ⁺ = 0.25; for δ = 0 both hold",
        "RE30" if success > 1 / m else "",
    )


_THESIS = "Guerra-Balboa (2026)"
FIGURE_5_3 = Study(
    "figure-5.3",
    "bounds on the advantage of any mechanism with a guarantee",
    f"{_THESIS}, Figure 5.3",
    _figure_5_3,
)
TABLE_5_1 = Study(
    "table-5.1",
    "which bound on the advantage applies when",
    f"{_THESIS}, Table 5.1",
    _table_5_1,
)
RISK_BOUNDS = (FIGURE_5_3, TABLE_5_1)


# Table 5.2 of the thesis: an attack that never looks at the output has no advantage.
#
# A classifier learns the sensitive attribute from public records and answers from the
# public attributes of the target alone. Its success is its accuracy, which measures the
# population and not the mechanism; its advantage is zero.

_BACKGROUND, _UNIVERSE, _REPEATS = 40_000, 1_000, 5
_ITERATIONS, _RATE = 15, 0.2
_LEAK, _LEAST = 2.0, 1e-6
_PRINTED = {"people-race": ("Census", 0.81), "people-sex": ("Texas", 0.73)}

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
