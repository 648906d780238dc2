"""`results/` is a wall: what makes a record and what reads it never know each other, not even by a path in a string, and a
report is made where nothing that makes a record can be imported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from commands import environment
from records import experiment, write_run
from structure.counts import arrows_of, folder_of, room_of, size_of, sources
from structure.walks import walks

ROOT = Path(__file__).parents[2]
BELOW = {"bench.common", "bench.scenario", "bench.task", "bench.record", "bench.wire"}
"""The rooms below the wall, which both sides use."""
MOST = {"from a config to its trials": 94, "one trial": 132, "from a run to a table": 131}
"""Trip -> the most definitions that it may run; it is lowered where the code comes to need fewer."""
MOST_ARROWS, MOST_FOLDER_ARROWS = 53, 260
"""The most arrows between the rooms, and between the lowest folders; they are lowered where an arrow goes."""
RUN_AGAIN = {"judgment_bank", "momentum", "repair_bank", "replay_divergence"}
"""Studies that make worlds again or read a bank."""
STUDY_IMPORT = re.compile(r"^\s*(?:from\s+studies\b|import\s+(?:[\w.]+\s*,\s*)*studies\b)", re.MULTILINE)
REFUSED = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if f"{name}.".startswith(("bench.run.", "bench.worlds.run.", "bench.rerun.")):
            raise ImportError(f"{name} stands on the other side of the wall")

sys.meta_path.insert(0, Wall())
"""


@cache
def arrows() -> set[tuple[str, str]]:
    """Return which room of the package imports which."""
    return arrows_of(sources(), room_of)


def python(code: str, *words: str) -> str:
    """Run code in a fresh interpreter in which nothing that makes a record can be imported; return what it prints."""
    program = [sys.executable, "-c", REFUSED + code, *words]
    variables = environment(PYTHONPATH=str(ROOT / "tests" / "support"))
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, env=variables, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    ("side", "beyond"), [("bench.run", {"bench.run"}), ("bench.read", {"bench.read"}), ("bench.record", set())]
)
def test_a_side_of_the_wall_names_no_module_beyond_it_in_code_or_in_a_string(side: str, beyond: set[str]) -> None:
    used = {imported for room, imported in arrows() if room == side}
    assert used <= BELOW | beyond


def test_all_that_reads_works_where_nothing_makes_a_record(tmp_path: Path) -> None:
    """Every module that reads is imported, a report is made, and each study is shown but those that make worlds again or read a
    bank: in one interpreter, whose start takes longest."""
    write_run(tmp_path / "run", experiment())
    code = """
import importlib, json, pkgutil, sys
import bench, bench.read, bench.record, bench.worlds.read
from bench.common.errors import ResultsError
from bench.read.report.written_report import report_of
from bench.read.report.studies import STUDIES, study_named
from undrawn import leave_undrawn

leave_undrawn(setattr)
modules, refused = [], []
for room in (bench.read, bench.record, bench.worlds.read):
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # a form of export whose package is an extra
            if error.name.partition(".")[0] == "bench":
                raise
        modules.append(module.name)
for name in STUDIES.names:
    try:
        study_named(name)
    except ResultsError as error:
        assert "stands on the other side of the wall" in str(error), error
        refused.append(name)
print(json.dumps([len(modules), len(report_of(bench.load_run(sys.argv[1])).files), refused]))
"""
    modules, files, refused = json.loads(python(code, str(tmp_path / "run")))
    assert modules > 150 and files > 20 and set(refused) == RUN_AGAIN


def test_no_room_imports_a_study() -> None:
    assert [path for path, source in sources().items() if STUDY_IMPORT.search(source)] == []
    assert all(map(STUDY_IMPORT.search, ("import json, studies", "if True:\n    from studies.context import study")))


def test_the_rooms_have_few_arrows_and_no_trip_runs_more_definitions_than_it_did() -> None:
    assert len(arrows()) <= MOST_ARROWS and len(arrows_of(sources(), folder_of)) <= MOST_FOLDER_ARROWS
    made = walks()
    assert {trip: len(definitions) for trip, definitions in made.items() if len(definitions) > MOST[trip]} == {}


def test_code_is_counted_without_blank_lines_comments_and_docstrings() -> None:
    source = (
        '"""Of a module."""\n\n# a comment\nX = 1\n"""Of a constant."""\n\n\n'
        'def f():\n    """Of a\n    function."""\n    return (\n        X\n    )\n'
    )
    size = size_of({"bench/a.py": source})
    assert (size.files, size.lines, size.statements) == (1, 5, 3)


def test_an_import_path_in_a_string_is_an_arrow() -> None:
    files = {
        "bench/a/b.py": 'PATH = "bench.c.d:make"',
        "bench/c/d.py": "from bench.a.b import PATH",
        "bench/e.py": "import bench.c.d",
    }
    assert arrows_of(files, room_of) == {("bench.a", "bench.c"), ("bench.c", "bench.a"), ("bench.e", "bench.c")}


def test_the_init_of_a_folder_stands_in_this_folder() -> None:
    files = {
        "bench/a/__init__.py": "from bench.a.b import MADE",
        "bench/a/b.py": "MADE = 1",
        "bench/c.py": "from bench.a import MADE\nfrom bench.a.b import MADE as same",
    }
    assert arrows_of(files, folder_of) == {("bench", "bench.a")}
