"""Expressions mean the same on every engine, and never become SQL."""

from __future__ import annotations

import math
import warnings
from datetime import UTC
from decimal import Decimal
from typing import Any

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from support.examples import given_examples
from support.spark import spark_session
from undertow.errors import PlanError
from undertow.release.engine.job import Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import (
    LARGEST_NUMBER,
    SMALLEST_NUMBER,
    Arithmetic,
    Between,
    Call,
    Column,
    Comparison,
    Constant,
    Expression,
    Logic,
    Membership,
    Missing,
    Negate,
    Node,
    Not,
    parse_expression,
)
from undertow.release.language.meaning import Kind, evaluate, to_ibis
from undertow.release.source.opening import open_source

KINDS = {
    "w": Kind.WHOLE,
    "v": Kind.WHOLE,
    "u": Kind.WHOLE,
    "x": Kind.NUMBER,
    "d": Kind.NUMBER,
    "s": Kind.TEXT,
    "b": Kind.BOOLEAN,
    "day": Kind.DATE,
    "ts": Kind.TIME,
}
SCHEMA = pa.schema(
    {
        "w": pa.int64(),
        "v": pa.int16(),
        "u": pa.uint64(),
        "x": pa.float64(),
        "d": pa.decimal128(30, 9),
        "s": pa.string(),
        "b": pa.bool_(),
        "day": pa.date32(),
        "ts": pa.timestamp("us"),
    }
)
# Text without NUL and surrogates: the language refuses both.
text = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=6
) | st.sampled_from(["", "'", '"', "a'; drop table t; --", "ß", "İ", "\\", "A", "é"])
small = st.integers(-3, 3)
wholes = small | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**53, 2**62])
numbers = (
    st.floats(-10, 10)
    | st.floats()
    | st.sampled_from([0.0, -0.0, 0.5, 1e30, 2.0**53, 1e-40, math.inf, math.nan])
)
decimals = st.decimals(
    -(10**20), 10**20, places=9, allow_nan=False, allow_infinity=False
)
days = st.dates()
moments = st.datetimes()
rows = st.fixed_dictionaries(
    {
        "w": st.none() | wholes,
        "v": st.none() | st.integers(-(2**15), 2**15 - 1),
        "u": st.none() | st.integers(0, 3) | st.integers(0, 2**64 - 1),
        "x": st.none() | numbers,
        "d": st.none() | decimals | st.decimals(-3, 3, places=9),
        "s": st.none() | text,
        "b": st.none() | st.booleans(),
        "day": st.none() | days,
        "ts": st.none() | moments,
    }
)
constants: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.WHOLE: small | st.integers(-(2**63) + 1, 2**63 - 1),
    Kind.NUMBER: st.decimals(-100, 100, places=3)
    | st.decimals(SMALLEST_NUMBER, LARGEST_NUMBER - 1, allow_nan=False).map(
        lambda number: Decimal(f"{number:.20e}")
    ),
    Kind.TEXT: text,
    Kind.BOOLEAN: st.booleans(),
    Kind.DATE: days,
    Kind.TIME: moments,
}


def columns(kind: Kind) -> st.SearchStrategy[Node]:
    names = [name for name, of in KINDS.items() if of is kind]
    return st.sampled_from(names).map(Column)


def leaves(kind: Kind) -> st.SearchStrategy[Node]:
    return columns(kind) | constants[kind].map(Constant)


def numeric(depth: int) -> st.SearchStrategy[Node]:
    base = leaves(Kind.WHOLE) | leaves(Kind.NUMBER)
    if depth == 0:
        return base
    inner = numeric(depth - 1)
    return st.one_of(
        base,
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        st.builds(
            lambda left, m: Arithmetic("%", Call("floor", (left,)), Constant(m)),
            inner,
            st.integers(1, 10),
        ),
        st.builds(Negate, inner),
        st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["floor", "abs"]), inner),
        st.builds(lambda a, b: Call("coalesce", (a, b)), inner, inner),
        st.builds(
            lambda f, a: Call(f, (a,)),
            st.sampled_from(["hour", "minute", "weekday", "month", "year"]),
            leaves(Kind.TIME),
        ),
        st.builds(lambda a: Call("length", (a,)), texts(depth - 1)),
    )


