"""Run what the documents tell their readers to type: `python tools/blocks.py README.md docs/*.md`.

Each document is one shell session in a folder of its own, and its blocks run in the order in which they stand.

    ```console    each line after `$ ` is run; its output must have the other lines, in which `...` is any text
    ```python     is run as a program
    ```toml       must be TOML

A comment in the line above a block, or above the first block, says otherwise:

    <!-- not run: REASON -->      this block is only shown, since it needs a key, a model's server, or minutes
    <!-- file: PATH -->           this block is the content of this file
    <!-- in an empty folder -->   the document begins in an empty folder, not in a copy of the checkout
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("configs", "results", "scenarios", "studies", "reports/advise-simulated", "reports/advise_held_out-simulated")
"""What of the checkout its copy holds: what commands read by a relative path."""
EMPTY = "<!-- in an empty folder -->"
FENCE = re.compile(r"^```(\S*)")
MARK = re.compile(r"^<!-- (not run|file): (.+?) -->$")
PATIENCE = 900.0
"""How many seconds a document's commands may take together."""


@dataclass(frozen=True)
class Block:
    """A fenced block. `line` is that of its first line; `file` and `reason` come from the comment above it."""

    line: int
    language: str
    text: str
    file: str = ""
    reason: str = ""


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    lines = text.splitlines()
    above, number = "", 0
    while number < len(lines):
        line = lines[number]
        if fence := FENCE.match(line):
            end = lines.index("```", number + 1)
            kind, argument = mark.groups() if (mark := MARK.match(above)) else ("", "")
            content = "".join(f"{inner}\n" for inner in lines[number + 1 : end])
            yield Block(number + 2, fence[1], content, argument * (kind == "file"), argument * (kind == "not run"))
            number, line = end, ""
        above = line or above * (not fence)
        number += 1


def commands_of(block: Block) -> Iterator[tuple[int, str]]:
    """(line, command) of a console block; a command goes on where its line ends in a backslash."""
    command, start = "", 0
    for number, line in enumerate(block.text.splitlines(), block.line):
        if not command and not line.startswith("$ "):
            continue
        start = start if command else number
        command += line if command else line.removeprefix("$ ")
        if line.endswith("\\"):
            command += "\n"
            continue
        yield start, command
        command = ""


def outputs_of(block: Block) -> dict[int, list[str]]:
    """Return the lines that a console block shows as the output of a command, by the line of the command."""
    starts = sorted(start for start, _ in commands_of(block))
    shown: dict[int, list[str]] = {start: [] for start in starts}
    in_command = False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if in_command or number in shown:
            in_command = line.endswith("\\")
        elif line.strip() and starts and number > starts[0]:
            shown[max(start for start in starts if start < number)].append(line)
    return shown


def missing_outputs(name: str, blocks: list[Block], printed: str) -> list[str]:
    """Return a line for each line that the document `name` shows as output and that the command did not print."""
    printed_by: dict[int, list[str]] = {}
    started = re.compile(rf"{re.escape(name)}:(\d+): ")
    lines: list[str] = []
    for line in printed.splitlines():
        if match := started.match(line):
            lines = printed_by.setdefault(int(match[1]), [])
        lines.append(line)
    return [
        f"{name}:{start}: shown, and not printed: {shown}"
        for block in blocks
        if block.language == "console" and not block.reason
        for start, outputs in outputs_of(block).items()
        for shown in outputs
        if not any(re.fullmatch(re.escape(shown).replace(re.escape("..."), ".*"), line) for line in printed_by.get(start, ()))
    ]


def script_of(name: str, blocks: list[Block]) -> str:
    """The shell session that a document is. Before each command it says where that stands; what it started ends with it."""
    lines = ["set -euo pipefail", "trap 'jobs -p | xargs -r kill' EXIT"]
    for block in blocks:
        if block.reason:
            continue
        if block.file:
            lines += _written(block.file, block.text)
        elif block.language == "console":
            for number, command in commands_of(block):
                lines += [_told(name, number, command), command]
        elif block.language == "python":
            program = f".block-{block.line}.py"
            lines += [*_written(program, block.text), _told(name, block.line, "python"), f"python {program}"]
        elif block.language == "toml":
            tomllib.loads(block.text)
    return "\n".join(lines) + "\n"


def _written(path: str, text: str) -> list[str]:
    return [f"mkdir -p {shlex.quote(str(Path(path).parent))}", f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"]


def _told(name: str, line: int, command: str) -> str:
    return f"echo {shlex.quote(f'{name}:{line}: {command}')}"


def run(path: Path) -> bool:
    """Run a document's blocks and show what they print, where one fails; whether all went well."""
    text = path.read_text(encoding="utf-8")
    blocks = list(blocks_of(text))
    script = script_of(path.name, blocks)
    with tempfile.TemporaryDirectory(prefix="blocks-") as folder:
        for name in () if EMPTY in text else COPIED:
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        began = time.monotonic()
        try:
            done = subprocess.run(
                ["bash", "-c", script],
                check=False,
                cwd=folder,
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired as error:
            print(f"{path}: did not end in {PATIENCE:.0f} s; the last command that began is the last below")
            print((error.stdout or b"").decode("utf-8", "replace"))
            return False
    ran = sum(line.startswith(f"{path.name}:") for line in done.stdout.splitlines())
    print(f"{path}: {ran} ran in {time.monotonic() - began:.1f} s{'' if done.returncode == 0 else ', and the last one FAILED'}")
    missing = missing_outputs(path.name, blocks, done.stdout) if done.returncode == 0 else []
    if done.returncode or missing:
        print(done.stdout, *missing, sep="\n")
    return done.returncode == 0 and not missing


def _environment() -> dict[str, str]:
    """This one's, without keys: nothing here may ask a provider. `bench` and `python` are those that run this."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"}


def main(paths: list[str]) -> int:
    passed = [run(Path(path)) for path in paths]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
