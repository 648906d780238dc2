"""The command starts at once: what only a report needs is imported by the commands that write one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import bench
from bench.cli.command_part import COMMANDS
from bench.cli.main import app

REPORT = "import sys, bench.read.report.written_report; print(sorted({'scipy.stats', 'scipy.optimize'} & sys.modules.keys()))"
STOPPED = """
import os, signal, sys

class Stop:
    def find_spec(self, name, *_):
        if name == "bench.cli.one_command":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop())
from bench.__main__ import main
main()
"""
ASKED = "import sys, bench.cli.main; print(sorted({'pandas', 'matplotlib', 'scipy', 'numpy', 'openai'} & sys.modules.keys()))"
NAMES = """
from contextlib import suppress
from bench.__main__ import main
with suppress(SystemExit):
    main()
heavy = {"pandas", "numpy", "autogen_core", "bench.cli.main", "bench.run", "bench.read"}
print(sorted(name for name in sys.modules if name in heavy or name.startswith("bench.cli.commands.") and "entries" not in name))
"""


def test_the_package_loads_no_module_that_takes_longer_than_itself() -> None:
    folder, slow = Path(bench.__file__).parents[1], {"importlib.abc", "importlib.resources", "inspect"}
    asked = f"import sys; sys.path.append({str(folder)!r}); import bench; print(sorted({slow} & sys.modules.keys()))"
    words = (sys.executable, "-I", "-S", "-c", asked)
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_no_command_waits_at_its_start_for_what_only_a_report_or_a_live_model_needs() -> None:
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_no_report_waits_at_its_start_for_tests_that_few_reports_make() -> None:
    done = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_ctrl_c_while_the_command_loads_ends_it_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # no thread runs here
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("words", [["--help"], [], ["--version"], ["rnu"], ["explain", "--help"], ["more", "regrad"]])
def test_help_and_a_wrong_name_import_no_command_and_nothing_that_a_command_needs(words: list[str]) -> None:
    program = f"import sys; sys.argv = ['bench', *{words}]\n" + NAMES
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_line_of_each_command_in_help_is_the_first_of_its_own_help() -> None:
    program: Any = typer.main.get_command(app)
    shown = dict(program.commands)
    for name, group in program.commands.items():
        if name in ("explain", "more"):
            shown |= {f"{name} {inner}": command for inner, command in group.commands.items()}
    assert {part.name: part.help for part in COMMANDS} == {name: each.help.partition("\n")[0] for name, each in shown.items()}
