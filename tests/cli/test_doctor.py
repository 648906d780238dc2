"""`bench doctor` says which guards there are, and exits with 1 where one is missing."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from bench.cli.commands import doctor
from bench.cli.main import app
from bench.run.sandbox import Guard, Guards


@pytest.mark.parametrize(("in_force", "code"), [(True, 0), (False, 1)])
def test_a_missing_guard_is_named_and_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, in_force: bool, code: int) -> None:
    state = Guards((Guard("limits", True, "of all kinds"), Guard("system calls", in_force, "the reason")))
    monkeypatch.setattr(doctor, "guards", lambda: state)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == code
    assert "system calls" in done.stdout and "the reason" in done.stdout and "python" in done.stdout
    assert ("Not all guards are in force: system calls." in done.stdout) == (not in_force)
