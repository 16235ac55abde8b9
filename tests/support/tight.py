"""Mechanisms that keep their claim exactly and no better one, one for each output type.

On the inputs 0 and 1 each of them attains its claim by some event, so that an audit
that is wrong more often than it says accuses them.
"""

from __future__ import annotations

import json
import math

__all__ = ["TIGHT"]

KEEP = math.e / (math.e + 1.0)


def truth_value(bit, rng):
    return bool(bit ^ (rng.random() >= KEEP))


def whole_number(count, rng):
    first, second = rng.geometric(1.0 - math.exp(-1.0), size=2)
    return int(count + first - second)


def real_number(count, rng):
    return float(count + round(rng.laplace() * 2.0**20) / 2.0**20)


def text(value, rng):
    names = ["bike", "bus", "car", "train"]
    if rng.random() < math.e / (math.e + 3.0):
        return names[value]
    return [name for name in names if name != names[value]][rng.integers(3)]


def json_text(value, rng):
    return json.dumps({"answer": int(value ^ (rng.random() >= KEEP))})


def vector_of_bits(value, rng):
    draws = rng.random(4)
    limits = [0.5 if k == value else 1.0 / (math.e + 1.0) for k in range(4)]
    return [int(u < limit) for u, limit in zip(draws, limits, strict=True)]


def vector_of_numbers(value, rng):
    noise = [round(part * 2.0**20) / 2.0**20 for part in rng.laplace(scale=3.0, size=3)]
    return [value + part for part in noise]


def labels(value, rng):
    told = int(value ^ (rng.random() >= KEEP))
    return ("north", "south")[told], ("left", "right")[int(rng.integers(2))]


def dictionary(value, rng):
    told = value ^ (rng.random() >= KEEP)
    return {"yes": float(told), "all": 1.0}


def maybe_nothing(value, rng):
    return None if value ^ (rng.random() >= KEEP) else 3.5


def mixed_types(value, rng):
    return "many" if value ^ (rng.random() >= KEEP) else 0


def any_length(value, rng):
    return [1.0] * (2 - int(value ^ (rng.random() >= KEEP)))


def fails(value, rng):
    if value ^ (rng.random() >= KEEP):
        raise ValueError("nobody there")
    return 1.0


TIGHT = (
    truth_value,
    whole_number,
    real_number,
    text,
    json_text,
    vector_of_bits,
    vector_of_numbers,
    labels,
    dictionary,
    maybe_nothing,
    mixed_types,
    any_length,
    fails,
)
"""All keep a pure claim of 1; the last five return what not every audit reads."""
