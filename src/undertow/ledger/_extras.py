"""Say in one sentence what to install, before anything else is imported."""

from __future__ import annotations

from importlib.util import find_spec

_MISSING = [name for name in ("sqlalchemy", "alembic") if find_spec(name) is None]
if _MISSING:
    raise ImportError(
        f"{' and '.join(_MISSING)} must be installed for a ledger, got no such module; "
        "run pip install 'undertow[ledger]'."
    )