def texts(depth: int) -> st.SearchStrategy[Node]:
    if depth == 0:
        return leaves(Kind.TEXT)
    inner = texts(depth - 1)
    return st.one_of(
        leaves(Kind.TEXT),
        st.builds(
            lambda f, a: Call(f, (a,)), st.sampled_from(["lower", "upper"]), inner
        ),
        st.builds(lambda a, b: Call("coalesce", (a, b)), inner, inner),
    )


def times() -> st.SearchStrategy[Node]:
    dates = leaves(Kind.TIME).map(lambda node: Call("date", (node,)))
    return leaves(Kind.TIME) | leaves(Kind.DATE) | dates


def comparisons(depth: int) -> st.SearchStrategy[Node]:
    order = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    same = st.sampled_from(["=", "!="])
    number, moment = numeric(depth), times()
    return st.one_of(
        st.builds(Comparison, order, number, number),
        st.builds(Comparison, order, moment, moment),
        st.builds(Comparison, same, texts(depth), texts(depth)),
        st.builds(Comparison, same, leaves(Kind.BOOLEAN), leaves(Kind.BOOLEAN)),
        st.builds(Between, number, number, number, st.booleans()),
        st.builds(Between, moment, moment, moment, st.booleans()),
        st.builds(Missing, number | moment | texts(depth), st.booleans()),
        *(
            st.builds(
                Membership,
                columns(kind),
                st.lists(constants[kind].map(Constant), min_size=1, max_size=3).map(
                    tuple
                ),
                st.booleans(),
            )
            for kind in Kind
        ),
    )


def conditions(depth: int) -> st.SearchStrategy[Node]:
    base = comparisons(1) | leaves(Kind.BOOLEAN)
    if depth == 0:
        return base
    inner = conditions(depth - 1)
    return st.one_of(
        comparisons(2),
        st.builds(Not, inner),
        st.builds(
            Logic,
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=4).map(tuple),
        ),
        of_truths(inner),
    )


