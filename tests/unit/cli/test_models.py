"""From options to data models and queries."""

from __future__ import annotations

import pytest

from support.command import invoke
from undertow.cli._model import (
    blocks_model,
    gaussian_model,
    joint_model,
    markov_model,
    pedigree_model,
    read_query,
)
from undertow.correlation import (
    AnyQuery,
    Blocks,
    CountQuery,
    JointTable,
    LinearQuery,
    MarkovChain,
    MarkovFamily,
    Pedigree,
)
from undertow.errors import ModelError

CHAIN = "[[0.9, 0.1], [0.2, 0.8]]"
NO_CHAIN = {
    "transition": None,
    "gamma": None,
    "initial": None,
    "length": None,
    "renormalise": False,
}
NO_GAUSSIAN = {
    "covariance": None,
    "correlation": None,
    "group": None,
    "phi": None,
    "length": None,
}


def chain(**options):
    return markov_model(**{**NO_CHAIN, **options})


def gaussian(**options):
    return gaussian_model(**{**NO_GAUSSIAN, **options})


def test_a_matrix_makes_a_chain():
    model = chain(transition=CHAIN, initial="[0.5, 0.5]", length=7)
    assert isinstance(model, MarkovChain)
    assert model.size == 7
    assert model.initial.tolist() == [0.5, 0.5]


def test_several_matrices_make_a_chain_that_changes():
    model = chain(transition=f"[{CHAIN}, {CHAIN}]", initial="[1, 0]")
    assert model.size == 3
    assert not model.is_homogeneous


def test_printed_rows_are_divided_by_their_sums_on_request():
    model = chain(transition="[[0.882, 0.117], [0.305, 0.695]]", renormalise=True)
    assert model.transition.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)


def test_a_ratio_makes_the_family_of_all_chains_with_it():
    model = chain(gamma=7.5, length=10)
    assert isinstance(model, MarkovFamily)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "got neither"),
        ({"transition": CHAIN, "gamma": 3.0}, "got both"),
        ({"gamma": 3.0, "initial": "[1, 0]"}, "--initial must be left out"),
        ({"gamma": 3.0, "renormalise": True}, "--renormalise must be left out"),
    ],
)
def test_options_of_chains_that_do_not_fit_together_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        chain(**options)


def test_gaussian_records_have_three_descriptions():
    assert gaussian(covariance="[[1, 0.5], [0.5, 1]]").size == 2
    assert gaussian(phi=0.5, length=9).size == 9
    assert gaussian(correlation=0.275, group=3).largest_group == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "got 0 of them"),
        ({"phi": 0.5, "correlation": 0.3, "group": 2, "length": 4}, "got 2 of them"),
        ({"phi": 0.5}, "--phi must come with --length"),
        ({"correlation": 0.5}, "--correlation must come with --group"),
        ({"covariance": "[[1]]", "group": 3}, "--group must be left out"),
        ({"correlation": 0.1, "group": 3, "length": 4}, "--length must be left out"),
        ({"covariance": '[["1"]]'}, "covariance must hold numbers only"),
    ],
)
def test_options_of_gaussians_that_do_not_fit_together_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        gaussian(**options)


def test_groups_are_given_by_size_or_by_labels():
    sizes = blocks_model(group=4, groups=2, labels=None)
    assert isinstance(sizes, Blocks)
    assert (sizes.size, sizes.largest_group) == (8, 4)
    named = blocks_model(group=None, groups=1, labels='["a", "b", "a", 3]')
    assert (named.size, named.largest_group) == (4, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": None, "labels": None}, "got neither"),
        ({"group": 2, "labels": "[1]"}, "got both"),
        ({"group": None, "labels": "{}"}, "labels must be a JSON list"),
        ({"group": None, "labels": "[[1]]"}, "labels must be a JSON list"),
        ({"group": None, "labels": "[1]", "groups": 2}, "--groups must be left out"),
    ],
)
def test_options_of_groups_that_do_not_fit_together_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        blocks_model(**{"groups": 1, **options})


