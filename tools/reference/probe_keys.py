"""Every key of a `probe.toml`, as Markdown, from the pydantic models that read it."""

from __future__ import annotations

import inspect

from reference.config_keys import Described, Table, section, tables_below

from bench.probe.run.probe_file import ProbeFile


def page() -> str:
    """Return a section for each table, with a row for each key."""
    return "\n\n".join(map(section, tables()))


def tables() -> list[Table]:
    """Return the file itself and every table in it."""
    schema = ProbeFile.model_json_schema(schema_generator=Described)
    return [Table("The file itself", inspect.getdoc(ProbeFile) or "", schema), *tables_below(schema, "", schema["$defs"])]
