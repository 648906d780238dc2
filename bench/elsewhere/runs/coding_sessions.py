"""Sessions of coding agents, with one line for each event: sessions of Claude Code (`~/.claude/projects`) and of Codex
(`~/.codex/sessions`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from bench.elsewhere.runs.messages import ImportedMessage, as_text, message_of, tables_in
from bench.elsewhere.runs.spans import nanoseconds
from bench.elsewhere.runs.steps import OpenCall, RunBuilder, StepCost, as_shown

CODEX_LINE_TYPES = ("session_meta", "response_item", "event_msg", "turn_context")
CLAUDE_TOKEN_KEYS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
CODEX_CALL_TYPES = ("function_call", "custom_tool_call", "local_shell_call")
CODEX_RESULT_TYPES = ("function_call_output", "custom_tool_call_output")


def is_claude_line(value: Any) -> bool:
    """Whether a value is a message of a session of Claude Code."""
    return isinstance(value, dict) and isinstance(value.get("message"), dict) and value.get("type") in ("user", "assistant")


def is_codex_line(value: Any) -> bool:
    """Whether a value is a line of a session of Codex."""
    return isinstance(value, dict) and isinstance(value.get("payload"), dict) and value.get("type") in CODEX_LINE_TYPES


def add_session(lines: Sequence[Mapping[str, Any]], run: RunBuilder) -> None:
    """Add the steps of a session."""
    _SessionReader(run).read(_claude_turns(lines, run) if any(map(is_claude_line, lines)) else _codex_turns(lines, run))


class SessionTurn:
    """The content of one line of a session: a message that the model is shown, or a part of a reply. `reply` identifies the
    reply; it is "" for a message that the model is shown. `results` are (id of the call, text, whether it failed)."""

    def __init__(self, time: float, reply: str, message: ImportedMessage, cost: StepCost | None = None):
        self.time, self.reply, self.message, self.cost = time, reply, message, cost
        self.results: list[tuple[str, str, bool | None]] = []


class _SessionReader:
    """Adds the turns of a session to a run. `new` has the messages since the last reply, `parts` the parts of the present
    reply, and `began` the time of the last message, in seconds."""

    def __init__(self, run: RunBuilder):
        self.run, self.new = run, list[str]()
        self.parts, self.began = list[SessionTurn](), 0.0

    def read(self, turns: Iterator[SessionTurn]) -> None:
        """Add all turns to the run. Successive turns with the same `reply` become one reply."""
        for turn in turns:
            if self.parts and turn.reply != self.parts[0].reply:
                self._end_reply()
            if turn.reply:
                self.parts.append(turn)
                continue
            for id_, text, failed in turn.results:
                self.run.answer(id_, text, failed, turn.time)
            if turn.message.text:
                self.new.append(as_shown(turn.message.role, turn.message.text))
            self.began = turn.time
        if self.parts:
            self._end_reply()

    def _end_reply(self) -> None:
        """Add the reply that consists of the collected parts."""
        calls = [call for part in self.parts for call in part.message.calls]
        text = "\n".join(part.message.text for part in self.parts if part.message.text)
        token_counts = [part.cost.tokens for part in self.parts if part.cost and part.cost.tokens is not None]
        cost = StepCost(token_counts[-1] if token_counts else None, None, self.began, self.parts[-1].time)
        words = ImportedMessage("assistant", text, tuple(calls)).words
        if words:
            self.run.require_size(len(self.run.steps) + 1)
            all_pieces = ((0, self.run.next_piece),) if self.run.steps else ()
            self.run.add(self.new, all_pieces, words, calls, cost)
            self.new = []
        self.parts = []


def _claude_turns(lines: Sequence[Mapping[str, Any]], run: RunBuilder) -> Iterator[SessionTurn]:
    """Yield the turns of a session of Claude Code."""
    for number, line in enumerate(lines):
        if not is_claude_line(line):
            run.left_out[f"line of type '{str(line.get('type', ''))[:40]}'"] += 1
            continue
        if line.get("isSidechain"):
            run.left_out["line of a subagent's thread, read in its place"] += 1
        message, time = line["message"], _seconds(line.get("timestamp"))
        if line["type"] == "assistant":
            reply, usage = message_of(message, run.left_out, "assistant"), message.get("usage")
            counts = [usage.get(name) for name in CLAUDE_TOKEN_KEYS] if isinstance(usage, dict) else []
            counted = [count for count in counts if isinstance(count, int) and count >= 0]
            for call in reply.calls:
                call.began = time
            yield SessionTurn(time, str(message.get("id") or number), reply, StepCost(sum(counted) if counted else None))
            continue
        turn = SessionTurn(time, "", message_of(message, run.left_out))
        parts = {str(part.get("tool_use_id")): part for part in tables_in(message.get("content"))}
        turn.results = [(id_, text, _is_error(parts.get(id_))) for id_, text in turn.message.results]
        yield turn


def _is_error(part: Mapping[str, Any] | None) -> bool | None:
    """Return whether the part of a tool's result says that the tool failed; None if it does not say."""
    return part["is_error"] if part and isinstance(part.get("is_error"), bool) else None


