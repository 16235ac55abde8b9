"""The small language of `where` and of derived columns: no SQL passes through it."""

from __future__ import annotations

from dataclasses import dataclass

from undertow.release.expression_nodes import Column, Node, walk, written
from undertow.release.expression_parse import parse

__all__ = ["Expression", "parse_expression"]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over the columns of one row.

    Parameters
    ----------
    root : Node
        The outermost operation; :func:`parse_expression` makes it from text.

    Notes
    -----
    ``str`` writes the expression so that it parses to an equal one.
    """

    root: Node

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns read, those of derived columns among them."""
        return frozenset(n.name for n in walk(self.root) if isinstance(n, Column))

    def __repr__(self) -> str:
        return f"parse_expression({str(self)!r})"

    def __str__(self) -> str:
        return written(self.root)


def parse_expression(text: str, *, name: str = "expression") -> Expression:
    """Read an expression from text.

    Parameters
    ----------
    text : str
        Comparisons, ``and``, ``or``, ``not``, ``in``, ``between``, ``is null``,
        arithmetic and the functions of the language over columns and constants.
    name : str
        What errors call the expression.

    Raises
    ------
    PlanError
        With one sentence, if the text is no expression of the language.

    Examples
    --------
    >>> expression = parse_expression("steps > 0 and zone in ('A', 'B')")
    >>> sorted(expression.columns)
    ['steps', 'zone']
    >>> print(expression)
    ("steps" > 0) and ("zone" in ('A', 'B'))
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {type(text).__name__}.")
    return Expression(parse(text, name))
