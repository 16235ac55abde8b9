"""Asks for the libraries of the extra before any module of the package needs them.

A missing extra is then one sentence and not a traceback.
"""

from __future__ import annotations

from undertow.release._extras import load

for _name in ("pydantic", "ibis", "pyarrow", "sqlalchemy"):
    load(_name)
