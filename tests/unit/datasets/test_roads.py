"""Road networks: the cities of the sources, grids, and a city that is none."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from undertow.datasets import DataError
from undertow_studies import dataset as datasets

HERE = os.environ.get("UNDERTOW_DATA")
needs_data = [
    pytest.mark.data,
    pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder"),
]


def write_city(folder: Path, edges: list[tuple[int, int]], *, nodes: str) -> Path:
    (folder / "porto").mkdir()
    header = "node,lat,lon,visits_snap_all,visits_in_box\n"
    (folder / "porto/nodes.csv").write_text(header + nodes, encoding="utf-8")
    rows = "".join(f"{a},{b},1.0\n" for a, b in edges)
    (folder / "porto/edges.csv").write_text(
        "source,target,length_m\n" + rows, encoding="utf-8"
    )
    return folder


NODES = "0,41.1,-8.5,7,1\n1,41.2,-8.6,2,1\n2,41.3,-8.7,1,2\n"


def test_a_city_is_a_simple_directed_graph(tmp_path):
    edges = [(1, 2), (0, 1), (0, 1), (2, 2), (2, 0)]
    city = datasets.load_roads(write_city(tmp_path, edges, nodes=NODES), "porto")
    assert city.edges.tolist() == [[0, 1], [1, 2], [2, 0]]
    assert city.real
    assert len(city) == 3
    assert city.hops.tolist() == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    assert city.diameter == 2


def test_hops_are_counted_from_the_guess(tmp_path):
    edges = [(0, 1), (1, 2), (2, 0)]
    city = datasets.load_roads(write_city(tmp_path, edges, nodes=NODES), "porto")
    assert city.guess_masses(1, "all").tolist() == pytest.approx([0.9, 0.3, 0.8])
    assert city.guess_masses(1).tolist() == pytest.approx([0.5, 0.75, 0.75])
    assert city.guess_masses(2).tolist() == pytest.approx([1, 1, 1])


def test_the_prior_says_which_reports_count(tmp_path):
    city = datasets.load_roads(write_city(tmp_path, [(0, 1)], nodes=NODES), "porto")
    assert city.prior("all").pmf.tolist() == pytest.approx([0.7, 0.2, 0.1])
    assert city.prior().pmf.tolist() == [0.25, 0.25, 0.5]
    with pytest.raises(ValueError, match="visits"):
        city.prior("some")


def test_a_node_out_of_reach_is_one_sentence(tmp_path):
    city = datasets.load_roads(write_city(tmp_path, [(0, 1)], nodes=NODES), "porto")
    with pytest.raises(DataError, match="strongly connected"):
        _ = city.hops


def test_nodes_out_of_order_are_refused(tmp_path):
    nodes = "1,41.1,-8.5,7,1\n0,41.2,-8.6,2,1\n"
    with pytest.raises(DataError, match="must number its nodes"):
        datasets.load_roads(write_city(tmp_path, [(0, 1)], nodes=nodes), "porto")


def test_another_city_is_refused(tmp_path):
    for load in (datasets.load_roads, datasets.load_trips, datasets.load_stays):
        with pytest.raises(ValueError, match="city"):
            load(tmp_path, "rome")


def test_the_grid_has_the_distance_of_its_streets():
    grid = datasets.grid_graph(5, 10)
    row, column = np.divmod(np.arange(50), 10)
    blocks = abs(row[:, None] - row) + abs(column[:, None] - column)
    assert (grid.hops == blocks).all()
    assert grid.prior().collision == pytest.approx(0.02)
    assert not grid.real


def test_the_braced_grid_has_fifty_nodes_and_diameter_eleven():
    graph = datasets.braced_grid()
    assert (len(graph), len(graph.edges), graph.diameter) == (50, 206, 11)
    assert (graph.hops == graph.hops.T).all()
    assert (graph.hops[42] == 1).sum() == 4
    assert np.flatnonzero(graph.hops[49] == 1).tolist() == [8, 9, 15, 16]


def test_the_stand_in_for_a_city_is_as_uneven_as_published():
    city = datasets.city_stand_in(rows=28, columns=109, rng=np.random.default_rng(1))
    prior = city.prior()
    assert len(city) == 3052
    assert prior.collision == pytest.approx(0.03, abs=5e-4)
    assert prior.pmf.max() == pytest.approx(0.10, abs=5e-4)
    assert city.visits_inside.min() > 0
    other = datasets.city_stand_in(rows=28, columns=109, rng=np.random.default_rng(2))
    assert sorted(other.visits_all) == sorted(city.visits_all)
    assert (other.visits_all != city.visits_all).any()


@cache
def real_city(name: str) -> datasets.RoadNetwork:
    assert HERE is not None
    return datasets.load_roads(Path(HERE), name)


class TestRealData:
    pytestmark = needs_data

    @pytest.mark.parametrize(
        ("name", "nodes", "rows", "parallel", "loops", "diameter"),
        [("porto", 3052, 6324, 48, 11, 88), ("geolife", 5356, 12109, 98, 8, 92)],
    )
    @pytest.mark.slow
    def test_the_authors_graphs(self, name, nodes, rows, parallel, loops, diameter):
        assert HERE is not None
        city = real_city(name)
        listed = datasets.read_columns(
            Path(HERE) / name / "edges.csv", ["source", "target"]
        )
        assert len(listed["source"]) == rows
        assert len(city) == nodes
        assert len(city.edges) == rows - parallel - loops
        assert city.diameter == diameter

    @pytest.mark.parametrize(
        ("name", "visits", "collision", "guesses"),
        [
            ("porto", "all", 0.034, {0: 0.093, 9: 0.291, 26: 0.863, 44: 0.999}),
            ("porto", "inside", 0.003, {0: 0.022, 9: 0.237, 26: 0.842, 44: 1.0}),
            ("geolife", "all", 0.054, {0: 0.154, 9: 0.348, 28: 0.717, 46: 0.986}),
            ("geolife", "inside", 0.0015, {0: 0.014, 9: 0.098, 28: 0.755, 46: 0.999}),
        ],
    )
    def test_T_3_3_the_baselines_of_both_counts(self, name, visits, collision, guesses):
        city = real_city(name)
        assert city.prior(visits).collision == pytest.approx(collision, abs=5e-4)
        for eta, best in guesses.items():
            found = city.guess_masses(eta, visits).max()
            assert found == pytest.approx(best, abs=5.5e-4), eta

    def test_trips(self):
        pytest.importorskip("pyarrow")
        assert HERE is not None
        trips = datasets.load_trips(Path(HERE))
        assert (len(trips), int(trips.held_out.sum())) == (1820, 320)
        lengths = [len(walk) for walk in trips.nodes]
        assert (sum(lengths), lengths.count(0)) == (86_135, 3)
        outside = 1 - np.concatenate(trips.inside).mean()
        assert outside == pytest.approx(0.603, abs=5e-4)
        counts = np.bincount(np.concatenate(trips.nodes), minlength=3052)
        assert (counts == real_city("porto").visits_all).all()

    def test_stays(self):
        pytest.importorskip("pyarrow")
        assert HERE is not None
        stays = datasets.load_stays(Path(HERE))
        assert len(stays) == 4189
        assert sum(len(walk) for walk in stays.nodes) == 258_981
        assert len(set(stays.users.tolist())) == 148
        assert min(len(walk) for walk in stays.nodes) >= 2
        assert all((walk[1:] != walk[:-1]).all() for walk in stays.nodes)
