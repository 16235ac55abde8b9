"""Values given as JSON text or in a file."""

from __future__ import annotations

import sys

import pytest

from undertow.cli._input import check_numbers, library_input, read_json, read_numbers
from undertow.errors import ModelError, NotApplicable


def test_text_is_read_as_json():
    assert read_json('{"a": [1, 2.5, null]}', "table") == {"a": [1, 2.5, None]}


def test_a_file_is_read_where_its_name_follows_an_at_sign(tmp_path):
    file = tmp_path / "matrix.json"
    file.write_text("[[0.5, 0.5]]", encoding="utf-8")
    assert read_json(f"@{file}", "transition") == [[0.5, 0.5]]


def test_a_byte_order_mark_is_bad_input_and_not_a_fault(tmp_path):
    file = tmp_path / "matrix.json"
    file.write_text("\ufeff[1]", encoding="utf-8")
    with pytest.raises(ModelError, match="transition must be JSON"):
        read_json(f"@{file}", "transition")


@pytest.mark.parametrize(
    "text",
    ["", "[1,", "nonsense", "[1] [2]", "NaN", "[Infinity]", "-Infinity", "[" * 100_000],
)
def test_what_is_not_json_is_one_sentence(text):
    with pytest.raises(ModelError, match=r"^table must be JSON text") as caught:
        read_json(text, "table")
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"initial must name a readable file, got .*x"):
        read_json(f"@{tmp_path / 'x'}", "initial")
    with pytest.raises(ModelError, match="readable file"):
        read_json(f"@{tmp_path}", "initial")


def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "matrix.json"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ModelError, match="UTF-8"):
        read_json(f"@{file}", "table")
    monkeypatch.setattr("undertow.cli._input._LARGEST_FILE", 3)
    file.write_bytes(b"[1, 2]")
    with pytest.raises(ModelError, match="at most 0 MiB, got a larger one"):
        read_json(f"@{file}", "table")


def test_numbers_are_numbers_at_every_depth():
    assert read_numbers("[[1, 0.5], [[2]], 3]", "pmf") == [[1, 0.5], [[2]], 3]
    assert read_numbers("7", "pmf") == 7
    assert check_numbers([], "pmf") == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('["0.5"]', '"0.5"'),
        ("[[true]]", "true"),
        ("[null]", "null"),
        ('[{"a": 1}]', '{"a": 1}'),
    ],
)
def test_what_is_not_a_number_is_shown(text, shown):
    with pytest.raises(ModelError, match="pmf must hold numbers only") as caught:
        read_numbers(text, "pmf")
    assert str(caught.value).endswith(f"got {shown}.")


def test_a_whole_number_beyond_floats_is_refused():
    with pytest.raises(ModelError, match="finite numbers"):
        read_numbers(f"[{10**400}]", "pmf")
    assert read_numbers(f"[{int(sys.float_info.max)}]", "pmf")


@pytest.mark.parametrize("fault", [ValueError("x must be y."), TypeError("x.")])
def test_what_the_library_says_of_an_argument_is_bad_input(fault):
    with pytest.raises(ModelError, match=str(fault)), library_input():
        raise fault


def test_refusals_and_faults_pass_as_they_are():
    with pytest.raises(NotApplicable), library_input():
        raise NotApplicable("no.")
    with pytest.raises(KeyError), library_input():
        raise KeyError("x")


def test_a_model_that_does_not_fit_into_memory_is_bad_input():
    with pytest.raises(ModelError, match="fit into memory"), library_input():
        raise MemoryError


def test_a_key_that_stands_twice_is_refused_and_never_half_read():
    with pytest.raises(ModelError, match="the key 'a' stands twice"):
        read_json('{"a": 1, "b": 2, "a": 3}', "prior")
