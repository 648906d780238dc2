"""What `bench` says of itself, and of what was typed wrong or stopped: one line, and where to look."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from commands import bench
from reference import command_pages

from bench.cli.command import SuggestingCommand
from bench.common.signals import STOP_SIGNALS, exit_code
from bench.run.trial import loop

ROOT = Path(__file__).parents[2]


def test_help_names_each_command_in_a_whole_sentence_eight_first_and_the_version_is_told(tmp_path: Path) -> None:
    code, out, _ = bench(tmp_path, "--help")
    commands = out.partition("\nFirst:\n")[2]
    shown = [line for line in commands.splitlines() if line.startswith("  ")]
    first, more = ([line.split()[0] for line in part.splitlines() if line.strip()] for part in commands.split("\nMore:\n"))
    assert first == ["probe", "run", "report", "compare", "trace", "scorecard", "new", "check"]
    assert code == 0 and {"list", "runs", "serve", "explain", "import", "export", "watch", "verify", "doctor"} <= {*more}
    assert len(more) <= 12 and "Commands:" not in out
    assert [line for line in shown if not line.endswith(".") or line.endswith("...")] == []
    code, out, _ = bench(tmp_path, "--version")
    assert code == 0 and re.fullmatch(r"recovery-bench \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize("group", ["explain", "more"])
def test_a_groups_help_names_its_commands_and_each_name_without_its_group_is_told_in_full(tmp_path: Path, group: str) -> None:
    _, out, _ = bench(tmp_path, group, "--help")
    inner = [line.split()[0] for line in out.partition("\nCommands:\n")[2].splitlines()]
    assert [f"bench {group} {name}" for name in inner] == [
        name for name, _ in command_pages.commands() if name.startswith(f"bench {group} ")
    ]
    for name in inner:
        code, out, err = bench(tmp_path, name, "RUN")
        assert (code, out, err) == (2, "", f"bench: no such command '{name}'; it is: bench {group} {name}; see: bench --help\n")


@pytest.mark.parametrize("name", [name for name, _ in command_pages.commands()])
def test_the_help_of_each_command_has_an_example_and_says_what_each_option_does(name: str) -> None:
    command = dict(command_pages.commands())[name]
    examples = [line.partition("For example: ")[2] for line in command.help.splitlines() if "For example: " in line]
    assert examples and all(example.startswith(name) for example in examples)
    assert [parameter.name for parameter in command.params if not getattr(parameter, "help", "")] == []
    context = command.context_class(command, info_name=name)
    assert "<" not in " ".join(record[0] for part in command.params if (record := part.get_help_record(context)))


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("run",), "bench: missing argument 'config'; see: bench run --help\n"),
        (("run", "x.toml", "--frob"), "bench: no such option: --frob; see: bench run --help\n"),
        (("run", "x.toml", "--name"), "bench: option '--name' requires an argument; see: bench run --help\n"),
        (("rnu",), "bench: no such command 'rnu'; did you mean 'run' or 'runs'; see: bench --help\n"),
        (("comprae",), "bench: no such command 'comprae'; did you mean 'compare'; see: bench --help\n"),
        (("explain", "shrikn"), "bench: no such command 'shrikn'; did you mean 'shrink'; see: bench explain --help\n"),
        (("runs", "--tag"), "bench: option '--tag' requires an argument; see: bench runs --help\n"),
        (("new", "scenaro"), "bench: no such command 'scenaro'; did you mean 'scenario'; see: bench new --help\n"),
        (
            ("watch", "x", "--port", "a"),
            "bench: invalid value for '--port': must be a whole number, not 'a'; see: bench watch --help\n",
        ),
        (
            ("probe", "--workers", "17"),
            "bench: invalid value for '--workers': must be at most 16, not '17'; see: bench probe --help\n",
        ),
        (
            ("compare", "x", "--by", "y"),
            "bench: invalid value for '--by': 'y' is not one of 'arm'; see: bench compare --help\n",
        ),
        (("probe", "python", "a.py"), "bench: 'a.py': a command is typed behind `--`, as in: bench probe -- python agent.py\n"),
    ],
)
def test_what_is_typed_wrong_is_told_in_one_line_with_where_to_look(
    tmp_path: Path, typed: tuple[str, ...], message: str
) -> None:
    assert bench(tmp_path, *typed) == (2, "", message)


def test_without_a_key_a_run_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config, packs = str(ROOT / "configs" / "paper.toml"), str(ROOT / "scenarios")
    code, _, err = bench(tmp_path, "run", config, "--model", "gpt-4", "--scenarios", packs)
    assert code == 2 and err == "bench: no key for https://api.openai.com/v1: set the environment variable OPENAI_API_KEY\n"
    assert list((tmp_path / "results").glob("*")) == []


def _stops_itself(asked: signal.Signals) -> None:
    os.kill(os.getpid(), asked)
    time.sleep(10)


async def _stops_its_loop(asked: signal.Signals) -> None:
    os.kill(os.getpid(), asked)
    await asyncio.sleep(10)


@pytest.mark.parametrize("asked", STOP_SIGNALS)
@pytest.mark.parametrize("work", [_stops_itself, lambda asked: loop.run_whole(_stops_its_loop(asked))], ids=["plain", "loop"])
def test_each_signal_to_stop_ends_a_command_in_one_line(
    capsys: pytest.CaptureFixture[str], asked: signal.Signals, work: Callable[[signal.Signals], None]
) -> None:
    app = typer.Typer()

    @app.command(cls=SuggestingCommand)
    def slow() -> None:
        work(asked)

    began_with = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores Ctrl-C
    try:
        before = [signal.getsignal(number) for number in STOP_SIGNALS]
        assert app([], prog_name="slow", standalone_mode=False) == exit_code(asked)
        assert capsys.readouterr().err == "slow: stopped; no file is half written\n"
        assert [signal.getsignal(number) for number in STOP_SIGNALS] == before
    finally:
        signal.signal(signal.SIGINT, began_with)


def test_every_command_is_stopped_so() -> None:
    assert {type(command) for _, command in command_pages.commands()} == {SuggestingCommand}
