"""The language of conditions and derived columns: reading, kinds and meaning."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import ibis
import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.release.language.expression import (
    Arithmetic,
    Column,
    Comparison,
    Constant,
    Expression,
    Logic,
    Membership,
    Missing,
    Negate,
    Not,
    parse_expression,
)
from undertow.release.language.meaning import (
    Kind,
    column_kinds,
    evaluate,
    kind_of,
    to_ibis,
)

KINDS = {
    "w": Kind.WHOLE,
    "x": Kind.NUMBER,
    "s": Kind.TEXT,
    "b": Kind.BOOLEAN,
    "day": Kind.DATE,
    "ts": Kind.TIME,
}
ROW: dict[str, Any] = {
    "w": 47,
    "x": -2.5,
    "s": "Zoo",
    "b": True,
    "day": date(2026, 1, 31),
    "ts": datetime(2026, 1, 31, 13, 45, 10),
}


def value(text: str, **row: Any) -> Any:
    return evaluate(parse_expression(text), ROW | row, kinds=KINDS)


def refusal(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        parse_expression(text, name="where")
    return str(caught.value)


def misfit(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        value(text)
    return str(caught.value)


def test_and_binds_closer_than_or_and_not_closer_than_both():
    a, b, c = (Column(name) for name in "abc")
    assert parse_expression("a or b and not c").root == Logic(
        "or", (a, Logic("and", (b, Not(c))))
    )
    assert parse_expression("(a or b) and c").root == Logic(
        "and", (Logic("or", (a, b)), c)
    )


def test_products_bind_closer_than_sums_and_both_from_the_left():
    a, b, c = (Column(name) for name in "abc")
    minus = Arithmetic("-", Arithmetic("-", a, b), Arithmetic("*", b, c))
    assert parse_expression("a - b - b * c").root == minus
    assert parse_expression("-a * b").root == Arithmetic("*", Negate(a), b)


def test_both_spellings_of_equality_and_of_inequality_are_read():
    for text, operator in [("a == 1", "="), ("a = 1", "="), ("a <> 1", "!=")]:
        assert parse_expression(text).root == Comparison(
            operator, Column("a"), Constant(1)
        )


def test_words_of_the_language_may_be_written_large():
    assert parse_expression("A IS NOT NULL").root == Missing(Column("A"), negated=True)
    assert parse_expression("a NOT IN (1)").root == Membership(
        Column("a"), (Constant(1),), negated=True
    )
    assert parse_expression("TRUE").root == Constant(value=True)


def test_names_in_quotes_hold_any_character_and_keywords():
    assert parse_expression('"a ""b"" `c`; --" = 1').columns == {'a "b" `c`; --'}
    assert parse_expression('`a ``b`` "c"` = 1').columns == {'a `b` "c"'}
    assert parse_expression('"and" and "or"').columns == {"and", "or"}
    assert parse_expression("größe > 0 and 速度 < 5").columns == {"größe", "速度"}


def test_columns_lists_every_name_once():
    text = "a + b > floor(c) and d in (1) or e between f and g or h is null"
    assert parse_expression(text).columns == set("abcdefgh")


def test_constants_have_the_types_they_are_written_in():
    numbers = parse_expression("a in (1, 1.0, 2e3, -4, -.5, 'x''y', true)").root
    assert isinstance(numbers, Membership)
    found = [constant.value for constant in numbers.values]
    assert found == [1, Decimal("1.0"), Decimal(2000), -4, Decimal("-0.5"), "x'y", True]
    kinds = [type(value).__name__ for value in found]
    assert kinds == ["int", "Decimal", "Decimal", "int", "Decimal", "str", "bool"]


def test_dates_and_times_are_constants_in_utc():
    assert parse_expression("date('2026-01-31')").root == Constant(date(2026, 1, 31))
    moment = parse_expression("timestamp('2026-01-31T01:00+02:00')").root
    assert moment == Constant(datetime(2026, 1, 30, 23))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "where must be an expression such as steps > 0, got empty text."),
        ("   ", "where must be an expression such as steps > 0, got empty text."),
        ("a >", "where must have a value, a column or a function here, got the end"),
        ("a b", "where must end or go on with an operator, got 'b' at character 3."),
        ("a = 1 = 2", "where must end or go on with an operator, got '='"),
        ("(a", "where must have ')' here, got the end at character 3."),
        ("a)", "where must end or go on with an operator, got ')'"),
        ("a = 'b", "where must close every quote, got an open ' at character 5."),
        ('a = "b', 'where must close every quote, got an open " at character 5.'),
        ("a; drop table t", "where must be an expression (text is written 'so'"),
        ("a = 1 -- b", "where must hold no comments, got '--' at character 7."),
        ("a /* b */ = 1", "where must hold no comments, got '/*' at character 3."),
        ("a = $1", "where must be an expression (text is written 'so'"),
        ("a = 1\0", "where must hold no NUL character, got one at character 6."),
        ("a = '\ud800'", "where must be Unicode text, got half of a surrogate pair."),
        (
            "hours(ts) = 3",
            "where must use the functions of the language, got 'hours' (di",
        ),
        ("pg_sleep(9)", "where must use the functions of the language, got 'pg_sleep'"),
        ("hour() = 3", "where must give hour 1 operands, got 0 at character 1."),
        ("coalesce(a) = 3", "where must give coalesce 2 to 20 operands, got 1"),
        ("a in ()", "where must have a value, a column or a function here, got ')'"),
        ("a in (b)", "where must list constants after in"),
        ("a in 3", "where must have '(' here, got '3' at character 6."),
        ("a is 3", "where must have null after is, got '3'"),
        ("a not 3", "where must have in or between after not, got '3'"),
        ("a between 1 or 2", "where must have and after the lower end of between"),
        ("null", "where must have a value, a column or a function here, got 'null'"),
        (
            "a = null",
            "where must have a value, a column or a function here, got 'null'",
        ),
        ("1a", "where must separate a number from what follows, got a letter"),
        ("a = 9223372036854775808", "where must have whole numbers below 2^63"),
        ("a = 1e40", "where must have numbers between 2^-100 and 2^100 in size"),
        ("a = 1e-40", "where must have numbers between 2^-100 and 2^100 in size"),
        ("a = 1e999999999", "where must have numbers between 2^-100 and 2^100 in size"),
        ("a = " + "1" * 61, "where must have numbers of at most 60 digits"),
        ("date('2026-02-30')", "where must write dates as date('2026-01-31'), got"),
        ("timestamp('now')", "where must write timestamps as timestamp('2026-01-31T"),
        ("timestamp(ts)", "where must give timestamp a text such as"),
        ('"" = 1', "where must name columns of 1 to 128 characters, got 0 characters"),
        (
            "a" * 129,
            "where must name columns of 1 to 128 characters, got 129 characters",
        ),
    ],
    ids=lambda text: ascii(text)[:24],
)
def test_what_is_no_expression_is_one_sentence(text, words):
    sentence = refusal(text)
    assert sentence.startswith(words)
    assert sentence.endswith(".")
    assert len(sentence) < 300


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + "a" + ")" * 100_000,
        "(" * 51 + "a" + ")" * 51,
        "not " * 51 + "a",
        "- " * 51 + "a",
        "abs(" * 51 + "a" + ")" * 51,
        "a" + " + a" * 1500,
        "a" + " and a" * 3000,
        "a in (" + "1," * 1000 + "1)",
        "s = '" + "x" * 10_000_000 + "'",
    ],
    ids=[
        "parentheses",
        "deep",
        "nots",
        "signs",
        "calls",
        "sums",
        "words",
        "list",
        "text",
    ],
)
def test_expressions_out_of_bounds_are_refused_and_do_not_crash(text):
    assert len(refusal(text)) < 200


def test_queries_that_would_nest_too_deeply_are_refused():
    derived = {"c0": parse_expression("w" + " - 1" * 25)}
    derived |= {
        f"c{at}": parse_expression(f"c{at - 1}" + " - 1" * 25) for at in range(1, 60)
    }
    for text, words in [
        ("w" + " % 7" * 40, "must nest fewer operations, got too many."),
        ("c3", "must nest fewer operations, got too many."),
        ("c59", "must nest at most 120 operations, derived columns included"),
    ]:
        with pytest.raises(PlanError, match=words):
            evaluate(parse_expression(text), ROW, kinds=KINDS, derived=derived)


def test_a_sum_of_many_whole_columns_stays_whole():
    assert value("w" + " + w" * 60) == 61 * 47
    assert type(value("w" + " + w" * 60)) is int


def test_long_and_deep_expressions_within_bounds_are_read_and_compiled():
    table = ibis.table({"a": "boolean", "w": "int64"}, name="t")
    for text in ["(" * 50 + "a" + ")" * 50, "a" + " and a" * 900, "not " * 50 + "a"]:
        assert ibis.to_sql(to_ibis(parse_expression(text), table), dialect="duckdb")
    text = "w" + " + w" * 60 + " > 0"
    assert ibis.to_sql(to_ibis(parse_expression(text), table), dialect="duckdb")


def test_only_text_can_be_read():
    with pytest.raises(TypeError, match=r"^where must be text, got int\.$"):
        parse_expression(3, name="where")


def test_an_expression_shows_the_text_that_makes_it():
    expression = parse_expression("- a * (b + 2) < 1.50 or s = 'it''s'")
    assert str(expression) == ('(((- "a") * ("b" + 2)) < 1.50) or ("s" = \'it\'\'s\')')
    assert parse_expression(str(expression)) == expression
    assert eval(repr(expression)) == expression
    assert hash(expression) == hash(parse_expression(str(expression)))


VALUES: list[tuple[Any, ...]] = [
    ("w / 2", 23.5),
    ("floor(w / 10) * 10", 40),
    ("floor(x)", -3),
    ("floor(w)", 47),
    ("abs(x) + 1", 3.5),
    ("w % 10", 7),
    ("(0 - w) % 10", 3),
    ("- w", -47),
    ("+ w", 47),
    ("w / 0", None),
    ("w / (w - w)", None),
    ("hour(ts)", 13),
    ("minute(ts)", 45),
    ("weekday(ts)", 5),
    ("weekday(day)", 5),
    ("month(ts)", 1),
    ("year(day)", 2026),
    ("date(ts) = day", True),
    ("date(day) = day", True),
    ("ts > day", True),
    ("ts between day and date('2026-02-01')", True),
    ("day in (date('2026-01-31'))", True),
    ("ts >= timestamp('2026-01-31T13:45:10Z')", True),
    ("lower(s)", "zoo"),
    ("upper(s)", "ZOO"),
    ("lower('ÀB')", "Àb"),
    ("length(s) = 3", True),
    ("s = 'Zoo' and s != 'zoo'", True),
    ("s in ('a', 'Zoo')", True),
    ("s not in ('a', 'Zoo')", False),
    ("b = true", True),
    ("b and not b", False),
    ("w between 47 and 47", True),
    ("w not between 1 and 46.5", True),
    ("w in (1, 47.0)", True),
    ("coalesce(w, 0)", 47),
    ("w > 46.5", True),
    ("w = 47.0", True),
]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_an_expression_has_this_value_on_a_row(text, expected):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


MISSING: list[tuple[Any, ...]] = [
    ("w > 0", None),
    ("not w > 0", None),
    ("w > 0 or b", True),
    ("w > 0 and b", None),
    ("w > 0 and not b", False),
    ("w > 0 or not b", None),
    ("w = w", None),
    ("w is null", True),
    ("w is not null", False),
    ("w in (1, 2)", None),
    ("w not in (1, 2)", None),
    ("w between 1 and 2", None),
    ("x between 0 and w", False),
    ("x between w and -3", False),
    ("x between w and 0", None),
    ("w + 1", None),
    ("coalesce(w, 3)", 3),
    ("coalesce(w, x)", -2.5),
    ("w % 3", None),
    ("floor(w / 2)", None),
]


@pytest.mark.parametrize(("text", "expected"), MISSING)
def test_a_missing_value_follows_three_valued_logic(text, expected):
    found = value(text, w=None)
    assert found == expected
    assert type(found) is type(expected)


EDGES: list[tuple[Any, ...]] = [
    ("x > 0", {"x": float("nan")}, None),
    ("x is null", {"x": float("nan")}, True),
    ("x > 0", {"x": float("inf")}, True),
    ("x + 1", {"x": float("inf")}, None),
    ("x * 2", {"x": 1e31}, None),
    ("x > 1e30", {"x": 1e300}, True),
    ("x / x", {"x": 1e-40}, None),
    ("x * x", {"x": 1e-40}, 0.0),
    ("w + 1", {"w": 2**63 - 1}, None),
    ("w > 9223372036854775806", {"w": 2**63 - 1}, True),
    ("w = 9007199254740993", {"w": 2**53}, False),
    ("w * w", {"w": 3}, 9.0),
    ("w + w", {"w": 2**53 - 1}, 2**54 - 2),
    ("floor(x)", {"x": 1e17}, None),
    ("x = 0.1", {"x": 0.1}, True),
    ("x = 0.1", {"x": Decimal("0.1")}, True),
    ("x > 0", {"x": Decimal("1e40")}, None),
    ("abs(w)", {"w": -(2**63)}, None),
    ("ts = timestamp('2026-01-01')", {"ts": datetime(2026, 1, 1)}, True),
]


@pytest.mark.parametrize(("text", "row", "expected"), EDGES)
def test_numbers_at_the_edges_are_missing_and_never_an_error(text, row, expected):
    found = value(text, **row)
    assert found == expected
    assert type(found) is type(expected)


def test_a_long_product_is_brought_back_into_range_and_cannot_overflow():
    text = " * ".join(["x"] * 15)
    assert value(text, x=2.0) == 2.0**15
    assert value(text, x=2.0**99) is None
    assert value(text, x=2.0**-99) == 0.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("v > 0", "expression must name columns of the table, got 'v'"),
        (
            "dai = day",
            "expression must name columns of the table, got 'dai' (did you me",
        ),
        ('s = "Zoo"', "expression must name columns of the table, got 'Zoo'"),
        ("s > 'a'", "expression must compare text with =, != or in only, got >"),
        ("s between 'a' and 'b'", "expression must compare text with =, != or in only"),
        ("b < true", "expression must compare a boolean with =, != or in only"),
        (
            "s = 1",
            "expression must compare like with like, got text and a whole number",
        ),
        (
            "day = '2026-01-31'",
            "expression must compare like with like, got a date and",
        ),
        ("w in (1, 'a')", "expression must compare like with like"),
        ("s + 1", "expression must give + numbers, got text; state"),
        ("- s", "expression must give - numbers, got text; state"),
        ("not w", "expression must give not conditions, got a whole number."),
        ("w and b", "expression must give and conditions, got a whole number."),
        (
            "w % w",
            "expression must have a whole number above 0 and below 2^53, written",
        ),
        (
            "w % 0",
            "expression must have a whole number above 0 and below 2^53, written",
        ),
        ("w % 2.5", "expression must have a whole number above 0 and below 2^53"),
        ("x % 2", "expression must have a whole number to the left of %; use floor."),
        ("hour(day)", "expression must give hour a time, got a date."),
        ("hour(s)", "expression must give hour a time, got text; state"),
        ("date(s)", "expression must give date a time, got text; state"),
        ("lower(w)", "expression must give lower text, got a whole number."),
        ("abs(s)", "expression must give abs numbers, got text; state"),
        ("floor(s)", "expression must give floor numbers, got text; state"),
        (
            "coalesce(w, s)",
            "expression must give coalesce one kind, got text and a who",
        ),
    ],
)
def test_kinds_that_do_not_fit_are_one_sentence(text, words):
    sentence = misfit(text)
    assert sentence.startswith(words)
    assert sentence.endswith(".")


def test_derived_columns_are_resolved_and_come_before_the_table():
    derived = {
        "decade": parse_expression("floor(w / 10)"),
        "old": parse_expression("decade >= 4"),
        "s": parse_expression("length('abc')"),
    }
    found = evaluate(parse_expression("old"), ROW, kinds=KINDS, derived=derived)
    assert found is True
    assert evaluate(parse_expression("s"), ROW, kinds=KINDS, derived=derived) == 3


def test_a_circle_of_derived_columns_is_refused():
    derived = {"a": parse_expression("c + 1"), "c": parse_expression("a + 1")}
    with pytest.raises(PlanError, match="must not depend on itself, got the derived"):
        evaluate(parse_expression("a"), ROW, kinds=KINDS, derived=derived)


def test_derived_columns_that_double_each_time_are_refused_before_they_are_built():
    derived = {"c0": parse_expression("w + w")}
    derived |= {
        f"c{at}": parse_expression(f"c{at - 1} + c{at - 1}") for at in range(1, 40)
    }
    with pytest.raises(PlanError, match=r"must be simpler, got a query of size \d+"):
        evaluate(parse_expression("c39"), ROW, kinds=KINDS, derived=derived)


def test_the_kinds_of_a_table_are_those_of_its_types():
    table = ibis.table(
        {
            "a": "int8",
            "b": "uint64",
            "c": "float32",
            "d": "decimal(10, 2)",
            "e": "string",
            "f": "boolean",
            "g": "date",
            "h": "timestamp('Europe/Berlin')",
            "i": "array<int64>",
            "j": "binary",
        },
        name="t",
    )
    kinds = column_kinds(table)
    assert "".join(sorted(kinds)) == "abcdefgh"
    assert kinds["b"] is Kind.WHOLE
    assert kinds["d"] is Kind.NUMBER
    assert kind_of(parse_expression("hour(h) + a"), table) is Kind.WHOLE
    with pytest.raises(PlanError, match="must name columns of the table, got 'i'"):
        to_ibis(parse_expression("i is null"), table)


def test_a_condition_must_be_one():
    table = ibis.table({"w": "int64"}, name="t")
    with pytest.raises(PlanError, match=r"^where must give a boolean, got a whole num"):
        to_ibis(parse_expression("w + 1"), table, name="where", kind=Kind.BOOLEAN)


def test_expressions_are_frozen():
    expression = Expression(Column("a"))
    with pytest.raises(AttributeError):
        expression.root = Column("b")  # type: ignore[misc]


def answers(texts: list[str], table: pa.Table) -> dict[str, list[Any]]:
    """Return the values of expressions on DuckDB, in a session in UTC."""
    engine = ibis.duckdb.connect()
    engine.raw_sql("SET TimeZone = 'UTC'")
    source = ibis.memtable(table.append_column("place", [list(range(len(table)))]))
    values = {t: to_ibis(parse_expression(t), source).name(t) for t in texts}
    ordered = source.mutate(**values).order_by("place").select(*texts)
    found = engine.to_pyarrow(ordered).to_pydict()
    engine.disconnect()
    return found


def one_row(row: dict[str, Any]) -> pa.Table:
    types = {
        "w": pa.int64(),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "day": pa.date32(),
        "ts": pa.timestamp("us"),
    }
    return pa.Table.from_pylist([row], schema=pa.schema(types))


@pytest.mark.parametrize(
    "cases",
    [
        [(text, {}, expected) for text, expected in VALUES],
        [(text, {"w": None}, expected) for text, expected in MISSING],
        *([case] for case in EDGES if not isinstance(case[1].get("x"), Decimal)),
    ],
    ids=lambda cases: cases[0][0],
)
def test_duckdb_gives_these_values_too(cases):
    table = one_row(ROW | cases[0][1])
    found = answers([text for text, _, _ in cases], table)
    for text, _, expected in cases:
        assert found[text] == [expected], text
        assert type(found[text][0]) is type(expected), text


def test_times_with_a_zone_are_read_in_utc():
    moments = [datetime(2026, 1, 31, 23, 30, tzinfo=UTC), None]
    zone = pa.timestamp("us", tz="America/New_York")
    table = pa.table({"ts": pa.array(moments, zone)})
    assert answers(["hour(ts)", "date(ts)", "ts >= date('2026-01-31')"], table) == {
        "hour(ts)": [23, None],
        "date(ts)": [date(2026, 1, 31), None],
        "ts >= date('2026-01-31')": [True, None],
    }


def test_infinite_times_have_no_year_date_or_hour():
    engine = ibis.duckdb.connect()
    engine.raw_sql("CREATE TABLE t AS SELECT 'infinity'::TIMESTAMP AS ts")
    table = engine.table("t")
    for function in ("year", "month", "weekday", "date", "hour", "minute"):
        value = to_ibis(parse_expression(f"{function}(ts) is null"), table)
        assert engine.to_pyarrow(table.select(a=value))["a"].to_pylist() == [True]
    engine.disconnect()


def test_decimals_are_correctly_rounded_however_many_digits_they_have():
    short, long = Decimal("0.1"), Decimal("12345678901234567890123456789.012345678")
    table = pa.table(
        {
            "a": pa.array([short], pa.decimal128(5, 2)),
            "b": pa.array([long], pa.decimal128(38, 9)),
        }
    )
    found = answers(["a + 0", "b + 0", "a = 0.1"], table)
    assert found == {"a + 0": [0.1], "b + 0": [float(long)], "a = 0.1": [True]}


def test_decimals_without_a_limit_are_guarded_before_they_are_converted():
    table = ibis.table({"n": "decimal"}, name="t")
    sql = ibis.to_sql(to_ibis(parse_expression("n > 0"), table), dialect="postgres")
    assert sql.index("9" * 38) < sql.index("AS DOUBLE PRECISION")


def test_wide_and_narrow_columns_mean_the_same():
    table = pa.table(
        {
            "u": pa.array([1, 2**64 - 1, None], pa.uint64()),
            "f": pa.array([0.5, float("nan"), None], pa.float32()),
            "i": pa.array([1, 127, None], pa.int8()),
        }
    )
    assert answers(["u + 1", "u is null", "f is null", "i * i", "i + i"], table) == {
        "u + 1": [2, None, None],
        "u is null": [False, True, True],
        "f is null": [False, True, True],
        "i * i": [1.0, 16129.0, None],
        "i + i": [2, 254, None],
    }


def test_constants_alone_are_computed_in_64_bits_and_in_double_precision():
    table = pa.table({"w": pa.array([1], pa.int64())})
    texts = ["2000000000 + 2000000000", "coalesce(2000000000, w) + 2000000000"]
    assert answers([*texts, "0.1 * 3", "1 / 3"], table) == {
        texts[0]: [4_000_000_000],
        texts[1]: [4_000_000_000],
        "0.1 * 3": [0.1 * 3],
        "1 / 3": [1 / 3],
    }


def test_no_engine_finds_a_setting_to_replace_in_a_text():
    # Spark replaces ${env:HOME} anywhere in a query, even inside quotes.
    table = pa.table({"s": pa.array(["${env:HOME}", "$", "a${b}${c}"])})
    texts = ["s = '${env:HOME}'", "s in ('$', 'a${b}${c}')"]
    source = ibis.memtable(table)
    for text in texts:
        assert "${" not in ibis.to_sql(
            source.select(a=to_ibis(parse_expression(text), source)), dialect="duckdb"
        )
    assert answers(texts, table) == {
        texts[0]: [True, False, False],
        texts[1]: [False, True, True],
    }


def test_years_and_dates_of_dates_are_read_too():
    table = pa.table({"day": pa.array([date(2026, 1, 31), None])})
    found = answers(["year(day)", "month(day)", "weekday(day)"], table)
    assert list(found.values()) == [[2026, None], [1, None], [5, None]]
