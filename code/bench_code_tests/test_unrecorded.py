"""Tests that have another result while they are recorded, and sessions of a project with options of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from repositories import impact, repository, write

from bench_code import ExecutionState
from bench_code.record import DIFFERS

TESTS = """
import time, lib

def test_feels_that_it_is_recorded():
    assert not hasattr(time.time, "__code__"), "it is wrapped"
    assert lib.value() == 1

def test_plain():
    assert lib.value() > 0
"""
LIB = "def value():\n    return 1\n"
NAME = "test_it.py::test_feels_that_it_is_recorded"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "r", {"lib.py": LIB, "test_it.py": TESTS})


def test_a_test_that_fails_only_while_it_is_recorded_is_named_and_passes(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    _, _, text = impact(root, f"--bench-json={file}", "-x")
    assert f"bench: {NAME} {DIFFERS}" in text and "FAILED" not in text.partition("bench: ")[2]
    assert "1 of them unrecorded" in text
    report = json.loads(file.read_text())
    assert (report["exit"], report["ran"][NAME], report["unrecorded"], report["failures"]) == (0, "passed", [NAME], [])
    assert ExecutionState.open(root).last(NAME).volatile == DIFFERS


def test_it_runs_unrecorded_in_each_later_session_and_its_failure_is_shown(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    impact(root)
    ran, kept, text = impact(root, f"--bench-json={file}")
    assert (ran, kept, json.loads(file.read_text())["ran"]) == ([], 1, {NAME: "passed"}), text
    write(root, {"lib.py": LIB.replace("1", "2")})
    ran, kept, text = impact(root, f"--bench-json={file}")
    report = json.loads(file.read_text())
    assert (report["exit"], report["ran"][NAME]) == (1, "failed")
    assert f"FAILED {NAME} (run unrecorded)" in text and "assert 2 == 1" in text


def test_a_test_that_fails_because_of_an_earlier_test_is_not_taken_for_one(tmp_path: Path) -> None:
    tests = "import lib\ndef test_a():\n    lib.STATE.append(1)\ndef test_b():\n    assert not lib.STATE\n"
    root = repository(tmp_path / "r", {"lib.py": "STATE = []\n", "test_it.py": tests})
    ran, _, text = impact(root)
    assert ran == ["test_it.py::test_a PASSED", "test_it.py::test_b FAILED"] and DIFFERS not in text
    assert ExecutionState.open(root).last("test_it.py::test_b").outcome == "failed"


def test_a_failure_shows_no_frame_of_the_recording(tmp_path: Path) -> None:
    tests = "import os\ndef test_import():\n    import broken\ndef test_read():\n    os.stat('not_there')\n"
    root = repository(tmp_path / "r", {"broken.py": "import nonsense\n", "test_it.py": tests})
    ran, _, text = impact(root)
    assert len(ran) == 2 and "broken.py:1: ModuleNotFoundError" in text and "FileNotFoundError" in text
    assert "<bench" not in text and "???" not in text, text


def test_options_of_the_project_and_of_the_environment_are_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r").mkdir()
    root = repository(
        tmp_path / "r",
        {
            "test_it.py": "def test_it():\n    pass\n",
            "pytest.ini": "[pytest]\naddopts = --junitxml=out.xml\n",
            ".gitignore": "*.xml\n",
        },
    )
    for name, value in {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(__file__).parents[2])}.items():
        monkeypatch.setenv(name, value)
    for _ in range(2):
        command = (sys.executable, "-m", "bench", "code", "run", "--in", str(root), "--json")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert list(json.loads(done.stdout)["kept"]) == ["test_it.py::test_it"]


def test_a_session_has_one_process_where_the_project_asks_for_more(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    files = {"test_it.py": "def test_it():\n    pass\n", "pytest.ini": "[pytest]\naddopts = -p xdist -n 2\n"}
    root = repository(tmp_path / "r", files)
    state = ExecutionState.open(root)
    assert state.run() == 0
    assert state.last("test_it.py::test_it").volatile == ""


@pytest.mark.parametrize("before", ["./", "./tests/../"])
def test_a_test_is_known_by_another_spelling_of_its_path(tmp_path: Path, before: str) -> None:
    root = repository(tmp_path / "r", {"test_it.py": "def test_it():\n    assert 1\n", "tests/x": ""})
    impact(root)
    command = (sys.executable, "-m", "bench", "code", "why", f"{before}test_it.py::test_it")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert "is valid: passed at step" in done.stdout, done.stderr


def test_a_kept_result_that_an_unrecorded_session_refutes_is_kept_no_more(tmp_path: Path) -> None:
    lib = "def wait(by=1):\n    return by\n"
    waits = "".join(
        f"def test_{each}():\n    select.select([], [], [], 0.7)\n    assert lib.wait() == 1\n" for each in ("a", "b", "c")
    )
    only_recorded = "def test_only_while_recorded():\n    assert type(time.time).__name__ == 'function'\n"
    root = repository(tmp_path / "r", {"lib.py": lib, "test_it.py": f"import select, time, lib\n{waits}{only_recorded}"})
    name = "test_it.py::test_only_while_recorded"
    assert f"{name} PASSED" in impact(root)[0]
    write(root, {"lib.py": lib.replace("return by", "return by + 0")})
    ran, _, text = impact(root)
    assert "all 4 tests ran unrecorded" in text and f"{name} FAILED" in ran, text
    write(root, {"lib.py": lib})
    ran, kept, text = impact(root)
    assert (ran, kept) == ([], 3) and f"FAILED {name} (run unrecorded)" in text, text
