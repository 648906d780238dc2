"""Runs the command as a user does: in a process of its own, in a folder of its own.

Starting Python and loading the package takes most of a short command. So a process that has loaded it (`preloaded`) forks
itself for each command, which from there on has its own folder, environment, modules and signals. `start_anew` and `bench_anew`
do what a user does to the letter: the command has an interpreter of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Literal

from sabotage import Sabotage
from undrawn import leave_unmade

from bench.cli.authoring.new import new_scenario

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.preloaded"])
UNDRAWN = {"TESTS_UNDRAWN": "1"}
"""A variable for a forked command whose report's words matter: its figures are left empty."""
Ended = tuple[int, str, str]
"""Exit code, standard output, standard error."""

CONFIG = """
name = "{name}"
scenarios = ["demo"]
architectures = {architectures}
models = ["{model}"]
plans = ["none", "first_reply"]
repetitions = {repetitions}
seed = 1

[plan.first_reply]
faults = [{{ point = "output", effect = "missing_field", attempts = [1] }}]

[model.simulated]
kind = "simulated"
failure_rate = 0.1

{tables}
"""


def workplace(folder: Path, *, name: str = "small", model: str = "simulated", repetitions: int = 2, tables: str = "") -> Path:
    """A folder with a pack and a config of it; the config's path."""
    new_scenario("demo", folder / "scenarios")
    config = folder / "configs" / f"{name}.toml"
    config.parent.mkdir()
    architectures = '["static", "runtime_structured"]'  # without AutoGen, a second less to start
    config.write_text(
        CONFIG.format(name=name, model=model, repetitions=repetitions, architectures=architectures, tables=tables)
    )
    return config


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without any key, and with these variables."""
    kept = {name: value for name, value in os.environ.items() if "API_KEY" not in name and "PYTEST" not in name}
    return {**kept, "PYTHONWARNINGS": "error", **variables}


class Started(AbstractContextManager["Started"]):
    """A command at work; it is killed where it is left behind."""

    def __init__(self, folder: Path, words: tuple[str, ...], variables: Mapping[str, str], before: Sabotage | None = None):
        files = Path(f"{folder}.said")  # beside the folder, where no command sees them
        files.mkdir(exist_ok=True)
        self._printed = Path(tempfile.mkdtemp(dir=files))
        given = (folder, words, environment(**variables), self._printed, before)
        self._process = FORKS.Process(target=_work, args=given, daemon=True)
        self._process.start()

    @property
    def exit_code(self) -> int | None:
        """None as long as it runs; of a signal that ended it, the negative number."""
        return self._process.exitcode

    def wait_until_said(self, text: str, to: Literal["out", "err"] = "out") -> str:
        """Wait until this stands in what it has written to standard output, or to standard error; all of that."""
        while text not in (output := self._written(to)):
            assert self.exit_code is None, (output, self._written("out"), self._written("err"))
            time.sleep(0.005)
        return output

    def send_signal(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            os.kill(self._process.pid or 0, number)

    def kill(self) -> None:
        self._process.kill()

    def ended(self, timeout: float = 100) -> Ended:
        """Wait for its end."""
        self._process.join(timeout)
        assert self.exit_code is not None, f"it still runs after {timeout} s"
        return self.exit_code, self._written("out"), self._written("err")

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.ended()

    def _written(self, name: str) -> str:
        path = self._printed / name
        return path.read_text(encoding="utf-8") if path.exists() else ""


def _work(folder: Path, words: tuple[str, ...], variables: Mapping[str, str], to: Path, before: Sabotage | None) -> None:
    """What the forked process does."""
    from bench.cli.main import main  # noqa: PLC0415  # loaded already, by the process that forks

    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(to / name, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("error")
    sys.argv = ["bench", *words]
    sys.path[:] = [entry for entry in sys.path if entry]
    if UNDRAWN.items() <= variables.items():
        leave_unmade(setattr)
    if before:
        before()
    main()


def free_port() -> int:
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def start(folder: Path, *words: str, **variables: str) -> Started:
    """Begin `bench` in this folder."""
    return Started(folder, words, variables)


def sabotaged(folder: Path, before: Sabotage, *words: str, **variables: str) -> Ended:
    """Run `bench` to its end, whatever ends it."""
    with Started(folder, words, variables, before) as command:
        return command.ended()


def bench(folder: Path, *words: str, **variables: str) -> Ended:
    """Run `bench` to its end."""
    with start(folder, *words, **variables) as command:
        return command.ended()


def start_anew(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Begin `bench` in a new interpreter, listening to Ctrl-C even where these tests run in the background and do not."""
    return _start(folder, words, variables)


def start_in_group(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Begin `bench` as `start_anew` does, in a process group of its own."""
    return _start(folder, words, variables, process_group=0)


def _start(folder: Path, words: Sequence[str], variables: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *words],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no thread runs here
        **options,
    )


def bench_anew(folder: Path, *words: str, **variables: str) -> Ended:
    with start_anew(folder, *words, **variables) as process:
        out, err = process.communicate(timeout=100)
    return process.returncode, out, err
