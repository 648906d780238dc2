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
    """A release whose source distribution carries its tests, or a commit of a repository.

    version       the release; the commit where there is a repository
    source        where its code stands in the distribution, and from where it is imported
    code          the folder in it whose functions are mutated
    tests         what pytest is given
    repository    the owner and the name on GitHub, of a package whose source distribution has no tests
    """

    name: str
    version: str
    source: str
    code: str
    tests: str
    repository: str = ""

    @property
    def release(self) -> str:
        return f"{self.name}-{self.version}"


PACKAGES = (
    Package("sqlparse", "0.6.1", ".", "sqlparse", "tests"),
    Package("semver", "d8813b67a2ec", "src", "semver", "tests", "python-semver/python-semver"),
    Package("jmespath", "2ad18b0e51ef", ".", "jmespath", "tests", "jmespath/jmespath.py"),
    Package("voluptuous", "0.16.0", ".", "voluptuous", "voluptuous/tests/tests.py"),
    Package("marshmallow", "4.4.0", "src", "marshmallow", "tests"),
    Package("pyflakes", "59ec4593efd4", ".", "pyflakes", "pyflakes/test", "PyCQA/pyflakes"),
    Package("h11", "62c5068c9715", ".", "h11", "h11/tests", "python-hyper/h11"),
    Package("mistune", "b5dd9949baf3", "src", "mistune", "tests", "lepture/mistune"),
    Package("slugify", "7b6d5d96c199", ".", "slugify", "test.py", "un33k/python-slugify"),
    Package("parse", "738447715c76", ".", ".", "tests", "r1chardj0n3s/parse"),
    Package("schema", "310a1239b62f", ".", "schema", "test_schema.py", "keleshev/schema"),
    Package("xmltodict", "8d7f1fdb2251", ".", ".", "tests", "martinblech/xmltodict"),
)
"""Packages on which `bench code` was not developed."""

LONG = ()
"""Packages whose tests take five seconds and more, for times."""


def fetch(package: Package, to: Path) -> Path:
    """Its source distribution, as a git repository of a single commit."""
    to.mkdir(parents=True, exist_ok=True)
    root = to / package.release
    if (root / ".git" / "HEAD").exists():  # a session may have been ended while a file of it was edited
        git(root, "checkout", "-q", "-f", ".")
        return root
    shutil.rmtree(root, ignore_errors=True)
    if package.repository:
        git(to, "clone", "-q", f"https://github.com/{package.repository}", str(root))
        git(root, "checkout", "-q", package.version)
        return root
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