def test_a_joint_law_has_states_or_values():
    plain = joint_model("[[0.4, 0.1], [0.1, 0.4]]")
    assert isinstance(plain, JointTable)
    valued = joint_model('{"pmf": [[0.5, 0], [0, 0.5]], "values": [[0, 5], [0, 9]]}')
    assert valued.value_range == (0.0, 9.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"pmf": [1], "vaules": [1]}', "got key 'vaules'"),
        ('{"values": [1]}', "got no pmf"),
        ('{"pmf": ["1"]}', "pmf must hold numbers only"),
        ('{"pmf": [1], "values": ["1"]}', "values must hold numbers only"),
        ('"x"', "table must hold numbers only"),
    ],
)
def test_a_table_of_another_form_is_refused(text, message):
    with pytest.raises(ModelError, match=message):
        joint_model(text)


def test_a_pedigree_is_given_by_its_people_or_by_a_size():
    family = '[{"id": 1}, {"id": 2}, {"id": 3, "father": 1, "mother": 2}]'
    listed = pedigree_model(family=family, group=None, frequency=0.5)
    nuclear = pedigree_model(family=None, group=3, frequency=0.5)
    assert isinstance(listed, Pedigree)
    assert listed.size == nuclear.size == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": None, "group": None}, "got neither"),
        ({"family": "[]", "group": 3}, "got both"),
        ({"family": None, "group": 2}, "group must be at least 3"),
    ],
)
def test_options_of_pedigrees_that_do_not_fit_together_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        pedigree_model(frequency=None, **options)


def test_queries_have_their_names():
    assert read_query("any") == AnyQuery(1.0)
    assert read_query("any", sensitivity=2.0) == AnyQuery(2.0)
    assert read_query("count") == CountQuery([1])
    assert read_query("count", states="[0, 2]") == CountQuery([0, 2])
    assert read_query("count", genotypes=True) == CountQuery([2])
    assert read_query("sum", clip="[60, 80]") == LinearQuery(clip=(60, 80))
    assert read_query("sum") == LinearQuery(clip=(0, 1))
    assert read_query("sum", sensitivity=20.0) == LinearQuery(clip=(0, 20))
    assert read_query("dosage", bounded=True) == LinearQuery()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("median", {}, "query must be any, count, sum or dosage, got 'median'"),
        ("any", {"states": "[1]"}, "--states must be left out"),
        ("sum", {"states": "[1]"}, "--states must be left out"),
        ("any", {"clip": "[0, 1]"}, "--clip must be left out"),
        ("count", {"clip": "[0, 1]"}, "--clip must be left out"),
        ("count", {"sensitivity": 2.0}, "--sensitivity must be left out"),
        ("sum", {"clip": "[0, 1]", "sensitivity": 2.0}, "--sensitivity must be left"),
        ("sum", {"bounded": True, "sensitivity": 2.0}, "--sensitivity must be left"),
        ("count", {"states": "1"}, "states must be a JSON list of whole numbers"),
        ("count", {"states": "[0.5]"}, "states must be a JSON list of whole numbers"),
        ("sum", {"clip": "[0, 1, 2]"}, "clip must be a JSON list"),
        ("sum", {"clip": "[0, [1]]"}, "clip must be a JSON list"),
        ("sum", {"clip": '["a", 1]'}, "clip must hold numbers only"),
    ],
)
def test_an_option_without_effect_is_refused(name, options, message):
    with pytest.raises(ModelError, match=message):
        read_query(name, **options)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_sensitivity_is_positive(value):
    with pytest.raises(ValueError, match="sensitivity must be positive"):
        read_query("sum", sensitivity=value)


@pytest.mark.parametrize("command", ["leak", "calibrate"])
def test_the_help_shows_what_a_clip_interval_looks_like(command):
    """A bracket before a letter would be taken for markup and disappear."""
    result = invoke(command, "gaussian", "--help")
    assert "[0, 100]" in " ".join(result.stdout.replace("│", " ").split())
