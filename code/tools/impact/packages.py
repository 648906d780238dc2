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

    version       the release
    code          the folder of the code that is edited
    tests         what pytest is given
    source        the folder from which the code is imported
    """

    name: str
    version: str
    code: str
    tests: str = "tests"
    source: str = "."

    @property
    def release(self) -> str:
        return f"{self.name}-{self.version}"


PACKAGES = (
    Package("elementpath", "5.1.4", "elementpath"),
    Package("attrs", "26.1.0", "attr", source="src"),
    Package("click", "8.5.1", "click", source="src"),
    Package("parso", "0.8.7", "parso", "test"),
    Package("h2", "4.4.1", "h2", source="src"),
    Package("pyrsistent", "0.20.0", "pyrsistent"),
    Package("oauthlib", "4.0.1", "oauthlib"),
    Package("markdown", "3.11.3", "markdown"),
    Package("jinja2", "3.1.6", "jinja2", source="src"),
    Package("sqlparse", "0.6.1", "sqlparse"),
)
"""The packages whose edits are judged, the longest suites first."""


def fetch(package: Package, to: Path) -> Path:
    """Its source distribution, as a git repository of a single commit."""
    to.mkdir(parents=True, exist_ok=True)
    root = to / package.release
    if (root / ".git" / "HEAD").exists():  # a session may have been ended while a file of it was edited
        git(root, "checkout", "-q", "-f", ".")
        return root
    shutil.rmtree(root, ignore_errors=True)
    if not (found := [*to.glob(f"{package.release}.tar.gz")]):
        asked = ("--no-deps", "--no-binary", package.name, "-d", str(to), f"{package.name}=={package.version}")
        subprocess.run((sys.executable, "-m", "pip", "download", "-q", *asked), check=True)
        found = [*to.glob(f"{package.release}.tar.gz")]
    with tarfile.open(found[0]) as archive:
        archive.extractall(to, filter="data")
    by = {f"GIT_{who}_{what}": "impact@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", package.release)):
        git(root, *words, variables=by)
    return root


def git(root: Path, *words: str, variables: Mapping[str, str] | None = None) -> None:
    subprocess.run(("git", "-C", str(root), *words), check=True, env={**os.environ, **(variables or {})})
