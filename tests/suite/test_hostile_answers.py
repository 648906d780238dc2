"""Whatever a model answers, `bench run` goes on: the answer is wrong or rejected, and is never paid again.

Each case is a whole run on a server that gives the answer. Measured are the longest stall of the event loop and the growth of
memory, in a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from cost import SLACK
from scripted_server import ScriptedServer, Step, completion
from strain import strained

from bench.record.reading import read_trials

ROOT = Path(__file__).parents[2]
MOST_STALL, MAX_MEMORY = SLACK * 0.1, 128 * 2**20
"""Seconds, and bytes. The promise is 0.1 seconds, on a quiet machine."""

CONFIG = """
name = "hostile"
scenarios = ["{pack}"]
architectures = {architectures}
models = ["m"]
plans = ["none"]
repetitions = 1
instances = 1
max_attempts = 1
seed = 1

[model.m]
kind = "openai"
base_url = "{url}"
api_key_env = "HOSTILE_KEY"
answer_format = "{answer_format}"
"""
KEY = "sk-hostile-0123456789abcdef"


@dataclass(frozen=True)
class Hostile:
    """An answer to the subtask that asks for code; `outcome` is what its trials come to."""

    pack: str
    answer: str
    outcome: str
    architectures: tuple[str, ...] = ("static",)
    answer_format: str = "json"


def coded(code: str) -> str:
    return json.dumps({"code": code})


NESTED = [f"{' ' * depth}{word}" for depth in range(19) for word in ("try: pass", "finally:")]
BOMB = "\n".join([*NESTED, " " * 19 + "x = 1"])
"""Python doubles what stands in `finally`, nineteen times: to compile it takes gigabytes."""
ENDLESS = "while True: pass"
COLLIDING = "'{' + ','.join(str((2**61 - 1) * number) for number in range(20_000)) + '}'"


def returning(literal: str) -> str:
    """Code that says in the sandbox's place what its function returned."""
    value = f"{{'value': {{'returned': [{literal}], 'raised': ''}}}}"
    return f"import json, os\nleft = json.dumps({value}).encode()\nwhile left: left = left[os.write(3, left):]\nos._exit(0)"


ACCENTS = "a" + "\u0301\u0316" * 30_000
FIX = {"file": "pipeline.py", "find": "def parse(lines):", "replace": f"{ACCENTS} = 1\ndef parse(lines):"}
BOTH = ("static", "runtime_structured")
MILLIONS = {
    "blanks": " " * 7_000_000 + "x",
    "braces": "{" * 7_000_000,
    "closing braces": '{"a":' + "}" * 7_000_000,
    "empty lists": '{"code": [' + "[]," * 2_400_000 + "1]}",
    "letters": "a" * 7_000_000,
    "names": "{" + ",".join(f'"{number}":1' for number in range(500_000)) + "}",
    "numbers": '{"code": [' + "1," * 3_500_000 + "1]}",
    "backticks": "`" * 7_000_000,
    "ends of drafts": '{"a"</think>' * 550_000,
    "beginnings of the key": KEY[:4] * 1_800_000,
}
HOSTILE = {
    "code that is endless to compile, by examples": Hostile("functions:easy", coded(BOMB), "gave_up", architectures=BOTH),
    "code that is endless to compile, by hidden tests": Hostile("humaneval:one_call", coded(BOMB), "wrong"),
    "code that never ends": Hostile("functions:easy", coded(ENDLESS), "gave_up", architectures=BOTH),
    "a value that is no literal": Hostile("humaneval", coded(returning("'{[]: 1}'")), "gave_up", architectures=BOTH),
    "a value that is no literal, by hidden tests": Hostile("humaneval:one_call", coded(returning("'{[]: 1}'")), "wrong"),
    "numbers whose hashes collide": Hostile("humaneval", coded(returning(COLLIDING)), "gave_up"),
    "numbers whose hashes collide, by hidden tests": Hostile("humaneval:one_call", coded(returning(COLLIDING)), "wrong"),
    "a text that is endless to parse": Hostile("multi_file_debugging", json.dumps({"edits": [FIX]}), "gave_up"),
    "a million blanks": Hostile("functions:easy", " " * 1_200_000 + "x", "gave_up"),
    "a million braces": Hostile("functions:easy", "{" * 1_000_000, "gave_up"),
    "beginnings of objects": Hostile("functions:easy", '{"' * 4000, "gave_up"),
    "lines of backticks": Hostile("functions:easy", "```\n" * 250_000, "gave_up", answer_format="fenced"),
    **{f"millions of {what}": Hostile("functions:easy", answer, "gave_up") for what, answer in MILLIONS.items()},
}


SHORT = (
    "code that is endless to compile, by examples",
    "a value that is no literal",
    "a million blanks",
    "a million braces",
)
CASES = [what if what in SHORT else pytest.param(what, marks=pytest.mark.endurance) for what in HOSTILE]


@pytest.mark.parametrize("what", CASES)
def test_a_hostile_answer_stalls_nobody_costs_no_memory_and_is_paid_once(
    what: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    hostile, asked = HOSTILE[what], list[Any]()
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")

    def reply(body: Any) -> Step:
        asked.append(body)
        return completion(OTHERS.get(body["messages"][-1]["content"].split("\n")[0], hostile.answer))

    with ScriptedServer(reply) as server:
        names = json.dumps(hostile.architectures)
        config = CONFIG.format(pack=hostile.pack, architectures=names, url=server.base_url, answer_format=hostile.answer_format)
        (tmp_path / "hostile.toml").write_text(config)
        (code, out, err), strain = strained(tmp_path, "run", "hostile.toml", HOSTILE_KEY=KEY)
        calls = len(asked)
        again, *_ = bench(tmp_path, "run", "hostile.toml", HOSTILE_KEY=KEY)
    record_property("stall", strain.stall)
    record_property("peak", strain.grown / 2**20)
    assert (code, again) == (0, 0), (out, err)
    [folder] = (tmp_path / "results").iterdir()
    trials = list(read_trials(folder))
    assert [trial.outcome for trial in trials] == [hostile.outcome] * len(hostile.architectures), [
        trial.reason for trial in trials
    ]
    assert len(asked) == calls
    assert strain.stall <= MOST_STALL and strain.grown <= MAX_MEMORY, strain


OTHERS = {
    f"# Task: {name}": json.dumps(answer)
    for name, answer in {
        "plan": {"steps": ["do it"]},
        "analysis": {
            "needs_fix": True,
            "bugs": [{"file": "pipeline.py", "line_text": "def parse(lines):", "cause": "x"}],
            "confidence": 1,
        },
    }.items()
}
"""Harmless answers, to the subtasks that are asked before."""
