"""The origin of a result: the packages and the machine that produced it, and the time."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

from bench.record.origin import Machine

DISTRIBUTION = "recovery-bench"


@cache
def package_versions() -> Mapping[str, str]:
    """Return the installed versions of Python and of the packages that we require. They are cached."""
    required = metadata.requires(DISTRIBUTION) or []
    names = sorted({_package(line) for line in required if "extra ==" not in line})
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}


def extra_versions(extras: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of the packages in these optional dependencies (extras) of ours."""
    markers = [f'extra == "{extra}"' for extra in extras] + [f"extra == '{extra}'" for extra in extras]
    lines = [line for line in metadata.requires(DISTRIBUTION) or [] if any(marker in line for marker in markers)]
    return {name: metadata.version(name) for name in sorted(map(_package, lines))}


def _package(requirement: str) -> str:
    """Return the name of the package in a requirement such as `numpy>=2; extra == "x"`."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def machine() -> Machine:
    """Return the description of the machine that this process runs on."""
    return Machine(system=platform.system(), release=platform.release(), machine=platform.machine(), processors=os.cpu_count())


def now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
