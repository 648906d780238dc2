"""A run of an agent that was recorded elsewhere, to be run again under faults: `trace.json` holds its steps.

Two variants ask the same. In `answers` each step is a subtask that reads what the recorded one was shown, so that an
architecture for tasks works through them. In `effects` each call of a tool is an effect in a world, so that a process can die
at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from bench.run.packs import PackFolder
from bench.scenario import Json, Output, Scenario, Subtask, WrongAnswer
from bench.worlds.run.environment import (
    Call,
    Db,
    Environment,
    EventKind,
    Facts,
    Moment,
    ProcedureStep,
    Scheduled,
    Standing,
    Tool,
    World,
)

from .baseline import baseline
from .grader import grade

STEPS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "trace.json").read_text(encoding="utf-8"))["steps"]
REPLIES = {step["name"]: step["reply"] for step in STEPS}
CALLS: dict[str, dict[str, Any]] = {call["tool"]: call for step in STEPS for call in step["calls"]}
"""Each call of a tool is a tool of its own, `step_07_refund`, so that a fault can strike just it."""
PIECES = [text for step in STEPS for text in (step["shown"], f"[assistant]\n{step['reply']}")]
"""The texts of the run, in order. A step holds what it was the first to be shown, and the ranges of the pieces that it was
shown again."""
NAMES = [name for step in STEPS for name in (f"{step['name']}.md", step["name"])]
"""The same, as a subtask names them: a document, and the reply of a step."""
WRITERS = [tool for tool, call in CALLS.items() if not call["reads"]]
EFFECTS = list(dict.fromkeys(CALLS[tool]["effect"] for tool in WRITERS))
"""Each is named after the first call that makes it; a call that makes it again makes no other."""
VARIANTS = ("answers", "effects") if EFFECTS else ("answers",)


class Said(Output):
    reply: str = Field(description="what the agent says or does next")


class Nothing(BaseModel):
    pass


class Result(BaseModel):
    result: str


def scenario(folder: PackFolder) -> Scenario:
    return _effects(folder) if folder.variant == "effects" else _answers(folder)


def _answers(folder: PackFolder) -> Scenario:
    """A step reads what the recorded one was shown."""
    return folder.scenario(
        [Subtask(step["name"], folder.prompt("act"), (*_before(step, NAMES), f"{step['name']}.md"), Said) for step in STEPS],
        grade=grade,
        baseline=baseline,
        documents={f"{step['name']}.md": step["shown"] or "(nothing new)" for step in STEPS},
        reference={step["name"]: {"reply": step["reply"]} for step in STEPS},
        wrong=[WrongAnswer("silent", "the last step says something else", {STEPS[-1]["name"]: {"reply": "…"}})],
        truth=[step["reply"] for step in STEPS],
    )


def _effects(folder: PackFolder) -> Scenario:
    """A step is judged on the whole prompt that the recorded one was, and then calls what that one called."""
    return folder.scenario(
        [Subtask("act", folder.prompt("act"), ("shown",), Said)],
        grade=grade,
        baseline=baseline,
        documents={},
        reference={"act": {"reply": STEPS[0]["reply"]}},
        wrong=(),
        truth=EFFECTS,
        environment=Environment(
            schema="CREATE TABLE effects (tool TEXT NOT NULL)",
            rows={},
            tools=tuple(map(_tool, CALLS)),
            audit=_audit,
            reference=_reference,
            wrong={"nothing": _nothing},
            given=("shown",),
            right=_right,
            events=(Scheduled("begin", "begun", Moment(0)),),
            kinds=(EventKind("begun"),),
            procedure=tuple(map(_step, range(len(STEPS)))),
            ends=Moment(1),
        ),
    )


def _tool(name: str) -> Tool:
    if CALLS[name]["reads"]:
        return Tool(name, "read", Nothing, Result, partial(_answer, name))
    return Tool(name, "final", Nothing, Result, partial(_act, name), effect=lambda _: CALLS[name]["effect"])


def _answer(name: str, _: Db, __: Nothing, ___: Moment) -> Result:
    return Result(result=CALLS[name]["result"])


def _act(name: str, db: Db, _: Nothing, __: Moment) -> Result:
    db.write("INSERT INTO effects VALUES (?)", CALLS[name]["effect"])
    return Result(result=CALLS[name]["result"])


def _step(number: int) -> ProcedureStep:
    step = STEPS[number]
    calls = {call["tool"]: Call(call["tool"], {}) for call in step["calls"]}
    return ProcedureStep(
        step["name"],
        after=(STEPS[number - 1]["name"],) if number else (),
        on="" if number else "begun",
        reads=lambda _: {tool: call for tool, call in calls.items() if tool not in WRITERS},
        judgment="act",
        documents=lambda _: {"shown": _prompt(step)},
        effects=partial(_called, [call for tool, call in calls.items() if tool in WRITERS]),
    )


def _before(step: Mapping[str, Any], of: list[str]) -> list[str]:
    return [text for begin, end in step["before"] for text in of[begin:end]]


def _prompt(step: Mapping[str, Any]) -> str:
    texts = filter(None, (*_before(step, PIECES), step["shown"]))
    return f"{step['name']}\n" + "\n\n".join(texts)


def _called(calls: list[Call], _: Facts) -> list[Call]:
    return calls


def _right(_: str, documents: Mapping[str, str]) -> Json:
    return {"reply": REPLIES[documents["shown"].partition("\n")[0]]}


def _audit(db: Db) -> Iterable[Standing]:
    for tool in EFFECTS:
        yield Standing(tool, db.value("SELECT count(*) FROM effects WHERE tool = ?", tool), owed=True)


def _reference(world: World) -> None:
    for tool in EFFECTS:
        world.call(tool, {}, tool)


def _nothing(_: World) -> None:
    pass
