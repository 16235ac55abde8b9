"""A release of visits, and the mistakes after which it finds no rows."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["MISTAKES", "ROWS", "Mistake", "release_file"]

ROWS = [
    (f"p{at}", ["Mitte", "Nord"][at % 2], f"{at % 28 + 1}.3.2026 {at % 24}:05", at % 60)
    for at in range(3000)
]
"""Person, zone, a time that is written in days, and minutes."""

_GOOD = {
    "seen": '{ timestamp = "%d.%m.%Y %H:%M" }',
    "minutes": '"int"',
    "keys": '["Mitte", "Nord"]',
    "where": '"minutes >= 0"',
}


@dataclass(frozen=True)
class Mistake:
    """What a release file says wrongly, and the sentence of a check about it."""

    name: str
    change: dict[str, str]
    words: str
    kinds: tuple[str, ...] = ("csv", "parquet", "postgres")
    right: dict[str, str] = field(default_factory=lambda: dict(_GOOD))

    @property
    def wrong(self) -> dict[str, str]:
        return {**self.right, **self.change}


MISTAKES = (
    Mistake(
        "the times are written in another format",
        {"seen": '{ timestamp = "%Y-%m-%d %H:%M" }'},
        'declare types = { seen = { timestamp = "%d.%m.%Y %H:%M" } }',
    ),
    Mistake(
        "the times are read without a format",
        {"seen": '"timestamp"'},
        'declare types = { seen = { timestamp = "%d.%m.%Y %H:%M" } }',
        ("csv",),
    ),
    Mistake(
        "the keys are in another case",
        {"keys": '["mitte", "nord"]'},
        "3,000 rows have a zone that only differs from a key in case or in blanks",
    ),
    Mistake(
        "the keys have blanks at their ends",
        {"keys": '["Mitte ", "Nord "]'},
        "3,000 rows have a zone that only differs from a key in case or in blanks",
    ),
    Mistake(
        "a column is of another type",
        {"minutes": '"date"', "where": "\"minutes > date('2026-01-01')\""},
        "None of the 3,000 filled cells of 'minutes' holds dates as 2026-01-31",
        ("csv",),
    ),
)


def release_file(said: dict[str, str], table: str, relation: str | None = None) -> str:
    """Return the text of a release file that says this."""
    types = {"seen": said["seen"]}
    if table.endswith(".csv"):
        types["minutes"] = said["minutes"]
    listed = ", ".join(f"{name} = {kind}" for name, kind in types.items())
    place = f'table = "{table}"' + (f'\nrelation = "{relation}"' if relation else "")
    return f"""
[source]
{place}
unit = "person"
time = "seen"
start = "2026-03-01"
types = {{ {listed} }}

[promise]
epsilon = "2"

[bounds]
rows_per_unit = 1

[check]
units_at_least = 1500

[[queries]]
name = "visits"
select = "count"
where = {said["where"]}
by = ["zone"]
keys = {{ zone = {said["keys"]} }}
"""
