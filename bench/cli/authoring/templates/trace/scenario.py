"""A pack made from a recorded run of an agent, to be run again under faults. `trace.json` has the steps of the run.

There are two variants of the same run. In `answers` each step is a subtask that reads the texts that the recorded step was
shown; architectures for tasks run it. In `effects` each tool call is an effect in a world, so that a fault can kill the
process at the call.
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
"""The name of a call, such as `step_07_refund` -> the call. Each call is a tool of its own, so that a fault can strike one."""
PIECES = [text for step in STEPS for text in (step["shown"], f"[assistant]\n{step['reply']}")]
"""All texts of the run in order: for each step the new text that it was shown, and its reply. A step's `before` has the ranges
of these texts that the step was shown again."""
NAMES = [name for step in STEPS for name in (f"{step['name']}.md", step["name"])]
"""The names of PIECES, as subtasks read them: for each step its document, and the output of its subtask."""
WRITERS = [tool for tool, call in CALLS.items() if not call["reads"]]
EFFECTS = list(dict.fromkeys(CALLS[tool]["effect"] for tool in WRITERS))
"""The names of the effects. An effect has the name of the first call that makes it; a later call can make the same effect."""
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
    """Return the variant `answers`: a subtask for each step."""
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
    """Return the variant `effects`: a step asks the model with the recorded prompt, and then makes the recorded calls."""
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
    """Return the tool of one recorded call. It returns the recorded result."""
    if CALLS[name]["reads"]:
        return Tool(name, "read", Nothing, Result, partial(_answer, name))
    return Tool(name, "final", Nothing, Result, partial(_act, name), effect=lambda _: CALLS[name]["effect"])


def _answer(name: str, _: Db, __: Nothing, ___: Moment) -> Result:
    """Return the recorded result of a call that changes nothing."""
    return Result(result=CALLS[name]["result"])


def _act(name: str, db: Db, _: Nothing, __: Moment) -> Result:
    """Make the effect of a call, and return the recorded result."""
    db.write("INSERT INTO effects VALUES (?)", CALLS[name]["effect"])
    return Result(result=CALLS[name]["result"])


def _step(number: int) -> ProcedureStep:
    """Return the step of this number, which follows the step before it."""
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


def _before(step: Mapping[str, Any], texts: list[str]) -> list[str]:
    """Return the texts, or their names, that a step was shown again."""
    return [text for begin, end in step["before"] for text in texts[begin:end]]


def _prompt(step: Mapping[str, Any]) -> str:
    """Return the whole prompt of a step. The first line is the step's name."""
    texts = filter(None, (*_before(step, PIECES), step["shown"]))
    return f"{step['name']}\n" + "\n\n".join(texts)


def _called(calls: list[Call], _: Facts) -> list[Call]:
    return calls


def _right(_: str, documents: Mapping[str, str]) -> Json:
    """Return the recorded reply to a prompt."""
    return {"reply": REPLIES[documents["shown"].partition("\n")[0]]}


def _audit(db: Db) -> Iterable[Standing]:
    """Yield how often each effect stands in the database."""
    for tool in EFFECTS:
        yield Standing(tool, db.value("SELECT count(*) FROM effects WHERE tool = ?", tool), owed=True)


def _reference(world: World) -> None:
    """Make each effect once."""
    for tool in EFFECTS:
        world.call(tool, {}, tool)


def _nothing(_: World) -> None:
    """Make no effect: a wrong course."""
