"""requirements.lock names each file that may be installed by its digest, in the versions that the constraints pin."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
ENTRY = re.compile(r"[a-z0-9-]+==\S+ \\\n(    --hash=sha256:[0-9a-f]{64} \\\n)*    --hash=sha256:[0-9a-f]{64}\n")


def pins(text: str) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


def of_group(name: str) -> Iterator[Requirement]:
    """Yield what a dependency group names, and the groups that it includes."""
    for item in PROJECT["dependency-groups"][name]:
        if isinstance(item, str):
            yield Requirement(item)
        else:
            yield from of_group(item["include-group"])


def test_the_lock_pins_each_package_to_the_version_of_the_constraints() -> None:
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert pins(LOCK).items() <= constraints.items(), "make it anew: nox -s lock"


def test_each_locked_package_has_digests_and_no_address() -> None:
    entries = "".join(line for line in LOCK.splitlines(keepends=True) if not line.startswith("#"))
    assert ENTRY.sub("", entries) == ""
    assert len(pins(LOCK)) == len(ENTRY.findall(entries)) > 0


def test_the_lock_has_what_the_wheel_its_build_and_its_tests_name() -> None:
    wheel = map(Requirement, (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]))
    locked = pins(LOCK)
    lacking = [
        str(wanted)
        for wanted in (*wheel, *of_group("package"))
        if not wanted.specifier.contains(locked.get(canonicalize_name(wanted.name), "0"))
    ]
    assert lacking == []
