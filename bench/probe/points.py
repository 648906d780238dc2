"""The points of a call at which the probe strikes, once in each cell.

A point is one entry, and code knows nothing else of it. Ours stand here. Another package declares its own in the group
`recovery_bench.points` of its entry points.
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
"""What a door may be able to do: keep a call, or its answer, under silence; deliver a call twice; answer with an error in both
forms of MCP."""
CallFate = Literal["pass", "twice", "again", "hold", "error", "malformed", "rate_limit", "answer", "drop"]
"""What becomes of a call that has arrived.

pass       it is passed on as it came
twice      it is passed on twice, the second time under a new id; the second answer is dropped
again      it is passed on as it came, and `LiveCall.deliver` delivers it once more after the agent's next call with an effect
hold       it is kept from the server under silence. If the client gives up, `went` delivers it later by `LiveCall.deliver`.
           If it waits longer than `patience`, the door awaits `passes`, and passes it on as it came
error      it is not passed on, and the door's error is the answer (`isError`, a JSON-RPC error, HTTP 503, as `form` says)
malformed, rate_limit   the same of a model's request: a reply that is no reply; HTTP 429
answer     it is not passed on, and `LiveCall.instead` is the answer
drop       it is not passed on, and nothing is answered: the agent was killed
"""
AnswerFate = Literal[
    "give", "break", "silence", "error", "late", "stale", "empty", "garbled", "too_large", "cut_off", "half", "drop"
]
"""What becomes of an answer that the server gave.

give       it is given as it came
break      the connection is broken instead
silence    nothing is given until the client disconnects, cancels, or asks again, or until `patience` ends. Then, if it still
           waits, the door notes "it waits longer" (`Gate.waits_longer`) and gives the answer
error      an error stands in its place, as a proxy or a broken server answers after the call was done (HTTP 504, `isError`)
late       as silence, and then the answer is given if the connection still stands
stale      the answer that this read had before the last effect is given (`LiveCall.instead`)
empty, garbled, too_large   what stands for the answer of a read
cut_off    a model's reply ends in the middle; `half`: a stream ends after half of its events, `break` before the first
drop       nothing is given: the agent was killed
"""
AgentDeath = Literal["", "arrived", "done", "given", "next"]
"""When the agent is killed, if at all: when the call has arrived and was not passed on; when it is done and its answer was not
given; when the last byte of the answer was given; when the next request arrives, which is not passed on."""


@dataclass(frozen=True)
class StrikePoint(Part):
    """A point of a call.

    when      the clause of a report on it; `{}` stands for the call
    of        the classes of the calls that have it
    before    what becomes of the struck call
    after     what becomes of its answer. A form that is a key of `forms` has a fate of its own
    death     when the agent is killed; `processes`: how many of it go on at the same time then
    others    whether another writer changes a store right before the call is done
    forms     the wire forms, the default first: form -> the fate of the answer in that form
    usual     door -> how many of the forms are cells unless all forms are asked for; elsewhere the default is
    needs     what a door must be able to do; "" for nothing
    streams   whether only a reply has it that comes as a stream
    by_tool   whether the tool gets the call twice, so that what is done twice is the tool's doing
    when_in, death_in   form -> the clause, and when the agent is killed, where they are others
    """

    when: str
    of: tuple[CallClass, ...]
    before: CallFate = "pass"
    after: AnswerFate = "give"
    death: AgentDeath = ""
    processes: int = 1
    others: bool = False
    forms: Mapping[str, AnswerFate] = field(default_factory=dict, hash=False)
    usual: Mapping[str, int] = field(default_factory=dict, hash=False)
    needs: Literal["", DoorAbility] = ""
    streams: bool = False
    by_tool: bool = False
    when_in: Mapping[str, str] = field(default_factory=dict, hash=False)
    death_in: Mapping[str, AgentDeath] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        self.refuse_unknown("of", self.of, get_args(CallClass))
        self.refuse_unknown("before", (self.before,), get_args(CallFate))
        self.refuse_unknown("after", (self.after, *self.forms.values()), get_args(AnswerFate))
        self.refuse_unknown("death", (self.death, *self.death_in.values()), get_args(AgentDeath))
        self.refuse_unknown("needs", [self.needs] if self.needs else [], get_args(DoorAbility))


_WRITE: tuple[CallClass, ...] = ("effect", "unseen")
_READ: tuple[CallClass, ...] = ("read", "unseen")
_MODEL: tuple[CallClass, ...] = ("model",)
IS_ERROR, JSON_RPC = "is_error", "json_rpc"
"""The forms of an error of MCP."""
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
"""In the order in which cells are run: the gravest first."""
POINTS = Registry("point", StrikePoint)


def point_of(name: str) -> StrikePoint:
    """Return the point of this name. Of one whose package is not installed, as in a recording, only the name is known."""
    return POINTS[name] if name in POINTS else StrikePoint(name, f"{{}} is struck at {name}", ())


def gravity_of(name: str) -> int:
    """Return the place of a point among all, the gravest first."""
    return POINTS.names.index(name) if name in POINTS else len(POINTS.names)


def points_of(kind: CallClass) -> Sequence[StrikePoint]:
    """Return the points of a call of this class, the gravest first."""
    return [point for point in POINTS if kind in point.of]


def is_meant(word: str, plan: str) -> bool:
    """Return whether a word of `--only` means a cell: the name of a point means that point alone."""
    if word in POINTS:
        return re.search(rf"#\d+\.{word}(\.|$)", plan) is not None
    return word in plan or fnmatchcase(plan, f"*{word}*")
