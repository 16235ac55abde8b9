"""`undertow risk`: what an attacker gains because a person took part."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from undertow.cli import _threat as opt
from undertow.cli._input import library_input
from undertow.cli._output import guarded, print_json, working
from undertow.cli._risk_result import (
    Row,
    advantage_record,
    calibration_record,
    comparison_record,
    level_record,
    print_advantage,
    print_calibration,
    print_card,
    print_comparison,
    row_at,
)
from undertow.cli._threat import (
    Description,
    Weights,
    leave_out,
    read_channel,
    read_families,
    read_family,
    read_parameter,
    read_records,
    read_target,
    read_threat,
    read_weights,
)
from undertow.errors import AssumptionError, ModelError
from undertow.results import to_plain
from undertow.risk import Channel, Threat, assess_risk
from undertow.risk.calibration import calibrate
from undertow.risk.card import risk_card
from undertow.risk.families import Family

risk = typer.Typer(
    name="risk",
    help="What an attacker gains because a person took part, and the noise for it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@risk.command("advantage")
def risk_advantage(
    mechanism: opt.MechanismName = None,
    channel: opt.ChannelMatrix = None,
    categories: opt.Categories = None,
    span: opt.Span = None,
    answers: opt.Answers = None,
    sensitivity: opt.Sensitivity = None,
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    scale: opt.Scale = None,
    sigma: opt.Sigma = None,
    prior: opt.PriorLaw = "uniform",
    aux: opt.Aux = "none",
    tolerance: opt.Tolerance = None,
    loss: opt.LossMatrix = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """State the largest gain of any attack on a release, and every bound on it.

    Example: [bold]undertow risk advantage --mechanism grr --categories 100
    --epsilon 2.5[/bold]
    """
    with guarded(), library_input():
        options = _Options(
            categories, span, answers, sensitivity, epsilon, delta, scale, sigma
        )
        weights = read_weights(prior)
        source, described, parameter = _source(mechanism, channel, options, weights)
        threat = read_threat(
            described, weights=weights, aux=aux, tolerance=tolerance, loss=loss
        )
        with working("measuring the risk"):
            assessment = assess_risk(source, threat, parameter=parameter)
        if json_output:
            print_json(advantage_record(assessment, threat))
        else:
            print_advantage(assessment, threat)


@risk.command("calibrate")
def risk_calibrate(
    mechanism: opt.OneMechanism,
    advantage: opt.Target = None,
    categories: opt.Categories = None,
    span: opt.Span = None,
    answers: opt.Answers = None,
    sensitivity: opt.Sensitivity = None,
    delta: opt.Delta = None,
    prior: opt.PriorLaw = "uniform",
    aux: opt.Aux = "none",
    tolerance: opt.Tolerance = None,
    loss: opt.LossMatrix = None,
    users: opt.Users = 10_000,
    confidence: opt.Confidence = 0.95,
    json_output: opt.JsonOutput = False,
) -> None:
    """Choose the largest epsilon, or the least noise, that keeps a promise.

    Example: [bold]undertow risk calibrate --mechanism grr --categories 100
    --advantage 0.1[/bold]
    """
    with guarded(), library_input():
        target = read_target(advantage)
        weights = read_weights(prior)
        described = read_records(
            categories=categories, span=span, answers=answers, weights=weights
        )
        family = read_family(mechanism, described, sensitivity=sensitivity, delta=delta)
        threat = read_threat(
            described, weights=weights, aux=aux, tolerance=tolerance, loss=loss
        )
        with working(f"calibrating {mechanism}"):
            calibration = calibrate(
                family, threat, advantage=target, users=users, confidence=confidence
            )
        level = level_record(family, calibration.value, binding=calibration.binding)
        if json_output:
            print_json(calibration_record(calibration, level))
        else:
            print_calibration(calibration, level, family.called)


@risk.command("compare")
def risk_compare(
    mechanisms: opt.MechanismNames,
    advantage: opt.Target = None,
    epsilon: opt.Epsilon = None,
    categories: opt.Categories = None,
    span: opt.Span = None,
    answers: opt.Answers = None,
    sensitivity: opt.Sensitivity = None,
    delta: opt.Delta = None,
    prior: opt.PriorLaw = "uniform",
    aux: opt.Aux = "none",
    tolerance: opt.Tolerance = None,
    loss: opt.LossMatrix = None,
    users: opt.Users = 10_000,
    confidence: opt.Confidence = 0.95,
    json_output: opt.JsonOutput = False,
) -> None:
    """Compare mechanisms at equal risk, or at equal epsilon.

    Example: [bold]undertow risk compare --mechanisms grr,oue,ss,olh
    --categories 3052 --advantage 0.1[/bold]
    """
    with guarded(), library_input():
        if (advantage is None) == (epsilon is None):
            raise ModelError(
                "compare must be given one of --advantage and --epsilon, "
                f"got {'neither' if advantage is None else 'both'}."
            )
        target = None if advantage is None else read_target(advantage)
        weights = read_weights(prior)
        described = read_records(
            categories=categories, span=span, answers=answers, weights=weights
        )
        families = read_families(
            mechanisms,
            described,
            epsilon=epsilon,
            sensitivity=sensitivity,
            delta=delta,
        )
        threat = read_threat(
            described, weights=weights, aux=aux, tolerance=tolerance, loss=loss
        )
        with working("comparing mechanisms"):
            rows = tuple(
                _row(family, threat, target, epsilon, users, confidence)
                for family in families
            )
        if json_output:
            print_json(comparison_record(rows, threat, target=target, epsilon=epsilon))
        else:
            print_comparison(rows, threat, target=target, epsilon=epsilon)


@risk.command("card")
def risk_card_command(
    mechanism: opt.MechanismName = None,
    channel: opt.ChannelMatrix = None,
    categories: opt.Categories = None,
    span: opt.Span = None,
    answers: opt.Answers = None,
    sensitivity: opt.Sensitivity = None,
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    scale: opt.Scale = None,
    sigma: opt.Sigma = None,
    prior: opt.PriorLaw = "uniform",
    aux: opt.Aux = "none",
    tolerance: opt.Tolerance = None,
    loss: opt.LossMatrix = None,
    what: opt.What = "record",
    json_output: opt.JsonOutput = False,
) -> None:
    """State the risk of a release to one person in words.

    Example: [bold]undertow risk card --mechanism laplace-sum --range 0:100
    --epsilon 1 --tolerance 5 --what 'working hours'[/bold]
    """
    with guarded(), library_input():
        options = _Options(
            categories, span, answers, sensitivity, epsilon, delta, scale, sigma
        )
        weights = read_weights(prior)
        source, described, parameter = _source(mechanism, channel, options, weights)
        threat = read_threat(
            described, weights=weights, aux=aux, tolerance=tolerance, loss=loss
        )
        with working("measuring the risk"):
            card = risk_card(source, threat, parameter=parameter, what=what)
        if json_output:
            print_json(to_plain(card))
        else:
            print_card(card)


@dataclass(frozen=True, slots=True)
class _Options:
    """What describes a mechanism at a parameter."""

    categories: int | None
    span: str | None
    answers: str | None
    sensitivity: float | None
    epsilon: float | None
    delta: float | None
    scale: float | None
    sigma: float | None


def _source(
    mechanism: str | None,
    channel: str | None,
    options: _Options,
    weights: Weights | None,
) -> tuple[Family | Channel, Description, float | None]:
    """Return the channel, or the family with its parameter, and the records."""
    if (mechanism is None) == (channel is None):
        raise ModelError(
            "the release must be given by one of --mechanism and --channel, "
            f"got {'neither' if mechanism is None else 'both'}."
        )
    if channel is not None:
        return _channel(channel, options, weights)
    assert mechanism is not None
    name, value = read_parameter(
        mechanism,
        epsilon=options.epsilon,
        scale=options.scale,
        sigma=options.sigma,
        delta=options.delta,
    )
    described = read_records(
        categories=options.categories,
        span=options.span,
        answers=options.answers,
        weights=weights,
    )
    family = read_family(
        mechanism,
        described,
        parameter=name,
        sensitivity=options.sensitivity,
        delta=options.delta,
    )
    family.require_parameter(value)
    return family, described, value


def _channel(
    text: str, options: _Options, weights: Weights | None
) -> tuple[Channel, Description, None]:
    for name in ("answers", "sensitivity", "epsilon", "delta", "scale", "sigma"):
        leave_out(name, getattr(options, name), "the channel says it all")
    matrix = read_channel(text)
    size = matrix.size
    described = read_records(
        categories=size if options.span is None else None,
        span=options.span,
        answers=None,
        weights=weights,
    )
    for other in (options.categories, described.size):
        if other not in (None, size):
            raise ModelError(
                f"the channel must have a row for each of the {other} records, got "
                f"{size}."
            )
    return matrix, described, None


def _row(
    family: Family,
    threat: Threat,
    target: float | None,
    epsilon: float | None,
    users: int,
    confidence: float,
) -> Row:
    """Return one mechanism of a comparison, or the reason why it has no row."""
    try:
        if epsilon is not None:
            return row_at(
                family, threat, parameter=epsilon, users=users, confidence=confidence
            )
        assert target is not None
        calibration = calibrate(
            family,
            threat,
            advantage=target,
            alternatives=False,
            users=users,
            confidence=confidence,
        )
    except AssumptionError as refusal:
        none = {"epsilon": None}
        return Row(family.name, none, reason=str(refusal), called=family.called)
    return Row(
        family.name,
        level_record(family, calibration.value, binding=calibration.binding),
        calibration.achieves.value,
        calibration.exact,
        calibration.method,
        None if calibration.structure is None else dict(calibration.structure),
        calibration.utility,
        binding=calibration.binding,
        called=family.called,
    )
