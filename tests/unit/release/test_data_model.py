"""Models of dependence, from what a release file states."""

from fractions import Fraction
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.correlation import Blocks, LimitedGaussian, MarkovChain, MarkovFamily
from undertow.errors import PlanError
from undertow.release.data_model import stated_model

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


def model(name, *, path=None, unit=None, windows=None, **given):
    stated = SimpleNamespace(model=name, **{f: given.get(f) for f in FIELDS})
    return stated_model(stated, path=path, unit=unit, length=windows)


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
