"""Runs the command as a user does: in a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from bench.cli.scaffold import new_scenario

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


def start(folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Begin `bench` in this folder, listening to Ctrl-C even where these tests run in the background and do not."""
    return subprocess.Popen(
        [sys.executable, "-m", "bench", *words],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no thread runs here
    )


def bench(folder: Path, *words: str, **variables: str) -> tuple[int, str, str]:
    """Run `bench` to its end: exit code, standard output, standard error."""
    with start(folder, *words, **variables) as process:
        out, err = process.communicate(timeout=100)
    return process.returncode, out, err
