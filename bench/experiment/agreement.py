"""Whether a run may go on in a folder: only where everything that determines its trials is what it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.errors import ResultsError, one_line
from bench.experiment.manifest import Manifest
from bench.experiment.reading import read_grades


def refuse_other(there: Manifest, now: Manifest, folder: Path) -> None:
    """A folder holds the trials of one experiment by one code: name what differs."""
    for what, one, two in _what_must_agree(there, now):
        if one != two:
            said = f"{folder}: was recorded with another {what}{_key_told(one, two) if what == 'config' else ''}"
            own = f"give --name for a folder of its own (with --cache-from {folder.name} nothing is asked twice)"
            raise ResultsError(f"{said}; {own}, or --set-aside to rename the old one")
    grading = {name: pack.graded_by for name, pack in there.scenarios.items()}
    grading |= {regrade.scenario: regrade.graded_by for regrade in read_grades(folder).history}
    for name, pack in now.scenarios.items():
        if grading.get(name) != pack.graded_by:
            said = f"{folder}: was graded by another version of the grader of '{name}'"
            raise ResultsError(f"{said}; make its grades anew by `bench regrade {folder.name}`, then go on")


def _what_must_agree(there: Manifest, now: Manifest) -> Iterator[tuple[str, object, object]]:
    """(what, there, now). More repetitions of the same experiment belong into the same folder."""
    one, two = (manifest.config.model_dump(mode="json", exclude={"repetitions"}) for manifest in (there, now))
    yield "config", one, two
    yield "version of the code of bench", there.code.digest, now.code.digest
    yield "word on missing guards (--unguarded)", there.unguarded, now.unguarded
    for what, named in (
        ("version of the architecture", lambda manifest: manifest.architectures),
        ("version of the code of", lambda manifest: manifest.parts),
        ("version of what is asked by the scenario", lambda manifest: _of_packs(manifest, "asked")),
        ("version of the reference of the scenario", lambda manifest: _of_packs(manifest, "reference")),
        ("version of the settings of the model", lambda manifest: {name: one.shown for name, one in manifest.models.items()}),
        ("version of the package", lambda manifest: manifest.packages),
    ):
        before, after = named(there), named(now)
        for name in sorted({*before, *after}):
            yield f"{what} '{name}'", before.get(name), after.get(name)


def _key_told(there: object, now: object) -> str:
    """Say of the first key in which two configs differ what it was and what it is."""
    before, after = dict(_leaves(there)), dict(_leaves(now))
    key = next(key for key in (*before, *after) if before.get(key) != after.get(key))
    was, is_ = (
        "not given" if value is None else one_line(json.dumps(value), 60) for value in (before.get(key), after.get(key))
    )
    return f": {key} was {was} and is {is_}"


def _leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield each dotted key of a config with its value; lists are values."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _of_packs(manifest: Manifest, key: str) -> dict[str, object]:
    return {name: getattr(pack, key) for name, pack in manifest.scenarios.items()}
