"""Whether a run may go on in a folder: only where everything that determines its trials is what it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.errors import ResultsError
from bench.experiment.reading import read_grades


def refuse_other(there: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """A folder holds the trials of one experiment by one code: name what differs."""
    for what, one, two in _what_must_agree(there, now):
        if one != two:
            said = f"{folder}: was recorded with another {what}"
            own = f"give --name for a folder of its own (with --cache-from {folder.name} nothing is asked twice)"
            raise ResultsError(f"{said}; {own}, or --set-aside to rename the old one")
    grading = {name: pack.get("graded_by") for name, pack in there.get("scenarios", {}).items()}
    grading |= {regrade.scenario: regrade.graded_by for regrade in read_grades(folder).history}
    for name, pack in now.get("scenarios", {}).items():
        if grading.get(name) != pack.get("graded_by"):
            said = f"{folder}: was graded by another version of the grader of '{name}'"
            raise ResultsError(f"{said}; make its grades anew by `bench regrade {folder.name}`, then go on")


def _what_must_agree(there: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """(what, there, now). More repetitions of the same experiment belong into the same folder."""
    one, two = (
        {key: value for key, value in _plain(manifest.get("config", {})).items() if key != "repetitions"}
        for manifest in (there, now)
    )
    yield "config", one, two
    yield "version of the code of bench", there.get("code", {}).get("digest"), now.get("code", {}).get("digest")
    yield "word on missing guards (--unguarded)", there.get("unguarded"), now.get("unguarded")
    for what, key, part in (
        ("version of the architecture", "architectures", lambda value: value),
        ("version of the code of", "parts", lambda value: value),
        ("version of what is asked by the scenario", "scenarios", lambda pack: pack.get("asked")),
        ("version of the reference of the scenario", "scenarios", lambda pack: pack.get("reference")),
        ("version of the settings of the model", "models", _plain),
        ("version of the package", "packages", lambda version: version),
    ):
        for name in sorted({*there.get(key, {}), *now.get(key, {})}):
            one, two = (manifest.get(key, {}).get(name) for manifest in (there, now))
            yield f"{what} '{name}'", one and part(one), two and part(two)


def _plain(value: object) -> Any:
    return json.loads(json.dumps(value, default=str))
