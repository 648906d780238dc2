"""The code digest changes with whatever determines a trial, and with nothing else."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.experiment import provenance
from bench.experiment.provenance import DETERMINES_NO_TRIAL, PACKAGE, code_digest, determining
from bench.serve.free import free_scenario

WHY = {
    "__init__.py": "gives load_run to those who read results",
    "__main__.py": "calls the command",
    "analysis": "reads results",
    "check.py": "runs trials of its own, which nobody keeps",
    "cli.py": "what a person types: what it chooses stands in the config",
    "experiment/cost.py": "prices what was recorded",
    "experiment/preview.py": "says what a run would take, and runs none",
    "folders.py": "where things lie",
    "new.py": "copies a pack, whose own digest is part of its trials' ids",
    "opening.py": "the models it chooses are part of the ids, the folder it opens of none",
    "report": "reads results",
    "serve/command.py": "what a person types: what it chooses stands in the config",
    "serve/free.py": "is a scenario, whose own digest is part of its trials' ids",
    "templates": "becomes a pack, whose own digest is part of its trials' ids",
    "terminal.py": "shows what was recorded",
}
"""Why each determines no trial."""
TELLS = {("serve/trial_server.py", "analysis")}
"""Tells a system what its trial came to, once that is recorded."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of ours, to be edited; the packages it stands on, whose look-up takes its time, are another matter."""
    monkeypatch.setattr(provenance, "package_versions", dict)
    return Path(shutil.copytree(PACKAGE, tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__")))


def edited(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def code_in(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def imported(path: Path) -> Iterator[str]:
    """Each module of ours that a file names in an import, or may have from one, as a path without its ending."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name.removeprefix("bench.").replace(".", "/") for name in names if name.startswith("bench."))


def test_what_is_left_out_has_a_reason_and_is_there() -> None:
    assert WHY.keys() == DETERMINES_NO_TRIAL
    for name in WHY:
        assert code_in(PACKAGE / name), name


def test_editing_what_determines_no_trial_leaves_the_digest_as_it_was(package: Path) -> None:
    before = code_digest(package)
    for name in WHY:
        for path in code_in(package / name):
            edited(path)
    assert code_digest(package) == before == code_digest()


def test_editing_any_other_file_changes_the_digest(package: Path) -> None:
    seen = {code_digest(package)}
    files = determining(package)
    assert {"endpoint.py", "trial_server.py", "wire.py", "session.py", "workbench.py", "trial.py"} <= {
        path.name for path in files
    }
    for path in files:
        edited(path)
        seen.add(code_digest(package))
    assert len(seen) == 1 + len(files)


def test_nothing_that_determines_a_trial_stands_on_what_is_left_out() -> None:
    left_out = {name.removesuffix(".py") for name in WHY}
    used = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in determining()
        for module in imported(path)
        for name in left_out
        if module == name or module.startswith(f"{name}/")
    }
    assert used == TELLS | {("serve/session.py", "serve/free")}


def test_calls_without_a_task_have_a_digest_like_a_packs() -> None:
    assert len(free_scenario().digest) == 20
