"""Certificates over trials: what is on the axes."""

from __future__ import annotations

import pytest

from undertow.audit import AuditResult, Claim
from undertow.plotting import plot_certificates

POINTS = ((100, 0.4), (200, 0.8), (400, 1.1))


def result(claim: Claim) -> AuditResult:
    return AuditResult(
        "code", claim, 1.1, confidence=0.99, trials=400, epsilon_certified=1.1
    )


def test_certificates_are_markers_and_the_claim_is_dashed():
    ax = plot_certificates(result(Claim.pure(1)), POINTS)
    certified, claimed = ax.lines
    assert list(zip(*certified.get_data(), strict=True)) == list(POINTS)
    assert certified.get_marker() == "^"
    assert set(claimed.get_ydata()) == {1.0}
    assert claimed.get_linestyle() == "--"
    assert ax.get_xscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("trials", "privacy parameter ε")


def test_the_claim_is_drawn_at_its_price_for_replacing_a_record():
    claim = Claim.gaussian(1, adjacency="add-remove")
    ax = plot_certificates(result(claim), POINTS)
    assert set(ax.lines[1].get_ydata()) == {2.0}
    assert ax.get_ylabel().endswith("μ")


def test_an_axes_and_a_style_are_taken_and_no_points_are_refused():
    ax = plot_certificates(result(Claim.pure(1)), POINTS)
    assert plot_certificates(result(Claim.pure(1)), POINTS, ax=ax, marker="o") is ax
    assert ax.lines[2].get_marker() == "o"
    with pytest.raises(ValueError, match="at least one"):
        plot_certificates(result(Claim.pure(1)), ())
