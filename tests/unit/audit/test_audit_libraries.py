"""The script that makes the tables of other libraries in the documentation."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from undertow.audit.subject import CallableSubject


@pytest.fixture(scope="module")
def script():
    place = Path(__file__).parents[3] / "benchmarks" / "audit_libraries.py"
    spec = importlib.util.spec_from_file_location("audit_libraries", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def libraries(script, monkeypatch):
    """One library with a mechanism that keeps 1, and one that is not installed."""

    def there():
        subject = CallableSubject(
            lambda values, rng: values + rng.laplace(size=len(values)),
            [0.0, 1.0],
            vectorised=True,
        )
        yield script.Case("`Noise`", subject, 1.0)
        yield script.Case('`Noise`, `score="bits"`', subject, 1.0, "bits")

    def missing():
        raise ImportError("No module named 'gone'")
        yield

    found = (
        script.Library("ours", ("numpy",), there),
        script.Library("gone", ("gone",), missing),
    )
    monkeypatch.setattr(script, "LIBRARIES", found)


@pytest.mark.usefixtures("libraries")
def test_each_mechanism_is_audited_at_what_it_states_and_beside_it(script, capsys):
    assert script.main(["ours", "--trials", "20000", "--json"]) == 0
    (ours,) = json.loads(capsys.readouterr().out)
    assert ours["versions"]["numpy"] == np.__version__
    verdicts = [(round(r["claim"], 4), r["verdict"]) for r in ours["rows"]]
    assert verdicts == [
        (1.0, "not refuted"),
        (0.7692, "violated"),
        (2.0, "not refuted"),
        (1.0, "violated"),
    ]


@pytest.mark.usefixtures("libraries")
def test_a_missing_library_is_named_beside_the_tables_of_the_others(script, capsys):
    assert script.main(["--trials", "20000"]) == 1
    shown = capsys.readouterr().out
    assert "gone cannot be audited here: No module named 'gone'." in shown
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 4
    assert rows[2].startswith("| `Noise` | 1, stated | ")
    assert rows[3].startswith("| | 0.76923 | ")


def test_an_unknown_library_is_refused(script, capsys):
    with pytest.raises(SystemExit):
        script.main(["other"])
    assert "must be opendp or diffprivlib, got 'other'" in capsys.readouterr().err
