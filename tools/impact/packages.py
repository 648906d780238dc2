"""The open packages whose own tests are run: each is fetched at run time, and none is committed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """A release whose source distribution carries its tests.

    source    where its code stands in the distribution, and from where it is imported
    code      the folder in it whose functions are mutated
    tests     what pytest is given
    """

    name: str
    version: str
    source: str
    code: str
    tests: str

    @property
    def release(self) -> str:
        return f"{self.name}-{self.version}"


PACKAGES = (
    Package("cachetools", "8.0.2", "src", "cachetools", "tests"),
    Package("tabulate", "0.10.0", ".", "tabulate", "test"),
    Package("toolz", "1.2.0", ".", "toolz", "toolz/tests"),
    Package("click", "8.5.1", "src", "click", "tests"),
    Package("humanize", "4.17.0", "src", "humanize", "tests"),
)

RELEASES = (
    (Package("cachetools", "8.0.0", "src", "cachetools", "tests"), "8.0.1"),
    (Package("cachetools", "8.0.1", "src", "cachetools", "tests"), "8.0.2"),
    (Package("toolz", "1.1.0", ".", "toolz", "toolz/tests"), "1.2.0"),
    (Package("humanize", "4.15.0", "src", "humanize", "tests"), "4.16.0"),
    (Package("humanize", "4.16.0", "src", "humanize", "tests"), "4.17.0"),
    (Package("click", "8.5.0", "src", "click", "tests"), "8.5.1"),
)
"""Releases, each with the next, whose hunks are applied to it."""

STRANGERS = (
    Package("sqlparse", "0.5.3", ".", "sqlparse", "tests"),
    Package("mistune", "3.1.3", "src", "mistune", "tests"),
    Package("voluptuous", "0.15.2", ".", "voluptuous", "voluptuous/tests"),
    Package("marshmallow", "4.0.0", "src", "marshmallow", "tests"),
    Package("pyflakes", "3.4.0", ".", "pyflakes", "pyflakes/test"),
    Package("lark", "1.2.2", ".", "lark", "tests/test_parser.py"),
    Package("beautifulsoup4", "4.13.4", ".", "bs4", "bs4/tests"),
    Package("pyasn1", "0.6.1", ".", "pyasn1", "tests"),
    Package("h11", "0.16.0", ".", "h11", "h11/tests"),
    Package("prettytable", "3.16.0", "src", "prettytable", "tests"),
    Package("pyparsing", "3.2.3", ".", "pyparsing", "tests"),
    Package("tinydb", "4.8.2", ".", "tinydb", "tests"),
)
"""Packages on which `bench code` was not developed, for edits of all kinds. A user records each only in the usual order."""


def fetch(package: Package, to: Path) -> Path:
    """Its source distribution, as a git repository of a single commit."""
    to.mkdir(parents=True, exist_ok=True)
    root = to / package.release
    if (root / ".git" / "HEAD").exists():  # a session may have been ended while a file of it was edited
        git(root, "checkout", "-q", "-f", ".")
        return root
    shutil.rmtree(root, ignore_errors=True)
    if not (found := [*to.glob(f"{package.release}.tar.gz")]):
        asked = (
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            package.name,
            "-d",
            str(to),
            f"{package.name}=={package.version}",
        )
        subprocess.run((sys.executable, "-m", "pip", *asked), check=True)
        found = [*to.glob(f"{package.release}.tar.gz")]
    with tarfile.open(found[0]) as archive:
        archive.extractall(to, filter="data")
    by = {f"GIT_{who}_{what}": "impact@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", package.release)):
        git(root, *words, variables=by)
    return root


def git(root: Path, *words: str, variables: Mapping[str, str] | None = None) -> None:
    subprocess.run(("git", "-C", str(root), *words), check=True, env={**os.environ, **(variables or {})})
