"""A command whose output nobody reads ends without a word, and with no exit code that means something else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.cli.unread import UNREAD_EXIT_CODE

COMMANDS = """
import sys
from bench.cli.command import app_of, run_command
from bench.cli.terminal import Terminal

def prints():
    Terminal().print("worse")
    sys.exit(1)

def writes():
    print("worse")

def says():
    Terminal(stderr=True).print("a warning")

def loses_its_agent():
    raise BrokenPipeError(32, "Broken pipe")

run_command(app_of(*((f.__name__, f) for f in (prints, writes, says, loses_its_agent))), lambda: None)
"""


def ended(*words: str, output: int, errors: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", COMMANDS, *words], stdout=output, stderr=errors, text=True, check=False)


def without_a_reader() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("words", [["prints"], ["writes"], ["--help"], ["--version"], []])
def test_a_command_that_nobody_reads_ends_as_sigpipe_would_end_it(words: list[str]) -> None:
    done = ended(*words, output=without_a_reader(), errors=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (UNREAD_EXIT_CODE, "")
    assert UNREAD_EXIT_CODE == 141


@pytest.mark.parametrize(("words", "code"), [("prints", 1), ("writes", 0), ("--help", 0), ("--version", 0)])
def test_a_command_whose_standard_output_is_closed_ends_as_usual(words: str, code: int) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", COMMANDS, words]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("words", [["says"], ["no-such-command"]])
def test_so_does_one_whose_errors_nobody_reads(words: list[str]) -> None:
    done = ended(*words, output=subprocess.PIPE, errors=without_a_reader())
    assert (done.returncode, done.stdout) == (UNREAD_EXIT_CODE, "")


def test_one_that_is_read_keeps_its_exit_code_and_tells_of_a_pipe_of_its_own() -> None:
    assert ended("prints", output=subprocess.PIPE, errors=subprocess.PIPE).returncode == 1
    done = ended("loses_its_agent", output=subprocess.PIPE, errors=subprocess.PIPE)
    assert done.returncode == 2 and "Broken pipe" in done.stderr
