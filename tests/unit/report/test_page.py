"""The frame of a page: colours that claim nothing, tables that fit."""

from __future__ import annotations

import re

from undertow.report.page import html_page


def test_a_claim_that_is_not_refuted_is_not_coloured_as_approved():
    page = html_page("t", ['<p class="verdict">not refuted</p>'])
    rule = re.search(r"\.verdict \{([^}]*)\}", page)
    assert rule is not None
    assert "var(--mark)" in rule[1]
    assert "--good" not in page
    assert ".verdict.bad { border-color: var(--bad); }" in page


def test_tables_are_set_closer_on_a_narrow_screen():
    page = html_page("t", [])
    narrow = page.partition("(max-width: 34rem)")[2].partition("@media")[0]
    assert "padding-right" in narrow
    assert "font-size" in narrow
