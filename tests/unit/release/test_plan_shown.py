"""A plan in words: whose rows are meant, and how far an answer may be off."""

import pytest

from support.release_plans import COUNT, release_plan
from undertow.release.plan_shown import plan_text

ROWS = {"table": "t.csv", "per": "user"}
VALUE = {"name": "v", "column": "v", "low": 0, "high": 1}


def shown(queries=(COUNT,), **parts):
    return plan_text(release_plan({"epsilon": 1}, list(queries), **parts), markup=False)


def test_rows_that_belong_to_nobody_are_said_to_be_protected_by_themselves():
    assert "each row is protected by itself" in shown(source=ROWS, bounds={})
    assert "each row" not in shown()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"name": "n", "select": "count"}, ", 1 cell\n"),
        ({**VALUE, "select": "mean"}, "where these are 1000"),
        ({**VALUE, "select": "quantile"}, "v: rank off by at most "),
    ],
)
def test_errors_are_told_in_words(query, words):
    assert words in shown([query]) + "\n"
