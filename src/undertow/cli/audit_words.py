"""Words of the command line: what was typed, audited and refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from undertow.audit import Claim
from undertow.errors import UndertowError
from undertow.mechanisms.local import LocalProtocol
from undertow.report.audit import claim_words

__all__ = ["in_option_words", "protocol_title", "shown_command", "was_given"]

_PROTOCOLS = {
    "blh": "binary local hashing",
    "grr": "generalized randomized response",
    "olh": "optimized local hashing",
    "oue": "optimized unary encoding",
    "she": "summation with histogram encoding",
    "ss": "subset selection",
    "sue": "symmetric unary encoding",
    "the": "thresholding with histogram encoding",
}
# Arguments of the library whose options are spelled otherwise.
_ARGUMENTS = {
    re.compile(r"(?<![\w-])time_limit\b"): "--time-limit",
    re.compile(r"(?<![\w-])score must\b"): "--score must",
}
# JSON that may describe people; a file is shown by its name, other JSON not at all.
_PRIVATE = ("aux", "inputs", "loss", "prior")
_WORDS = ("full", "none", "uniform")
_HIDDEN = "JSON"


def protocol_title(name: str, protocol: LocalProtocol) -> str:
    """Return a protocol in words.

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> protocol_title("oue", OptimizedUnary(20, 1))
    'OUE (optimized unary encoding), 20 values, ε = 1'
    """
    return (
        f"{name.upper()} ({_PROTOCOLS[name]}), {protocol.categories} values, ε = "
        f"{float(protocol.epsilon):.10g}"
    )


@contextmanager
def in_option_words(claim: Claim | None = None) -> Iterator[None]:
    """Say what the library refuses by the names that the options have here."""
    try:
        yield
    except (UndertowError, TypeError, ValueError) as fault:
        said = str(fault)
        worded = said if claim is None else said.replace(str(claim), claim_words(claim))
        for argument, option in _ARGUMENTS.items():
            worded = argument.sub(option, worded)
        if worded != said:
            fault.args = (worded,)
        raise


def shown_command(context: typer.Context) -> str:
    """Return the command line that was given, without private values.

    Parameters
    ----------
    context : typer.Context
        Of the command that runs.

    Returns
    -------
    str
        Options with a default are shown only if they were given. Inline JSON of inputs,
        prior, knowledge and losses is left out, and of absolute paths only the last
        part is shown.
    """
    words: list[str] = []
    place: Any = context
    while place.parent is not None:  # the root is called as it was started
        words.insert(0, str(place.info_name))
        place = place.parent
    for option in context.command.params:
        name = str(option.name)
        if was_given(context, name):
            words += _option_words(option, name, context.params[name])
    return " ".join(["undertow", *map(shlex.quote, words)])


def was_given(context: typer.Context, name: str) -> bool:
    """Return whether an option stood on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _option_words(option: Any, name: str, value: Any) -> list[str]:
    if option.param_type_name == "argument":
        return [_shown(name, value)]
    if isinstance(value, bool):
        return [(option.opts if value else option.secondary_opts)[0]]
    given = value if isinstance(value, list | tuple) else [value]
    return [word for item in given for word in (option.opts[0], _shown(name, item))]


def _shown(name: str, value: Any) -> str:
    if isinstance(value, Path):
        return value.name if value.is_absolute() else str(value)
    text = str(value).removesuffix(".0") if isinstance(value, float) else str(value)
    if text.startswith("@"):
        return "@" + _shown(name, Path(text[1:]))
    if name in _PRIVATE and text not in _WORDS:
        return _HIDDEN
    # Older parsers hand paths over as text.
    return Path(text).name if Path(text).is_absolute() else text
