"""SWE-agent and mini-SWE-agent: a file is one trial, whose only tool is a shell."""

from __future__ import annotations

import re
from dataclasses import replace

from pydantic import AliasPath, Field, TypeAdapter

from bench.common.bounds import Many
from bench.elsewhere.formats.members import ChatMessage, ItemId, MemberModel, calls_in_message, name_of
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import AGENT, AskedCall, RecordedRun, RecordedTurn, trial_of


class SweStep(MemberModel):
    action: str
    observation: str = ""
    response: str | None = None


class SweRun(MemberModel):
    trajectory: Many[SweStep]
    sent: int = Field(0, validation_alias=AliasPath("info", "model_stats", "tokens_sent"))
    received: int = Field(0, validation_alias=AliasPath("info", "model_stats", "tokens_received"))


def swe_run(file_name: str, run: SweRun) -> RecordedRun:
    """Return a trajectory of SWE-agent as a trial. The file does not say which steps failed, nor whether the task was
    solved."""
    turns = list[RecordedTurn]()
    for number, step in enumerate(run.trajectory):
        turns.append(RecordedTurn(AGENT, step.response or "", (AskedCall(str(number), "shell", {"command": step.action}),)))
        turns.append(RecordedTurn("tool", step.observation, answers=str(number)))
    if turns:
        turns[-1] = replace(turns[-1], provider=(run.sent, run.received))  # the file counts the tokens of the whole trial
    return RecordedRun("SWE-agent", (trial_of(file_name, turns, name_of(file_name, ".traj"), "0"),))


class MiniRun(MemberModel):
    instance_id: ItemId = ""
    model: str | None = Field(None, validation_alias=AliasPath("info", "config", "model", "model_name"))
    messages: Many[ChatMessage]


MINI_COMMAND_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)[^\S\n]*\n([^`]*)```")
MINI_RETURN_CODE = re.compile(r"\s*<returncode>(-?\d{1,6})</returncode>")


def mini_run(file_name: str, run: MiniRun) -> RecordedRun:
    """Return a trajectory of mini-SWE-agent as a trial.

    If a reply has exactly one block of shell commands, the block is a call, and the next message is the call's answer. The
    message that ends the trial is also an answer. The return code in the answer says whether the call failed.
    """
    turns, open_id = list[RecordedTurn](), ""
    for number, message in enumerate(run.messages):
        text = message.content or ""
        answered_id = message.tool_call_id or (open_id if message.role in ("user", "tool", "exit") else "")
        if answered_id:
            code = MINI_RETURN_CODE.match(text)
            failed = int(code.group(1)) != 0 if code else None
            turns.append(RecordedTurn("tool", text, answers=answered_id, failed=failed))
            open_id = open_id if answered_id != open_id else ""
            continue
        commands = MINI_COMMAND_BLOCK.findall(text) if message.role == AGENT and not message.tool_calls else []
        block = [AskedCall(str(number), "shell", {"command": commands[0].strip()})] if len(commands) == 1 else []
        calls = (*block, *calls_in_message(message.tool_calls))
        open_id = calls[-1].id if calls else ""
        turns.append(RecordedTurn(message.role, text, calls))
    name = run.instance_id or name_of(file_name, ".traj.json")
    return RecordedRun("mini-SWE-agent", (trial_of(file_name, turns, name, "0"),), run.model or "")


FORMATS = (
    RecordedFormat("mini-SWE-agent", frozenset({"trajectory_format", "messages"}), TypeAdapter(MiniRun), mini_run),
    RecordedFormat("SWE-agent", frozenset({"trajectory", "info"}), TypeAdapter(SweRun), swe_run),
)
