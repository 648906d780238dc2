"""`bench new scenario --from FILE`: a pack whose tasks are the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.cli.authoring.rows import ColumnKind, SourceRows, read_rows
from bench.cli.authoring.scaffold import check_command, copy_template, make_pack, render_templates

TEMPLATE = Path(__file__).parent / "templates" / "rows"
TYPES: dict[ColumnKind, str] = {"text": "str", "integer": "int", "number": "float", "boolean": "bool"}
COMPARED: dict[ColumnKind, str] = {
    "word": "exactly",
    "text": "without regard to case and space",
    "integer": "exactly",
    "number": "up to the ninth digit",
    "boolean": "exactly",
}


def pack_of_table(name: str, into: Path, file: Path) -> Sequence[str]:
    """Make a pack in `into/name` from a table.

    Args:
        file: The table, as CSV or as JSON lines. Columns whose names begin with "expected" hold the answer.

    Returns:
        A description of the pack, line by line.

    Raises:
        PackError: The table cannot be read, or there is such a pack already.
    """
    rows = read_rows(file)
    folder = pack_of_rows(name, into, rows, file.name)
    fields = ", ".join(f"{field.name} ({f'{len(field.words)} words' if field.words else field.kind})" for field in rows.fields)
    return (
        f"{folder} has {len(rows.rows)} tasks; the answer: {fields}",
        f"    the most common answer is right in {rows.most_common} of them, without reading",
        f"    say in {folder / 'prompts' / 'answer.md'} what is asked, and see: {check_command(folder)}",
    )


def pack_of_rows(name: str, into: Path, rows: SourceRows, source: str) -> Path:
    """Make a pack in `into/name` whose instances are the rows. Raises PackError as `new_scenario` does.

    source   the name of the file of the rows
    """

    def write(folder: Path) -> None:
        """Write the files of the pack into `folder`."""
        copy_template(TEMPLATE, folder)
        values = {
            "name": name,
            "source": source,
            "rows": rows.rows,
            "fields": rows.fields,
            "inputs": list(rows.rows[0].input),
            "most_common": rows.most_common,
            "types": TYPES,
            "compared": COMPARED,
        }
        render_templates(folder, values)
        lines = (f"{json.dumps(asdict(row), ensure_ascii=False)}\n" for row in rows.rows)
        (folder / "rows.jsonl").write_text("".join(lines), encoding="utf-8")

    return make_pack(name, into, write)
