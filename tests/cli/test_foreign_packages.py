"""Packages that harm: each is left out in one line, and takes no command and no other part with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from commands import bench_anew, sabotaged, workplace
from plugged import EVERY_KIND, Installed, install, plugged
from typer.testing import CliRunner

from bench.cli.command import Commands
from bench.cli.command_part import COMMANDS
from bench.cli.main import add_commands
from bench.run.trial.effects import EFFECTS

COMMAND = "from bench.cli.command_part import CommandPart\nPART = CommandPart({!r}, {!r})\n"
EFFECT = "from bench.run.trial.effects import TextEffect\n"
LOUD = EFFECT + "PART = TextEffect('loud', lambda target, random: 'x', points=('output',))\n"
OWN = "class Own(BaseException):\n    def __str__(self): raise self\n"


def keys(body: str, base: str = "TextEffect") -> str:
    return (
        f"{EFFECT}class Odd({base}):\n    @property\n    def keys(self): {body}\nPART = Odd('odd', print, points=('output',))\n"
    )


COMMANDS_THAT_HARM = {
    "its module is not there": COMMAND.format("mine", "nowhere:f"),
    "its function is not there": COMMAND.format("mine", "bad_parts:f"),
    "it is no function": COMMAND.format("mine", "bad_parts:f") + "f = 5\n",
    "it is a module": COMMAND.format("mine", "bad_parts"),
    "its path is no text": COMMAND.format("mine", 5),
    "its path is empty": COMMAND.format("mine", ""),
    "its name is no text": COMMAND.format(5, "bad_parts:f"),
    "it has no name": COMMAND.format("", "bad_parts:f"),
    "typer does not know its arguments": COMMAND.format("mine", "bad_parts:f") + "def f(x: int | str): ...\n",
    "its signature raises": COMMAND.format("mine", "bad_parts:f") + "class F:\n    def __call__(self): ...\n    @property\n"
                            "    def __signature__(self): raise KeyboardInterrupt\nf = F()\n",
    "it takes our run": COMMAND.format("run", "bad_parts:f") + "def f(): print('taken')\n",
    "it takes our report": COMMAND.format("report", "bad_parts:f") + "def f(): print('taken')\n",
    "it takes our list": COMMAND.format("list", "bad_parts:f") + "def f(): print('taken')\n",
    "it takes a wing's verify": COMMAND.format("verify", "bad_parts:f") + "def f(): print('taken')\n",
    "its attribute exits": COMMAND.format("mine", "bad_parts:f") + "def __getattr__(name): raise SystemExit(3)\n",
    "its attribute interrupts": COMMAND.format("mine", "bad_parts:f") + "def __getattr__(name): raise KeyboardInterrupt\n",
}  # fmt: skip
IMPORTS_THAT_HARM = {
    "KeyboardInterrupt": "raise KeyboardInterrupt\n",
    "GeneratorExit": "raise GeneratorExit\n",
    "SystemExit": "raise SystemExit(0)\n",
    "StopIteration": "raise StopIteration\n",
    "an own BaseException": "class Own(BaseException): ...\nraise Own\n",
    "words that raise": "class Own(Exception):\n    def __str__(self): raise ValueError\nraise Own\n",
    "words that raise, of an import": "class Own(ImportError):\n    def __str__(self): raise KeyboardInterrupt\nraise Own\n",
    "words that raise themselves": OWN + "raise Own\n",
    "words that are no text": "class Own(Exception):\n    def __str__(self): return 5\nraise Own\n",
    "a name that raises": "class Meta(type):\n    @property\n    def __name__(cls): raise ValueError\n"
                          "class Own(Exception, metaclass=Meta): ...\nraise Own\n",
    "a syntax error without words": "raise SyntaxError(None, (5, None, None, None))\n",
    "10 MB of words": "raise ValueError('x\\n' * 5_000_000)\n",
    "a circle": "import bad_parts.more\n",
    "deep": "def f(): f()\nf()\n",
}  # fmt: skip
ENTRIES_THAT_HARM = {
    "keys that raise": keys("raise KeyError"),
    "keys that interrupt": keys("raise KeyboardInterrupt"),
    "keys that are none": keys("return None"),
    "keys that cannot be keys": keys("return [[]]"),
    "an entry that cannot be copied": EFFECT + "class Odd(TextEffect):\n    def __init__(self): pass\nPART = Odd()\n",
    "another type": "PART = object()\n",
    "no tuple of entries": "PART = [[]]\n",
}  # fmt: skip
POINTS_THAT_HARM = {
    "a line before a section": b"mine = bad_parts:PART\n[recovery_bench.commands]\nmine = bad_parts:PART\n",
    "bytes that are no UTF-8": b"[recovery_bench.commands]\nmine = \xff:PART\n",
    "a value without a module": b"[recovery_bench.commands]\nmine = :\n",
    "a line without a value": b"[recovery_bench.commands]\nmine\n",
}
HARM: dict[str, tuple[str | bytes, str]] = {
    **{name: ("commands", text) for name, text in COMMANDS_THAT_HARM.items()},
    **{f"import: {name}": ("commands", text) for name, text in IMPORTS_THAT_HARM.items()},
    **{name: ("effects", text) for name, text in ENTRIES_THAT_HARM.items()},
    **{name: (points, LOUD) for name, points in POINTS_THAT_HARM.items()},
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all these packages, each of its own name, and with a package whose command and effect must stay."""
    folder = tmp_path_factory.mktemp("installed")
    for number, (kind, module) in enumerate(HARM.values()):
        name = f"bad_parts{number}x"
        group = kind if isinstance(kind, str) else "commands"
        text = module.replace("bad_parts", name).replace("'mine'", f"'mine{number}'")
        install(folder, name, {f"recovery_bench.{group}": {"mine": f"{name}:PART"}}, {f"{name}.py": text})
        if isinstance(kind, bytes):
            (folder / f"{name}-1.0.dist-info/entry_points.txt").write_bytes(kind.replace(b"bad_parts", name.encode()))
    module = COMMAND.format("hello", "good_parts:f") + LOUD.replace("PART", "LOUD") + "def f(): print('good')\n"
    points = {"recovery_bench.commands": {"h": "good_parts:PART"}, "recovery_bench.effects": {"l": "good_parts:LOUD"}}
    install(folder, "good-parts", points, {"good_parts.py": module})
    return folder


