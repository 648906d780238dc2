"""Which definitions a command of `bench` executes, from its start to its end, on all its threads. A class counts once.

PYTHONPATH=tools python -m structure.commands WORD ...     run `bench WORD ...`, and say last how many definitions it executed
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]
HOME = f"{ROOT / 'bench'}/"
FUNCTION = 0x3
"""The flags of a function's code, which a module's and a class body's lack: optimized, with its own names."""
ONE_TRIAL = """
name = "walk"
scenarios = ["k8s_oomkill"]
architectures = ["runtime_structured"]
models = ["simulated"]
plans = ["first_reply"]
repetitions = 1
seed = 1
model.simulated.kind = "simulated"
plan.first_reply.faults = [{ point = "output", effect = "missing_field", attempts = [1] }]
"""
COMMANDS = (("run", "one.toml", "--scenarios", str(ROOT / "scenarios")), ("report", "walk-simulated"), ("list",))


def counts() -> dict[str, str]:
    """Return how many definitions each command executes, in words: a run of one simulated trial, its report, and the parts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "one.toml").write_text(ONE_TRIAL, encoding="utf-8")
        return {f"bench {words[0]}": _count_of(words, folder) for words in COMMANDS}


def _count_of(words: tuple[str, ...], folder: str) -> str:
    command = [sys.executable, str(Path(__file__).resolve()), *words]
    done = subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def main(words: list[str]) -> None:
    """Run a command of `bench` and print what it executed."""
    definitions = set[tuple[str, str]]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        name = code.co_qualname.partition(".")[0]
        if event == "call" and code.co_filename.startswith(HOME) and code.co_flags & FUNCTION == FUNCTION and name[0] != "<":
            definitions.add((code.co_filename, name))

    threading.setprofile(note)
    sys.setprofile(note)
    from bench.__main__ import main as bench  # noqa: PLC0415  what its import executes counts too

    sys.argv = ["bench", *words]
    try:
        bench()
    finally:
        sys.setprofile(None)
        print(f"{len(definitions)} definitions in {len({file for file, _ in definitions})} files")


if __name__ == "__main__":
    main(sys.argv[1:])
