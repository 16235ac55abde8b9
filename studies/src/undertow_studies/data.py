"""Which data each study gets: the real files where there are any, else stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from undertow_studies import Study
from undertow_studies import dataset as datasets

_STAND_IN_SEED = 20260518


def study_data(study: Study, folder: Path | None) -> dict[str, Any]:
    """Return the data sets a study needs, by name.

    Parameters
    ----------
    study : Study
        Its ``needs`` are read.
    folder : Path or None
        Folder of the real data; None for stand-ins.
    """
    return {name: _SOURCES[name](folder) for name in study.needs}


def _pick(
    load: Callable[[Path], Any], stand_in: Callable[[np.random.Generator], Any]
) -> Callable[[Path | None], Any]:
    def chosen(folder: Path | None) -> Any:
        if folder is None:
            return stand_in(np.random.default_rng(_STAND_IN_SEED))
        return load(folder)

    return chosen


def _people(sensitive: str) -> Callable[[Path | None], Any]:
    def chosen(folder: Path | None) -> Any:
        # Imputing on the real table needs scikit-learn; the stand-in needs nothing.
        if folder is None or find_spec("sklearn") is None:
            rng = np.random.default_rng(_STAND_IN_SEED)
            return datasets.people_stand_in(sensitive, rng=rng)
        return datasets.load_people(folder, sensitive)

    return chosen


_SOURCES: dict[str, Callable[[Path | None], Any]] = {
    "galton": _pick(datasets.load_galton, datasets.galton_stand_in),
    "family-iq": _pick(datasets.load_family_iq, datasets.family_iq_stand_in),
    "synthetic-iq": lambda folder: datasets.synthetic_iq(),
    "activity": _pick(datasets.load_activity, lambda rng: datasets.activity_stand_in()),
    "electricity": lambda folder: datasets.electricity_stand_in(),
    "genotypes": _pick(datasets.load_genotypes, datasets.genotypes_stand_in),
    "adult-hours": _pick(
        datasets.load_adult_hours, lambda rng: datasets.hours_stand_in()
    ),
    "porto": _pick(
        lambda folder: datasets.load_roads(folder, "porto"),
        lambda rng: datasets.city_stand_in(rows=28, columns=109, rng=rng),
    ),
    "geolife": _pick(
        lambda folder: datasets.load_roads(folder, "geolife"),
        lambda rng: datasets.city_stand_in(rows=52, columns=103, rng=rng),
    ),
    "porto-trips": _pick(
        datasets.load_trips,
        lambda rng: datasets.walks_stand_in(_SOURCES["porto"](None), rng=rng),
    ),
    "geolife-stays": _pick(
        datasets.load_stays,
        lambda rng: datasets.walks_stand_in(_SOURCES["geolife"](None), rng=rng),
    ),
    "braced-grid": lambda folder: datasets.braced_grid(),
    "people-race": _people("race"),
    "people-sex": _people("sex"),
}
