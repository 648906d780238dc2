"""Compare the manifest of a run's folder with the present experiment. The run can continue there only if all that determines
its trials is equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from bench.common.errors import ResultsError, one_line
from bench.common.registry import is_path
from bench.record.manifest import Manifest
from bench.record.origin import names_package
from bench.record.reading import read_grades

CODE, PACKAGE = "version of the code of bench", "version of the package"
ARCHITECTURE, PART = "version of the architecture", "version of the code of"
NamedParts = Callable[[Manifest], Mapping[str, object]]
"""A function from a manifest to its parts of one kind, by name."""
PARTS: Mapping[str, NamedParts] = {
    ARCHITECTURE: lambda manifest: manifest.architectures,
    PART: lambda manifest: manifest.parts,
    "version of what is asked by the scenario": lambda manifest: _of_packs(manifest, "asked"),
    "version of the reference of the scenario": lambda manifest: _of_packs(manifest, "reference"),
    "version of the settings of the model": lambda manifest: {name: model.shown for name, model in manifest.models.items()},
    PACKAGE: lambda manifest: manifest.packages,
}


@dataclass(frozen=True)
class ManifestDifference:
    """A difference between two manifests: the values `there`, in the run's folder, and `now`. `name` is "" if a manifest has
    only one entry of the kind."""

    kind: str
    name: str
    there: object
    now: object

    @property
    def what(self) -> str:
        """The difference in words."""
        return f"{self.kind} '{self.name}'" if self.name else self.kind


class RecordedByOtherCode(ResultsError):
    """The folder holds the same experiment, recorded by other code of ours or with other packages.

    what   the difference in words
    """

    def __init__(self, folder: Path, what: str, advice: str):
        super().__init__(f"{folder}: was recorded with another {what}; {advice}")
        self.what = f"another {what}"


def refuse_other(there: Manifest, now: Manifest, folder: Path) -> None:
    """Raise an error if the present experiment cannot continue in a folder.

    Raises:
        RecordedByOtherCode: The experiment is the same, and only our code or packages differ.
        ResultsError: The folder holds another experiment, or trials of other code that is not ours.
    """
    there = there.under_last_code
    of_code = list[ManifestDifference]()
    remedy = f"give --name for a folder of its own (with --cache-from {folder.name} nothing is asked twice)"
    remedy += ", or --set-aside to rename the old one"
    for difference in differences(there, now, {"repetitions"}):
        if _is_ours(difference, now):
            of_code.append(difference)
            continue
        change = ": {} was {} and is {}".format(*key_that_differs(difference)) if difference.kind == "config" else ""
        raise ResultsError(f"{folder}: was recorded with another {difference.what}{change}; {remedy}")
    if there.portion != now.portion:
        was, is_ = (manifest.portion or "all of them" for manifest in (there, now))
        raise ResultsError(f"{folder}: is of another portion of the trials: it was {was} and is {is_}; give --name")
    grading = {name: pack.graded_by for name, pack in there.scenarios.items()}
    grading |= {regrade.scenario: regrade.graded_by for regrade in read_grades(folder).history}
    for name, pack in now.scenarios.items():
        if grading.get(name) != pack.graded_by:
            problem = f"{folder}: was graded by another version of the grader of '{name}'"
            raise ResultsError(f"{problem}; make its grades anew by `bench more regrade {folder.name}`, then go on")
    if of_code:
        what = ", another ".join(map(_with_versions, of_code))
        versions = f"it was recorded under {there.code.text}, and this is {now.code.text}"
        raise RecordedByOtherCode(folder, f"{what}: {versions}", f"go on under the version that recorded it, or {remedy}")


def _is_ours(difference: ManifestDifference, now: Manifest) -> bool:
    """Whether a difference concerns our code or an installed package, and not a part that the user tries."""
    if difference.kind == PACKAGE:
        return difference.name not in {name for entry in now.config.architecture.values() for name in entry.packages}
    if difference.kind not in (ARCHITECTURE, PART):
        return difference.kind == CODE
    if any(names_package(str(digest)) for digest in (difference.there, difference.now)):
        return False
    entry = now.config.architecture.get(difference.name) if difference.kind == ARCHITECTURE else None
    return not (entry and entry.command) and not is_path(entry.base if entry else difference.name)


def _with_versions(difference: ManifestDifference) -> str:
    """Return a difference in words. The difference of a package has both versions."""
    versions = f" ({difference.there or 'none'}, here {difference.now or 'none'})" if difference.kind == PACKAGE else ""
    return f"{difference.what}{versions}"


def differences(
    there: Manifest, now: Manifest, free: Set[str], compared: Mapping[str, NamedParts] = PARTS, *, all_names: bool = True
) -> Iterator[ManifestDifference]:
    """Yield all differences between two manifests.

    Args:
        free: Keys of the config that are not compared.
        compared: Kinds of named parts -> the parts of a manifest.
        all_names: Whether a name that only one of the two has is a difference.
    """
    before, after = (manifest.config.model_dump(mode="json", exclude=set(free)) for manifest in (there, now))
    candidates = [
        ManifestDifference("config", "", before, after),
        ManifestDifference(CODE, "", there.code.digest, now.code.digest),
        ManifestDifference("word on missing guards (--unguarded)", "", there.unguarded, now.unguarded),
    ]
    for kind, named in compared.items():
        old, new = named(there), named(now)
        names = old.keys() | new.keys() if all_names else old.keys() & new.keys()
        candidates += [ManifestDifference(kind, name, old.get(name), new.get(name)) for name in sorted(names)]
    return (difference for difference in candidates if difference.there != difference.now)


def key_that_differs(configs: ManifestDifference) -> tuple[str, str, str]:
    """Return the first key in which two configs differ, with its value in each."""
    before, after = dict(leaves(configs.there)), dict(leaves(configs.now))
    key = next(key for key in (*before, *after) if before.get(key) != after.get(key))
    was, is_ = (
        "not given" if value is None else one_line(json.dumps(value), 60) for value in (before.get(key), after.get(key))
    )
    return key, was, is_


def leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield (dotted key, value) for each value in nested tables. A list counts as one value."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _of_packs(manifest: Manifest, key: str) -> dict[str, object]:
    """Return scenario -> a field of its pack in the manifest."""
    return {name: getattr(pack, key) for name, pack in manifest.scenarios.items()}
