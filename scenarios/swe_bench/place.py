"""Find the instances: files in the form of SWE-bench's data set, and beside them the repository of each."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bench.common.errors import PackError, Unavailable
from bench.common.files import text_of
from bench.common.wording import first_violation

SETTING = "BENCH_SWE_BENCH"
ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")
MOST_BYTES = 2**30
"""Of a file of instances; the whole data set has some 40 MB."""


def _listed(value: Any) -> Any:
    """Return a list of tests. The data set has the list as a JSON text; copies of it have the list itself."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except RecursionError as error:
        raise ValueError("is nested too deep") from error


Tests = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Text = Annotated[str, Field(min_length=1)]


class Instance(BaseModel):
    """The fields of the data set that are read; it has more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    instance_id: Text
    repo: Text
    base_commit: Text
    version: str = ""
    problem_statement: Text
    patch: Text
    test_patch: Text
    fail_to_pass: Tests = Field(alias="FAIL_TO_PASS", min_length=1)
    pass_to_pass: Tests = Field((), alias="PASS_TO_PASS")


def instances_in(pack: Path) -> Mapping[str, tuple[Instance, Path]]:
    """Return each instance and its repository by name, if the repository exists, in BENCH_SWE_BENCH or `instances/` of the
    pack.

    Raises Unavailable where there is none, or git is not installed; PackError for a file that cannot be read.
    """
    if shutil.which("git") is None:
        raise Unavailable("it applies patches with git; install git")
    root = Path(os.environ.get(SETTING) or pack / "instances")
    read = _read(root)
    if not read:
        raise Unavailable(f"{root} holds no instance of SWE-bench in a .json or .jsonl file (see {pack / 'README.md'})")
    found = {name: (one, tree) for name, one in read.items() if (tree := _tree(root, one.instance_id))}
    if not found:
        some = next(iter(read.values())).instance_id
        said = f"{root} holds {len(read)} instances and the repository of none"
        raise Unavailable(f"{said}; put that of {some} into {root / some}/ or {root / some}.tar.gz (see {pack / 'README.md'})")
    return found


def _read(root: Path) -> Mapping[str, Instance]:
    found: dict[str, Instance] = {}
    for path in sorted([*root.glob("*.json"), *root.glob("*.jsonl")]):
        stands = path.stat()
        for where, one in _instances(path, stands.st_mtime_ns, stands.st_size):
            name = re.sub(r"[^a-z0-9]+", "_", one.instance_id.lower()).strip("_")
            name = name if name[:1].isalpha() else f"instance_{name}"
            if name in found:
                raise PackError(f"{where}: the instance '{one.instance_id}' stands twice; keep one of them")
            found[name] = one
    return found


@cache
def _instances(path: Path, *_: int) -> tuple[tuple[str, Instance], ...]:
    """Return the instances of a file, which is read again only if its time or size changes."""
    return tuple((where, _instance(where, value)) for where, value in _values(path))


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each instance of a file, and its place: one in each line, all in a list, or a single one."""
    try:
        text = text_of(path, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise PackError(f"{path}: cannot be read: {error}") from error
    if path.suffix == ".jsonl":
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        yield from ((f"{path}, line {number}", _json(line, f"{path}, line {number}")) for number, line in lines)
        return
    value = _json(text, str(path))
    yield from ((f"{path}, instance {at}", one) for at, one in enumerate(value if isinstance(value, list) else [value], 1))


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PackError(f"{where}: is no JSON: {' '.join(str(error).split())}") from error


def _instance(where: str, value: Any) -> Instance:
    try:
        return Instance.model_validate(value)
    except ValidationError as error:
        first = first_violation(error)
        raise PackError(f"{where}: is no instance of SWE-bench: {first.place or 'it'} {first.words}") from error


def _tree(root: Path, instance_id: str) -> Path | None:
    names = [instance_id, *(f"{instance_id}{ending}" for ending in ARCHIVES)]
    return next((path for name in names if Path(name).name == name and (path := root / name).exists()), None)
