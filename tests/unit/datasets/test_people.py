"""Tables with a sensitive attribute: Adult, and the latent-class generator."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from undertow_studies import dataset as datasets

HERE = os.environ.get("UNDERTOW_DATA")


@pytest.mark.parametrize(
    ("sensitive", "classes", "share"), [("race", 8, 0.81), ("sex", 2, 0.73)]
)
def test_the_best_imputer_of_the_stand_in_has_the_printed_success(
    sensitive, classes, share
):
    people = datasets.people_stand_in(sensitive, rng=np.random.default_rng(3))
    assert (len(people), people.classes, people.real) == (48_842, classes, False)
    latent = people.public @ (1 << np.arange(5))
    best = sum(
        np.bincount(people.sensitive[latent == z]).max() for z in range(32)
    ) / len(people)
    # Five standard errors of a share of 48 842.
    assert best == pytest.approx(share, abs=5 * 0.5 / 221)
    assert np.bincount(people.sensitive).max() / len(people) < share


def test_the_seed_decides_the_stand_in():
    first, again, other = (
        datasets.people_stand_in("sex", rng=np.random.default_rng(seed)).sensitive
        for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_another_attribute_is_refused(tmp_path):
    with pytest.raises(ValueError, match="sensitive"):
        datasets.load_people(tmp_path, "age")
    with pytest.raises(ValueError, match="sensitive"):
        datasets.people_stand_in("age", rng=np.random.default_rng(1))


@pytest.mark.data
@pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder")
@pytest.mark.parametrize(
    ("sensitive", "classes", "width"), [("race", 5, 13), ("sex", 2, 10)]
)
def test_adult_with_one_attribute_declared_sensitive(sensitive, classes, width):
    pytest.importorskip("pyarrow")
    assert HERE is not None
    people = datasets.load_people(Path(HERE), sensitive)
    assert people.public.shape == (48_842, width)
    assert people.classes == classes
    assert people.words.shape == (width,)
    majority = np.bincount(people.sensitive).max() / len(people)
    assert majority == pytest.approx({"race": 0.855, "sex": 0.668}[sensitive], abs=1e-3)
