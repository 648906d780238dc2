"""Whether a run can continue in a folder: only if all that determines its trials agrees."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path

from bench.common.errors import ResultsError, one_line
from bench.record.manifest import Manifest
from bench.record.reading import read_grades

CODE = "version of the code of bench"
NamedParts = Callable[[Manifest], Mapping[str, object]]
NAMED: Mapping[str, NamedParts] = {
    "version of the architecture": lambda manifest: manifest.architectures,
    "version of the code of": lambda manifest: manifest.parts,
    "version of what is asked by the scenario": lambda manifest: _of_packs(manifest, "asked"),
    "version of the reference of the scenario": lambda manifest: _of_packs(manifest, "reference"),
    "version of the settings of the model": lambda manifest: {name: model.shown for name, model in manifest.models.items()},
    "version of the package": lambda manifest: manifest.packages,
}


def refuse_other(there: Manifest, now: Manifest, folder: Path) -> None:
    """Raise ResultsError, which names the difference, if the folder holds another experiment, or trials of other code."""
    for what, before, after in differences(there, now, {"repetitions"}):
        difference, advice = "", f"give --name for a folder of its own (with --cache-from {folder.name} nothing is asked twice)"
        if what == "config":
            difference = ": {} was {} and is {}".format(*key_that_differs(before, after))
        elif what == CODE:
            difference = f": it began under {there.code.text}, and this is {now.code.text}"
            advice = f"go on under the version under which it began, or {advice}"
        raise ResultsError(
            f"{folder}: was recorded with another {what}{difference}; {advice}, or --set-aside to rename the old one"
        )
    if there.portion != now.portion:
        was, is_ = (manifest.portion or "all of them" for manifest in (there, now))
        raise ResultsError(f"{folder}: is of another portion of the trials: it was {was} and is {is_}; give --name")
    grading = {name: pack.graded_by for name, pack in there.scenarios.items()}
    grading |= {regrade.scenario: regrade.graded_by for regrade in read_grades(folder).history}
    for name, pack in now.scenarios.items():
        if grading.get(name) != pack.graded_by:
            problem = f"{folder}: was graded by another version of the grader of '{name}'"
            raise ResultsError(f"{problem}; make its grades anew by `bench regrade {folder.name}`, then go on")


def differences(
    there: Manifest, now: Manifest, free: Set[str], compared: Mapping[str, NamedParts] = NAMED, *, all_names: bool = True
) -> Iterator[tuple[str, object, object]]:
    """Yield (what, there, now) for all that differs. Config keys in `free` are not compared; without `all_names`, nor are names
    that only one of the two has."""
    before, after = (manifest.config.model_dump(mode="json", exclude=set(free)) for manifest in (there, now))
    pairs: list[tuple[str, object, object]] = [
        ("config", before, after),
        (CODE, there.code.digest, now.code.digest),
        ("word on missing guards (--unguarded)", there.unguarded, now.unguarded),
    ]
    for what, named in compared.items():
        old, new = named(there), named(now)
        names = old.keys() | new.keys() if all_names else old.keys() & new.keys()
        pairs += [(f"{what} '{name}'", old.get(name), new.get(name)) for name in sorted(names)]
    return (pair for pair in pairs if pair[1] != pair[2])


def key_that_differs(there: object, now: object) -> tuple[str, str, str]:
    """Return the first key in which two configs differ, with its value in each."""
    before, after = dict(leaves(there)), dict(leaves(now))
    key = next(key for key in (*before, *after) if before.get(key) != after.get(key))
    was, is_ = (
        "not given" if value is None else one_line(json.dumps(value), 60) for value in (before.get(key), after.get(key))
    )
    return key, was, is_


def leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield each dotted key of a table with its value; lists are values."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _of_packs(manifest: Manifest, key: str) -> dict[str, object]:
    return {name: getattr(pack, key) for name, pack in manifest.scenarios.items()}