@pytest.fixture(scope="module")
def lines(installed: Path) -> list[str]:
    """What is told of the parts that are left out, after all commands were added and all parts were read."""
    with plugged(installed):
        fresh = typer.Typer(cls=Commands)
        add_commands(fresh)
        assert CliRunner().invoke(fresh, ["hello"]).output == "good\n"
        assert CliRunner().invoke(fresh, ["--help"]).output.count("hello") == 1
        assert [part.package for part in COMMANDS if part.name in ("run", "report", "list", "verify")] == ["", "", "", ""]
        assert ("loud", "output") in EFFECTS
        return list(dict.fromkeys(line for kind in EVERY_KIND for line in kind.left_out))


@pytest.mark.parametrize("case", HARM)
def test_a_package_that_harms_is_left_out_in_one_line(lines: list[str], case: str) -> None:
    name = f"bad_parts{list(HARM).index(case)}x"
    [line] = [line for line in lines if name in line or name.replace("_", "-") in line]
    assert "left out" in line and "\n" not in line and len(line) < 700


def test_no_other_package_is_left_out(lines: list[str]) -> None:
    assert len(lines) == len(HARM)


def test_commands_work_beside_all_packages_that_harm(tmp_path: Path, installed: Path) -> None:
    config = workplace(tmp_path / "work")
    code, printed, told = sabotaged(tmp_path / "work", Installed((installed,)), "run", str(config), "--dry-run")
    assert code == 0 and "runtime_structured" in printed and "Traceback" not in told, told
    code, printed, told = bench_anew(tmp_path / "work", "list", PYTHONPATH=str(installed))
    assert code == 0 and "loud (from good-parts 1.0)" in printed and "Traceback" not in told, told
    code, _, of_commands = bench_anew(tmp_path, "mine1", PYTHONPATH=str(installed))
    assert code == 2 and "no such command 'mine1'" in of_commands and "bad_parts1x:f" in of_commands, of_commands
    lines = {line for line in (told + of_commands).splitlines() if "left out" in line}
    assert len(lines) == len(HARM), lines
