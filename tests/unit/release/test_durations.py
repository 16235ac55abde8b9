"""Lengths of time and moments as a release file writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.release.document.time import (
    MICROSECONDS,
    epoch_us,
    in_utc,
    parse_duration,
    read_date,
    read_moment,
    written_duration,
)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1s", timedelta(seconds=1)),
        ("15m", timedelta(minutes=15)),
        ("1h", timedelta(hours=1)),
        ("1d", timedelta(days=1)),
        ("2w", timedelta(weeks=2)),
        ("365d", timedelta(days=365)),
    ],
)
def test_a_length_is_a_number_and_a_unit(text, length):
    assert parse_duration(text) == length // timedelta(microseconds=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "h",
        "0h",
        "-1h",
        "1.5h",
        "1 h",
        "1H",
        "1y",
        "1h ",
        "1h30m",
        "१h",
        "9" * 99,
    ],
)
def test_another_form_is_refused_in_one_sentence(text):
    with pytest.raises(ValueError, match=r"^horizon must be .*, got .*\.$"):
        parse_duration(text, name="horizon")


def test_a_length_that_is_no_text_is_a_wrong_type():
    with pytest.raises(TypeError, match=r"^window must be text .* got int\.$"):
        parse_duration(3600, name="window")


def test_lengths_over_a_hundred_years_are_refused():
    assert parse_duration("36525d") == 36525 * MICROSECONDS["d"]
    with pytest.raises(ValueError, match="at most 100 years"):
        parse_duration("36526d")


@given(st.integers(1, 3000), st.sampled_from(sorted(MICROSECONDS)))
def test_what_is_written_is_read_back(number, unit):
    length = parse_duration(f"{number}{unit}")
    assert parse_duration(written_duration(length)) == length


@pytest.mark.parametrize("length", [0, -1, 1, 1_500_000])
def test_only_whole_seconds_can_be_written(length):
    with pytest.raises(ValueError, match="whole number of seconds"):
        written_duration(length)


@given(st.dates())
def test_every_date_is_read_as_it_is_written(day):
    assert read_date(day.isoformat()) == day


@pytest.mark.parametrize(
    "text",
    ["2026-02-30", "2026-1-1", "20260101", "2026-01-01T00:00", "", "x", "२०26-01-01"],
)
def test_what_is_no_date_is_none(text):
    assert read_date(text) is None


@given(
    st.datetimes(
        datetime(2, 1, 1),
        datetime(9998, 1, 1),
        timezones=st.none()
        | st.integers(-23 * 60, 23 * 60).map(lambda m: timezone(timedelta(minutes=m))),
    )
)
def test_a_moment_is_in_utc_and_has_no_zone(moment):
    found = read_moment(moment.isoformat())
    assert found is not None
    assert found.tzinfo is None
    assert found.replace(tzinfo=UTC) == (
        moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    )


def test_a_date_alone_is_its_midnight_and_z_is_utc():
    assert read_moment("2026-01-31") == datetime(2026, 1, 31)
    assert read_moment("2026-01-31T12:30Z") == datetime(2026, 1, 31, 12, 30)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T25:00",
        "2026-01-31 12",
        "0001-01-01T00:00+23:00",
        "now",
        "2026-W01-1",
        "2026-01-31T12:00:00.1234567",
    ],
)
def test_what_is_no_moment_is_none(text):
    assert read_moment(text) is None


@given(st.datetimes())
def test_epoch_microseconds_lead_back_to_the_moment(moment):
    assert datetime(1970, 1, 1) + timedelta(microseconds=epoch_us(moment)) == moment


def test_the_epoch_of_a_zoned_moment_is_that_of_its_utc():
    zoned = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert in_utc(zoned) == datetime(2026, 1, 1)
    assert epoch_us(zoned) == epoch_us(datetime(2026, 1, 1))
