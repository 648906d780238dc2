"""The checkout stays small: git holds what people wrote and what was recorded, and a nox session makes the rest."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_BYTES = 22_000_000


def test_the_files_that_git_holds_are_no_more_than_twenty_two_megabytes() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    sizes = {name: (ROOT / name).lstat().st_size for name in listed.split("\0")[:-1] if (ROOT / name).exists()}
    folders = Counter[str]()
    for name, size in sizes.items():
        folders[name.split("/")[0]] += size
    total = sum(sizes.values())
    assert total <= MAX_BYTES, f"{total:,} bytes: {folders.most_common(6)}; make it with `nox -s reports` in the place of git"
