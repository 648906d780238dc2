"""A test can depend on code that it does not run in many ways. An edit that changes its result shows, whatever the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from repositories import git, write
from sessions import session
from traps import BESIDE, LIB, TRAPS


@pytest.mark.parametrize("name", TRAPS)
def test_an_edit_shows_in_the_tests_that_rely_on(name: str, tmp_path: Path) -> None:
    files, fails, edit = TRAPS[name]
    root = tmp_path / "r"
    root.mkdir()
    git(root, "init", "-q")
    write(root, {"lib.py": LIB} | BESIDE | files)
    before = session(root)
    assert before.ran and {*before.ran.values()} == {"passed"}, before.printed
    write(root, edit)
    after = session(root)
    assert [test for test, outcome in after.table.items() if outcome != "passed"] == fails.split(), after.printed
