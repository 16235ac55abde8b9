"""Models of dependence, from what a release file states."""

from fractions import Fraction
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.correlation import (
    Blocks,
    IndependentUnits,
    LimitedGaussian,
    MarkovChain,
    MarkovFamily,
)
from undertow.errors import PlanError
from undertow.release.document._promise import stated_model

FIELDS = (
    "states",
    "fit",
    "transition",
    "initial",
    "gamma",
    "length",
    "correlation",
    "phi",
    "group",
)


def model(name, *, path=None, unit=None, windows=None, whole_units=False, **given):
    stated = SimpleNamespace(model=name, **{f: given.get(f) for f in FIELDS})
    return stated_model(
        stated, path=path, unit=unit, length=windows, whole_units=whole_units
    )


def test_the_models_that_are_stated_by_numbers():
    assert isinstance(model("blocks", group=3), Blocks)
    assert isinstance(
        model("gaussian", correlation=Fraction(3, 10), group=5), LimitedGaussian
    )
    assert model("gaussian", phi=Fraction(3, 10), length=7).size == 7
    assert isinstance(model("markov", gamma=Fraction(4)), MarkovFamily)


def test_a_matrix_is_a_chain_as_long_as_the_windows_unless_stated():
    half = (Fraction(1, 2), Fraction(1, 2))
    chain = model(
        "markov", transition=(half, (Fraction(1, 4), Fraction(3, 4))), length=9
    )
    assert isinstance(chain, MarkovChain)
    assert chain.length == 9
    other = model("markov", transition=(half, half), initial=half)
    assert other.length is None
    assert other.initial.tolist() == [0.5, 0.5]
    assert model("markov", gamma=Fraction(2), windows=48).size == 48
    assert model("markov", gamma=Fraction(2), windows=48, length=50).size == 50


def states():
    return (["rest"] * 4 + ["walk"] * 3) * 100


def test_series_of_different_units_are_not_joined(tmp_path):
    path = tmp_path / "public.parquet"
    people = ["a" if at < 350 else "b" for at in range(700)]
    pq.write_table(pa.table({"state": states(), "person": people}), path)
    joined = model("markov", states="state", fit="x", path=path)
    apart = model("markov", states="state", fit="x", path=path, unit="person")
    assert isinstance(joined, MarkovFamily)
    # One transition fewer: the region is a little wider.
    assert apart.diameter != joined.diameter


@pytest.mark.parametrize(
    "content",
    [b"state\nrest\nwalk,walk\n", b"state\n\xff\xfe\n"],
    ids=["ragged", "not UTF-8"],
)
def test_a_broken_public_file_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "public.csv"
    path.write_bytes(content)
    with pytest.raises(
        PlanError, match=r"must be a readable public table, got public\.csv"
    ):
        model("markov", states="state", fit="x", path=path)


def test_a_broken_parquet_file_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "public.parquet"
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(PlanError, match="must be a readable public table"):
        model("markov", states="state", fit="x", path=path)


def test_missing_states_are_left_out(tmp_path):
    path = tmp_path / "public.csv"
    lines = ["state", *states(), "", *states()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert isinstance(model("markov", states="state", fit="x", path=path), MarkovFamily)


@pytest.mark.parametrize(
    ("stated", "inside"),
    [
        ({"name": "markov", "gamma": Fraction(3)}, True),
        ({"name": "gaussian", "phi": Fraction(1, 2), "length": 9}, True),
        ({"name": "gaussian", "correlation": Fraction(1, 2), "group": 3}, False),
        ({"name": "blocks", "group": 3}, False),
    ],
    ids=["chain", "series", "limited", "blocks"],
)
def test_series_are_inside_of_whole_units_and_groups_are_of_them(stated, inside):
    apart = model(**stated)
    whole = model(**stated, whole_units=True)
    assert not isinstance(apart, IndependentUnits)
    assert isinstance(whole, IndependentUnits) == inside
    named = whole.inside if inside else whole
    assert named.summary == apart.summary


@pytest.mark.parametrize("column", ["state", "person"])
def test_a_column_of_lists_is_refused(tmp_path, column):
    path = tmp_path / "public.parquet"
    table = {"state": states(), "person": ["a"] * 700}
    pq.write_table(pa.table(table | {column: [[1]] * 700}), path)
    with pytest.raises(PlanError, match="must be a readable public table"):
        model("markov", states="state", fit="x", path=path, unit="person")


def test_missing_numbers_are_no_states(tmp_path):
    path = tmp_path / "public.parquet"
    numbers = [0.0, 0.0, 1.0, 1.0, 0.0, float("nan")] * 300
    pq.write_table(pa.table({"state": numbers}), path)
    assert isinstance(model("markov", states="state", fit="x", path=path), MarkovFamily)


def test_a_step_that_never_occurs_matters_only_where_the_chain_does(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("state\n" + "a\nb\nc\n" * 50, encoding="utf-8")
    public = {"states": "state", "fit": "x", "path": path}
    with pytest.raises(PlanError, match="every state after every state at least once"):
        model("markov", **public)
    whole = model("markov", **public, whole_units=True)
    assert whole.inside.summary == "Markov chain of any number of records on 3 states"
