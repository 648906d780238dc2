"""The points of a call at which the probe injects a fault. A cell is one call with a fault at one point.

Each point is one `StrikePoint`. This module has the built-in points. Another package declares more in the entry-point group
`recovery_bench.points`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, get_args

from bench.common.registry import Part, Registry
from bench.record.probe_events import CallClass

DoorAbility = Literal["hold", "twice", "mcp_error"]
"""What a door, through which calls pass the gateway, may be able to do: hold back a call or its response; deliver a call twice;
answer with an error in both forms of MCP."""
CallAction = Literal["pass", "twice", "again", "hold", "error", "malformed", "rate_limit", "answer", "drop"]
"""What the gateway does with a call that has arrived.

pass       it forwards the call unchanged
twice      it forwards the call twice, the second time under a new id; it drops the second response
again      it forwards the call unchanged, and `LiveCall.deliver` sends it once more after the agent's next call with an effect
hold       it keeps the call from the server, and answers nothing. If the client gives up, `CallGate.note_wait_end` sends the
           call later by `LiveCall.deliver`. If the client waits longer than `patience`, the door awaits
           `CallGate.note_passed_on` and forwards the call unchanged
error      it does not forward the call, and answers with the door's error (`isError`, a JSON-RPC error, HTTP 503: see `form`)
malformed, rate_limit   the same for a request to a model: a malformed reply; HTTP 429
answer     it does not forward the call, and answers with `LiveCall.replacement`
drop       it does not forward the call, and answers nothing: the agent was killed
"""
AnswerAction = Literal[
    "give", "break", "silence", "error", "late", "stale", "empty", "garbled", "too_large", "cut_off", "half", "drop"
]
"""What the gateway does with a server's response.

give       it forwards the response unchanged
break      it breaks the connection instead
silence    it sends nothing until the client disconnects, cancels, or repeats the request, or until `patience` ends. If the
           client then still waits, the door notes "waits_longer" and forwards the response
error      it sends an error instead, as a proxy or a failing server does after a request was done (HTTP 504, `isError`)
late       as `silence`; then it forwards the response if the connection is still open
stale      it sends the response that the same read had before the last effect (`LiveCall.replacement`)
empty, garbled, too_large   it sends a damaged response of a read
cut_off    a model's reply ends in the middle; `half`: a stream ends after half of its events, `break` before the first
drop       it sends nothing: the agent was killed
"""
AgentDeath = Literal["", "arrived", "done", "given", "next"]
"""When the agent is killed: never; after the call arrived and before it is forwarded; after the call is done and before its
response is sent; after the last byte of the response; when the agent's next request arrives, which is not forwarded."""


@dataclass(frozen=True)
class StrikePoint(Part):
    """A point of a call: when its request is forwarded, when its response is sent, and whether the agent is killed.

    when      the clause of a report on the point; `{}` stands for the call
    of        the classes of calls that have the point
    before    what the gateway does with the struck call
    after     what the gateway does with the response. `forms` can give another action for a wire form
    death     when the agent is killed; `processes`: how many processes of the agent are started afterwards
    others    whether another writer changes a store right before the call is done
    forms     the wire forms, the default first: form -> the action on the response in that form
    usual     door -> how many of the forms become cells unless all forms are requested; for other doors only the default does
    needs     what a door must be able to do; "" for nothing
    streams   whether only a streamed reply has the point
    by_tool   whether the tool gets the call twice, so that a repeated effect is the tool's fault
    when_in, death_in   form -> the clause, and when the agent is killed, where they differ from `when` and `death`
    """

    when: str
    of: tuple[CallClass, ...]
    before: CallAction = "pass"
    after: AnswerAction = "give"
    death: AgentDeath = ""
    processes: int = 1
    others: bool = False
    forms: Mapping[str, AnswerAction] = field(default_factory=dict, hash=False)
    usual: Mapping[str, int] = field(default_factory=dict, hash=False)
    needs: Literal["", DoorAbility] = ""
    streams: bool = False
    by_tool: bool = False
    when_in: Mapping[str, str] = field(default_factory=dict, hash=False)
    death_in: Mapping[str, AgentDeath] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        self.refuse_unknown("of", self.of, get_args(CallClass))
        self.refuse_unknown("before", (self.before,), get_args(CallAction))
        self.refuse_unknown("after", (self.after, *self.forms.values()), get_args(AnswerAction))
        self.refuse_unknown("death", (self.death, *self.death_in.values()), get_args(AgentDeath))
        self.refuse_unknown("needs", [self.needs] if self.needs else [], get_args(DoorAbility))