def of_truths(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    """Return what can be asked of truth values that are no columns."""
    listed = st.lists(st.booleans().map(Constant), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(Comparison, st.sampled_from(["=", "!="]), inner, inner),
        st.builds(Membership, inner, listed, st.booleans()),
        st.builds(Missing, inner, st.booleans()),
        st.builds(lambda a, b: Call("coalesce", (a, b)), inner, inner),
    )


# As many of each: a union would be drawn from branch by branch.
SHAPES = [
    conditions(2),
    of_truths(conditions(1)),
    numeric(2),
    numeric(3),
    texts(2),
    times(),
]
expressions = st.sampled_from(range(len(SHAPES))).flatmap(SHAPES.__getitem__)


@pytest.fixture(scope="module")
def engine():
    backend = ibis.duckdb.connect()
    yield backend
    backend.disconnect()


def on_duckdb(engine: Any, expression: Expression, table: pa.Table) -> list[Any]:
    source = ibis.memtable(table)
    value = to_ibis(expression, source).name("answer")
    ordered = source.mutate(answer=value).order_by("place").select("answer")
    return engine.to_pyarrow(ordered)["answer"].to_pylist()


def arrow(many: list[dict[str, Any]]) -> pa.Table:
    table = pa.Table.from_pylist(many, schema=SCHEMA)
    return table.append_column("place", pa.array(range(len(many)), pa.int64()))


def agree(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


@given_examples(40, 120, node=expressions, many=st.lists(rows, min_size=2, max_size=8))
def test_duckdb_agrees_with_plain_python_on_every_row(engine, node, many):
    expression = Expression(node)
    many = [*many, dict.fromkeys(KINDS)]
    expected = [evaluate(expression, row, kinds=KINDS) for row in many]
    found = on_duckdb(engine, expression, arrow(many))
    assert all(map(agree, found, expected)), (str(expression), found, expected)


def counted(source: Any, node: Node) -> list[int]:
    """Count the rows where a condition holds, where not, and that a filter keeps."""
    grid = Grid(("k",), ((True, False),))
    jobs = [
        Job("keys", ("rows",), by=("k",), grid=grid),
        Job("filter", ("rows",), where=Expression(node)),
    ]
    with open_source(source) as opened:
        found = run_jobs(opened, jobs, columns={"k": Expression(node)})
    return [int(n) for part in found for n in part.measures["rows"]]


def right_counts(node: Node, many: list[dict[str, Any]], kinds: Any) -> list[int]:
    values = [evaluate(Expression(node), row, kinds=kinds) for row in many]
    return [values.count(True), values.count(False), values.count(True)]


truths = of_truths(conditions(1)) | conditions(1)


@given_examples(20, 80, node=truths, many=st.lists(rows, min_size=2, max_size=8))
def test_conditions_as_keys_and_filters_count_right_on_duckdb(node, many):
    found = counted(arrow(many), node)
    assert found == right_counts(node, many, KINDS), str(Expression(node))


@settings(max_examples=200, deadline=None)
@given(expressions)
def test_what_an_expression_writes_is_read_back_as_it(node):
    assert parse_expression(str(Expression(node))).root == node


def quoted(words: str) -> str:
    return "'" + words.replace("'", "''") + "'"


hostile = text | st.text(
    st.sampled_from("'\"`;-/*\\\n\r\t $%{}?:@a\u202e\ufeff\U0001f600"), max_size=12
)


@given_examples(30, 60, words=hostile)
def test_any_text_reaches_duckdb_as_a_value(engine, words):
    expression = parse_expression(f"s = {quoted(words)}")
    table = arrow([dict.fromkeys(KINDS) | {"s": s} for s in (words, words + "x")])
    assert on_duckdb(engine, expression, table) == [True, False]


@given_examples(20, 60, name=hostile.filter(lambda name: name != ""))
def test_any_column_name_reaches_duckdb_as_a_name(engine, name):
    expression = parse_expression('"' + name.replace('"', '""') + '" = 7')
    source = ibis.memtable(pa.table({name: pa.array([7, 8, None], pa.int64())}))
    found = engine.to_pyarrow(source.mutate(answer=to_ibis(expression, source)))
    assert found["answer"].to_pylist() == [True, False, None]


WORDS = (
    "a 1 ' \" ( ) and not in -- ; select , union /* = < between is null hour % 0.5 \0"
).split(" ")


def sentence_or_expression(words: str) -> str | Expression:
    try:
        return parse_expression(words, name="where")
    except PlanError as fault:
        return str(fault)


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)
)
def test_any_text_is_an_expression_or_one_sentence(words):
    found = sentence_or_expression(words)
    if isinstance(found, str):
        assert found.startswith("where must ")
        assert found.endswith(".")
    else:
        assert parse_expression(str(found)) == found


@given_examples(15, 40, node=expressions, row=rows)
def test_no_row_makes_a_query_fail_and_missing_rows_stay_missing(engine, node, row):
    # The value of a row alone is its value among others: no row affects another.
    expression = Expression(node)
    alone = on_duckdb(engine, expression, arrow([row]))
    among = on_duckdb(engine, expression, arrow([dict.fromkeys(KINDS), row]))
    assert agree(alone[0], among[1])


# PostgreSQL has no unsigned numbers: the column is a decimal there.
ON_POSTGRES = KINDS | {"u": Kind.NUMBER}
CREATE = (
    "CREATE TABLE t (place bigint, w bigint, v smallint, u numeric(20, 0), "
    "x double precision, d numeric, s text, b boolean, day date, ts timestamp)"
)


