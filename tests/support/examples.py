"""Properties that are tested on a few examples at once and on many at leisure."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

__all__ = ["given_examples"]


def given_examples(
    few: int, many: int, /, *drawn: SearchStrategy[Any], **named: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Any]:
    """Test a property on `few` examples, and under the slow marker on `many`.

    The strategies are those of `hypothesis.given`. Fixtures and other parameters of the
    test are passed on.
    """

    def decorate(check: Callable[..., None]) -> Any:
        lengths = {"few": few, "many": many}
        tests = {
            name: settings(max_examples=number)(given(*drawn, **named)(check))
            for name, number in lengths.items()
        }

        def test(examples: str, **fixtures: Any) -> None:
            tests[examples](**fixtures)

        rest = inspect.signature(tests["few"]).parameters.values()
        kind = inspect.Parameter.KEYWORD_ONLY
        first = inspect.Parameter("examples", kind)
        given_rest = [parameter.replace(kind=kind) for parameter in rest]
        functools.update_wrapper(test, check, updated=())  # it is no @given itself
        test.__dict__.update(
            __signature__=inspect.Signature([first, *given_rest]),
            pytestmark=list(getattr(check, "pytestmark", [])),
        )
        slow = pytest.param("many", marks=pytest.mark.slow)
        return pytest.mark.parametrize("examples", ["few", slow])(test)

    return decorate