def _codex_turns(lines: Sequence[Mapping[str, Any]], run: RunBuilder) -> Iterator[SessionTurn]:
    """Yield the turns of a session of Codex: its messages, tool calls, results of tool calls, and token counts. The parts of a
    reply between two messages to the model have the same number."""
    reply_number, failed_by_id = 0, _failed_by_id(lines)
    for line in lines:
        item, time = line.get("payload"), _seconds(line.get("timestamp"))
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(kind, str) or line.get("type") not in ("response_item", "event_msg"):
            continue
        if kind == "token_count" and isinstance(info := item.get("info"), dict):
            usage = info.get("last_token_usage")
            counts = [usage.get(name) for name in ("input_tokens", "output_tokens")] if isinstance(usage, dict) else []
            counted = [count for count in counts if isinstance(count, int) and count >= 0]
            cost = StepCost(sum(counted) if counted else None)
            yield SessionTurn(time, f"{reply_number}", ImportedMessage("assistant", ""), cost)
        elif line["type"] == "event_msg":
            continue
        elif kind in CODEX_RESULT_TYPES:
            reply_number += 1
            output = item.get("output")
            fields = output if isinstance(output, dict) else {}
            text = as_text(fields.get("content", output)) if output is not None else ""
            id_ = str(item.get("call_id", ""))
            failed_by_result = not fields["success"] if isinstance(fields.get("success"), bool) else None
            failed = failed_by_id.get(id_, failed_by_result)
            turn = SessionTurn(time, "", ImportedMessage("tool", text))
            turn.results = [(id_, text, failed)]
            yield turn
        elif kind in CODEX_CALL_TYPES:
            call_input = next((item[key] for key in ("arguments", "input", "action") if item.get(key) is not None), "")
            call = OpenCall(
                str(item.get("call_id") or ""), str(item.get("name") or "local_shell"), as_text(call_input), began=time
            )
            yield SessionTurn(time, f"{reply_number}", ImportedMessage("assistant", "", (call,)))
        elif kind == "message":
            message = message_of(item, run.left_out)
            is_reply = message.role == "assistant"
            reply_number += not is_reply
            yield SessionTurn(time, f"{reply_number}" if is_reply else "", message)
        else:
            run.left_out[f"item of type '{kind[:40]}'"] += 1


def _failed_by_id(lines: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Return whether each finished command failed, by the id of its call."""
    ends = [line["payload"] for line in lines if isinstance(line.get("payload"), dict)]
    return {
        str(end.get("call_id")): end["exit_code"] != 0
        for end in ends
        if end.get("type") == "exec_command_end" and isinstance(end.get("exit_code"), int)
    }


def _seconds(text: Any) -> float:
    """Return a time in seconds; 0 if the text is no time."""
    try:
        return nanoseconds(datetime.fromisoformat(text)) / 1e9 if isinstance(text, str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
