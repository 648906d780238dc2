"""Write the JSON Schema of each file of a run into docs/results.schema.json: `PYTHONPATH=tools python -m results_schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from bench.record.files import FORMAT, GRADES, MANIFEST, RESPONSES, TEXTS, TRIALS
from bench.record.manifest import Manifest
from bench.record.record import GRADE, RECORD, RESPONSE

PATH = Path(__file__).parents[1] / "docs" / "results.schema.json"
CHAIN = {"type": "string", "pattern": "^[0-9a-f]{20}$", "description": "names this line and all before it"}
TEXT = {
    "type": "object",
    "properties": {"digest": {"type": "string"}, "text": {"type": "string"}},
    "required": ["digest", "text"],
}


def schema() -> dict[str, Any]:
    """Return the schema of each file by its name: of a file of lines, that of a line."""
    lines: dict[str, TypeAdapter[Any]] = {TRIALS: RECORD, RESPONSES: RESPONSE, GRADES: GRADE}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The files of a run of recovery-bench",
        "description": f"Format {FORMAT}, as `format` in {MANIFEST} says. A line may have fields that a later version added.",
        "properties": {
            MANIFEST: Manifest.model_json_schema(mode="serialization", ref_template=_place(MANIFEST)),
            TEXTS: TEXT,
            **{name: _line(name, adapter) for name, adapter in lines.items()},
        },
    }


def _place(name: str) -> str:
    """Where the definitions of a file's schema stand in the whole."""
    return f"#/properties/{name}/$defs/{{model}}"


def _line(name: str, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema of a line: that of its record, and its link."""
    record = adapter.json_schema(mode="serialization", ref_template=_place(name))
    return {"$defs": record.pop("$defs", {}), "allOf": [record], "properties": {"chain": CHAIN}, "required": ["chain"]}


def text() -> str:
    """Return the file's content."""
    return json.dumps(schema(), indent=0, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