_WRITE: tuple[CallClass, ...] = ("effect", "unseen")
_READ: tuple[CallClass, ...] = ("read", "unseen")
_MODEL: tuple[CallClass, ...] = ("model",)
IS_ERROR, JSON_RPC = "is_error", "json_rpc"
"""The two wire forms of an MCP error: a result with `isError`, and a JSON-RPC error."""
OURS = (
    StrikePoint(
        "in_flight",
        "the request of {} is still under way when the agent looks",
        _WRITE,
        before="hold",
        needs="hold",
    ),
    StrikePoint(
        "lost",
        "the answer of {} is lost",
        _WRITE,
        after="break",
        forms={"break": "break", "error": "error", "silence": "silence"},
        usual={"http": 2},
        when_in={"error": "{} is done and an error is its answer"},
    ),
    StrikePoint("unacknowledged", "the agent dies after {} is done and before it gets the answer", _WRITE, death="done"),
    StrikePoint(
        "resumed_twice",
        "the agent dies after {} is done, and two processes go on at the same time",
        _WRITE,
        death="done",
        processes=2,
        forms={"done": "give", "undone": "give"},
        when_in={"undone": "the agent dies before {} is done, and two processes go on at the same time"},
        death_in={"undone": "arrived"},
    ),
    StrikePoint("meanwhile", "another writer changes what {} changes, right before it is done", ("effect",), others=True),
    StrikePoint("acknowledged", "the agent dies right after it gets the answer of {}", _WRITE, death="given"),
    StrikePoint("acknowledged_next", "the agent dies at its next request after {}", _WRITE, death="next"),
    StrikePoint("late", "the answer of {} comes late", _WRITE, after="late", needs="hold"),
    StrikePoint("twice", "{} is delivered twice", _WRITE, before="twice", needs="twice", by_tool=True),
    StrikePoint(
        "redelivered",
        "{} is delivered again after the agent's next effect",
        _WRITE,
        before="again",
        needs="twice",
        by_tool=True,
    ),
    StrikePoint("killed_before", "the agent dies before {} is done", _WRITE, death="arrived"),
    StrikePoint("error", "{} fails", ("effect", "read", "unseen"), before="error", forms={IS_ERROR: "give", JSON_RPC: "give"}),
    StrikePoint("stale", "{} answers with what was true before the last effect", _READ, after="stale"),
    StrikePoint("empty", "{} answers with nothing", _READ, after="empty"),
    StrikePoint("garbled", "{} answers with garbled content", _READ, after="garbled"),
    StrikePoint("too_large", "{} answers with more than can be read", _READ, after="too_large"),
    StrikePoint("model_lost", "the reply of {} is lost", _MODEL, after="break", forms={"break": "break", "silence": "silence"}),
    StrikePoint("model_error", "{} fails", _MODEL, before="error"),
    StrikePoint("rate_limit", "{} refuses a request for its rate", _MODEL, before="rate_limit"),
    StrikePoint("cut_off", "the reply of {} is cut off", _MODEL, after="cut_off"),
    StrikePoint("malformed", "the reply of {} is malformed", _MODEL, before="malformed"),
    StrikePoint("stream_before", "the stream of {} breaks before its first event", _MODEL, after="break", streams=True),
    StrikePoint("stream_half", "the stream of {} breaks after half of it", _MODEL, after="half", streams=True),
)
"""The built-in points in the order in which cells are run: the most severe first."""
POINTS = Registry("point", StrikePoint)


def point_of(name: str | None) -> StrikePoint:
    """Return the point with this name. If its package is not installed, as when a recording is read, the point has only a
    name; without a name it does nothing."""
    name = name or ""
    return POINTS[name] if name in POINTS else StrikePoint(name, f"{{}} is struck at {name}", ())


def severity_rank(name: str) -> int:
    """Return the position of a point in the order of severity; 0 is the most severe."""
    return POINTS.names.index(name) if name in POINTS else len(POINTS.names)


def points_of(call_class: CallClass) -> Sequence[StrikePoint]:
    """Return the points that calls of this class have, the most severe first."""
    return [point for point in POINTS if call_class in point.of]


def selects_cell(word: str, plan: str) -> bool:
    """Return whether a word given with `--only` selects a cell. The name of a point selects only cells of that point."""
    if word in POINTS:
        return re.search(rf"#\d+\.{word}(\.|$)", plan) is not None
    return word in plan or fnmatchcase(plan, f"*{word}*")
