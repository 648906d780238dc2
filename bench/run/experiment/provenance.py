"""The origin of a result: the code, the packages and the machine that produced it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

from bench.record.origin import CodeVersion, Machine
from bench.run.experiment.code import PACKAGE, our_codebase

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


def code_version() -> CodeVersion:
    """Return the version of the running code."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "bench", "scenarios", "studies", "configs", "pyproject.toml")
    dirty = bool(changed) if commit else None
    return CodeVersion(
        version=metadata.version(DISTRIBUTION), commit=commit, dirty=dirty, digest=our_codebase().digest, digest_of="syntax"
    )


def machine() -> Machine:
    """Return the description of the machine that this process runs on."""
    return Machine(system=platform.system(), release=platform.release(), machine=platform.machine(), processors=os.cpu_count())


def now() -> str:
    """Return the time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(*words: str) -> str | None:
    """Return the output of a git command in the folder of our code; None if it fails."""
    try:
        process = subprocess.run(["git", *words], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
