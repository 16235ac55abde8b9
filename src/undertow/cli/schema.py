"""`undertow schema`: the JSON Schema of the documents the command reads."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from undertow.cli._output import guarded, print_json
from undertow.composition import plan_schema
from undertow.errors import PlanError


def _release_schema() -> dict[str, Any]:
    # Imported on request: the release file is described by pydantic.
    from undertow.release.document.release_document import release_schema

    return release_schema()


_SCHEMAS = {"plan": plan_schema, "release": _release_schema}


def schema(
    document: Annotated[
        str, typer.Argument(metavar="plan|release", show_default=False)
    ],
) -> None:
    """Print the JSON Schema of a document kind.

    Example: [bold]undertow schema plan > plan.schema.json[/bold]
    """
    with guarded():
        if document not in _SCHEMAS:
            known = ", ".join(_SCHEMAS)
            raise PlanError(f"document must be one of {known}, got {document!r}.")
        print_json(_SCHEMAS[document]())
