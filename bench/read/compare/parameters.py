"""The parameters in which two runs differ, as their manifests hold them: config, models, packs, code, packages and machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.common.errors import one_line
from bench.read.render.table import Table
from bench.record.agreement import leaves
from bench.record.manifest import Manifest

NAME_KEYS = {"format", "name", "started", "recordings", "described", "prepared", "probe", "merged", "upgraded_from", "replaces"}
"""Keys of a manifest that do not say how the run was made. They are not compared."""
MAX_VALUE_CHARS = 60
ABSENT = "–"

Parameters = Mapping[str, tuple[object, object]]
"""The name of a parameter -> its value in the first run and in the second."""


def parameters_that_differ(a: Manifest, b: Manifest) -> Parameters:
    """Return each parameter in which two runs differ, with its value in each run; None for a run that does not have it."""
    before, after = (dict(leaves(run.model_dump(mode="json", exclude=NAME_KEYS))) for run in (a, b))
    return {key: (before.get(key), after.get(key)) for key in (*before, *after) if before.get(key) != after.get(key)}


def parameters_table(differing: Parameters, a: str, b: str) -> Table:
    """Return a table with a row for each parameter that differs between runs `a` and `b`."""
    rows = tuple((key, *map(_text, pair)) for key, pair in differing.items())
    return Table("parameters", f"Parameters in which {b} differs from {a}", ("Parameter", a, b), rows)


def _text(value: object) -> str:
    """Return a parameter's value as one short line."""
    if value is None:
        return ABSENT
    return one_line(value if isinstance(value, str) else json.dumps(value), MAX_VALUE_CHARS) or '""'