@pytest.fixture(scope="module")
def backend(postgres):
    postgres.create_database("expressions")
    opened = ibis.postgres.connect(
        host="127.0.0.1", port=postgres.port, user="postgres", database="expressions"
    )
    opened.con.execute("SET TIME ZONE 'UTC'")
    opened.con.execute(CREATE)
    opened.con.commit()
    yield opened
    opened.disconnect()


def fill(backend: Any, many: list[Any]) -> None:
    backend.con.execute("DELETE FROM t")
    with backend.con.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [[place, *(row[name] for name in KINDS)] for place, row in enumerate(many)],
        )
    backend.con.commit()


def on_postgres(backend: Any, expression: Expression, many: list[Any]) -> list[Any]:
    fill(backend, many)
    source = backend.table("t")
    ordered = source.mutate(answer=to_ibis(expression, source)).order_by("place")
    return backend.to_pyarrow(ordered.select("answer"))["answer"].to_pylist()


@given_examples(25, 80, node=expressions, many=st.lists(rows, min_size=2, max_size=8))
def test_postgresql_agrees_with_plain_python_on_every_row(backend, node, many):
    expression = Expression(node)
    expected = [evaluate(expression, row, kinds=ON_POSTGRES) for row in many]
    found = on_postgres(backend, expression, many)
    assert all(map(agree, found, expected)), (str(expression), found, expected)


@given_examples(15, 60, node=truths, many=st.lists(rows, min_size=2, max_size=8))
def test_conditions_as_keys_and_filters_count_right_on_postgresql(backend, node, many):
    fill(backend, many)
    found = counted(backend.table("t"), node)
    assert found == right_counts(node, many, ON_POSTGRES), str(Expression(node))


@given_examples(15, 40, words=hostile)
def test_any_text_reaches_postgresql_as_a_value(backend, words):
    expression = parse_expression(f"s = {quoted(words)}")
    many = [dict.fromkeys(KINDS) | {"s": s} for s in (words, words + "x", None)]
    assert on_postgres(backend, expression, many) == [True, False, None]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_spark_agrees_with_plain_python_on_every_row():
    many, nodes = drawn(rows, 40), drawn(expressions, 60)
    # Times far from today are no values of the library that carries the answers.
    nodes = [node for node in nodes if not isinstance(node, Column | Constant)]
    with spark_session() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backend = ibis.pyspark.connect(session)
        frame(session, many).createOrReplaceTempView("t")
        for at in range(0, len(nodes), 20):
            part = [Expression(node) for node in nodes[at : at + 20]]
            expected = [
                [evaluate(expression, row, kinds=ON_POSTGRES) for row in many]
                for expression in part
            ]
            for expression, found, right in zip(
                part, on_spark(backend, part), expected, strict=True
            ):
                assert all(map(agree, found, right)), str(expression)


def drawn(strategy: st.SearchStrategy[Any], size: int) -> list[Any]:
    """Return some values of a strategy, always the same."""
    found: list[Any] = []

    @seed(7)
    @settings(max_examples=size, deadline=None, database=None)
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def frame(session: Any, many: list[Any]) -> Any:
    types = "w long, v short, u decimal(20, 0), x double, d decimal(30, 9), s string"
    schema = f"place long, {types}, b boolean, day date, ts timestamp"
    values = []
    for place, row in enumerate(many):
        moment, unsigned = row["ts"], row["u"]
        row = row | {
            "ts": None if moment is None else moment.replace(tzinfo=UTC),
            "u": None if unsigned is None else Decimal(unsigned),
        }
        values.append((place, *(row[name] for name in KINDS)))
    return session.createDataFrame(values, schema)


def on_spark(backend: Any, part: list[Expression]) -> list[list[Any]]:
    source = backend.table("t")
    names = [f"a{at}" for at in range(len(part))]
    values = {n: to_ibis(e, source) for n, e in zip(names, part, strict=True)}
    ordered = source.mutate(**values).order_by("place").select(*names)
    found = backend.to_pyarrow(ordered)
    return [found[name].to_pylist() for name in names]
