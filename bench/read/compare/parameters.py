"""The parameters in which two runs differ, as their manifests hold them: config, models, packs, code, packages and machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.common.errors import one_line
from bench.read.render.table import Table
from bench.record.agreement import leaves
from bench.record.manifest import Manifest

OF_A_RUN = {"format", "name", "started", "recordings", "described", "prepared", "probe", "merged", "upgraded_from", "replaces"}
"""Keys of a manifest that say what a run is, and not how it was made."""
LONGEST = 60
ABSENT = "–"

Parameters = Mapping[str, tuple[object, object]]


def parameters_that_differ(a: Manifest, b: Manifest) -> Parameters:
    """Return each parameter in which two runs differ, with its value in each; None where a run has none."""
    before, after = (dict(leaves(run.model_dump(mode="json", exclude=OF_A_RUN))) for run in (a, b))
    pairs = {key: (before.get(key), after.get(key)) for key in (*before, *after)}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def parameters_table(differing: Parameters, a: str, b: str) -> Table:
    """Return a row for each parameter that differs between runs `a` and `b`."""
    rows = tuple((key, *map(_text, pair)) for key, pair in differing.items())
    return Table("parameters", f"Parameters in which {b} differs from {a}", ("Parameter", a, b), rows)


def _text(value: object) -> str:
    if value is None:
        return ABSENT
    return one_line(value if isinstance(value, str) else json.dumps(value), LONGEST) or '""'
