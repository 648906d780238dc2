"""The events of a probe's cell, one small type for each kind. A cell is a trial in which the agent ran and a fault struck one
call.

A cell's record has its calls at the gateway and its readings of the stores, in the order in which they happened, then the
processes of the agent (`bench.record.process_events`), and `CellJudged`. The record of the last clean run has
`CellsPlanned` besides. Seconds count from the start of the cell. A call's name is `DOOR.TOOL#N`: the N-th such call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Literal, get_args

from bench.common.bounds import Lookup, Many
from bench.common.numbers import Count, Seconds
from bench.common.values import dataclass
from bench.record.events import EventPart
from bench.record.probe_rows import RowDifference

CallClass = Literal["effect", "read", "unseen", "model"]
"""The class of a call. Calls of one tool can have different classes.

effect   a witness saw a difference
read     no witness saw a difference, and the call claims to read
unseen   no witness saw a difference, and the call claims to write or claims nothing: repeated, it is no damage and no pass
model    a request to the model
"""
CLEAN, CONTROL = "clean", "control"
"""The plans of trials in which no fault strikes: CLEAN for the first trials, CONTROL for the trials among the cells."""
EARLY = "written_early"
"""The plan of trials in which another writer comes before the agent begins, or counts up what the call counts up in the same
row. They are no cells: each decides whether a call of a cell overwrites what the other writer wrote, or would set the same
value whatever was there, or heeds the row's version."""
Went = Literal["", "disconnected", "cancelled", "asked_again", "waits_longer"]
"""How the client ended its wait for a call under silence; `waits_longer`: it still waited when the probe's patience ended."""
RepeatCause = Literal["", "client", "model", "restart"]
"""Why a call was made beyond the clean count.

client    the client, or a proxy, made it again: no reply of the model came since the first call
model     a reply of the model asked for it
restart   the agent made it again after its process had died
"""
FindingKind = Literal["doubled", "extra", "changed", "overwritten", "lost"]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
"""The kinds of findings, the gravest first."""
Culprit = Literal["agent", "tool"]
"""To whom damage is ascribed: to the tool if the tool got one call twice, else to the agent."""
CellVerdict = Literal[
    "doubled",
    "extra",
    "changed",
    "overwritten",
    "lost",
    "did_not_end",
    "repeated",
    "gave_up",
    "compensated",
    "absorbed",
    "same",
    "not_applicable",
    "no_verdict",
]
"""How a cell ended, the gravest first.

doubled         an effect of a call stands more than once
extra           a row differs that no clean run changes
changed         a row has another value than in clean runs
overwritten     what another writer changed meanwhile does not stand
lost            an effect does not stand, and the agent said that it was done
did_not_end     its time limit ended it
repeated        a call was done more often than in clean runs, and no witness saw what it did: this is no damage and no pass
gave_up         an effect does not stand, and the agent did not say that it was done; nothing else differs
compensated     rows differ, and the owner's checks answer as after clean runs
absorbed        calls were done more often than the rows show
same            the rows are those of clean runs, and so are the calls
not_applicable  the fault was not delivered
no_verdict      `why` says what kept it from one
"""
DAMAGE = frozenset[CellVerdict](KINDS)
JudgedBy = Literal["witness", "journal"]
GatewayMend = Literal["key", "memory", "lease", "look", "swap", "client", "reply", "tool"]
"""What the gateway can mend while a cell is run again.

key     a repeated call gets its first answer
memory  after a restart the journal answers for what was done before
lease   one process at a time goes on
look    a call whose answer was given up is done before the agent looks
swap    a call is refused that was made before another writer changed what it changes
client  the answer arrives, so that no client has to ask again
reply   the model's reply is the one of the clean run
tool    a call that is delivered twice is done once
"""


@dataclass(frozen=True)
class GatewayCall:
    """A call as the gateway saw it.

    number     its place in the journal, from 1
    name       the call's name, `DOOR.TOOL#N`; `call_class` its class, as the clean runs or this cell show
    reads      whether its tool claims to read; None if it claims nothing
    arguments, answer   digests of their JSON, hidden values replaced; `answer` as the server gave it, None if it gave none
    life       the number of the agent's process that made it, from 1
    wire       the id that the protocol gives it; "" if it has none
    arrived, passed_on, answered, given   the seconds at which the call arrived, was passed on to the server and answered by it,
               and at which the agent was given an answer; None for what did not happen
    failed     whether the server's answer is an error
    point, form   the point and the form of the fault that struck it; None and "" if none did
    given_otherwise   whether the agent got something else than the answer, or nothing
    went       how its client ended the wait under silence
    repeats    the number of the call that it makes again beyond the clean count, and `cause` why; None if it repeats none
    continues  the number of the call to which it belongs: a session resumed, a task polled, input that the server asked for
    idempotent whether its method, or its server's claim, says that a repeated call has no further effect
    key        digest of its `Idempotency-Key`; "" without one
    tokens_in, tokens_out   the tokens of a request to the model, as its provider counted them, or else our tokenizer
    model      the model that a request named; "" for a tool's call
    """

    number: Count
    name: str
    door: str
    door_kind: str
    tool: str
    call_class: CallClass
    reads: bool | None
    arguments: str
    answer: str | None
    life: Count
    wire: str
    arrived: Seconds
    passed_on: Seconds | None
    answered: Seconds | None
    given: Seconds | None
    failed: bool = False
    point: str | None = None
    form: str = ""
    given_otherwise: bool = False
    went: Went = ""
    repeats: Count | None = None
    cause: RepeatCause = ""
    continues: Count | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    model: str = ""
    idempotent: bool = False
    key: str = ""
    kind: Literal["gateway_call"] = "gateway_call"


@dataclass(frozen=True)
class GatewayNoticed:
    """The gateway noticed an event that belongs to no call: changed tools, an invalid message, or a refused request."""

    door: str
    what: str
    at: Seconds
    kind: Literal["gateway_noticed"] = "gateway_noticed"


@dataclass(frozen=True)
class StoresRead:
    """A reading of all stores.

    started  the seconds at which the reading began
    digest   the digest of all stores' content
    changed  the rows that differ from the reading before it; for the first reading, from the state at the reset
    calls    the numbers of the calls that were in flight since the reading before it: they made the changes
    more     the number of further changed rows, beyond the bound on what is kept
    other    whether another writer, which the cell asks for, made the changes
    """

    started: Seconds
    digest: str
    changed: Many[RowDifference]
    calls: Many[Count] = ()
    more: Count = 0
    other: bool = False
    kind: Literal["stores_read"] = "stores_read"


@dataclass(frozen=True)
class CellFinding:
    """A difference from the clean state, for one effect.

    effect   the name of the call that has this effect in the clean runs; "" for rows that no clean run changes
    times    how often the effect is in the rows
    rows     the rows that differ: `before` as clean runs leave them, `after` as they are now
    calls    the numbers of the calls that made the difference
    culprit  to whom the damage is ascribed
    """

    kind: FindingKind
    effect: str
    times: Count
    rows: Many[RowDifference]
    calls: Many[Count]
    culprit: Culprit = "agent"


@dataclass(frozen=True)
class CellJudged:
    """The verdict on a cell, a clean run or a control.

    call, point, form   the name of the call to be struck, and the point and form of the fault; "", None and "" without a fault
    call_class  the class of the struck call
    struck      the number of the struck call; None if the fault was not delivered
    verdict, findings   the gravest verdict, and all differences from the clean state
    why         one line: what kept it from a verdict, why it is not applicable, or how it ended
    by          who saw the effect of the struck call: `witness`, or `journal` if no witness saw it
    said_done   whether the agent said that it was done
    printed     the digest of the end of the agent's output; None if not known
    on_stdout   the digest of the end of its standard output alone; None if not known
    absorbed    the number of calls that were done again without a trace in the rows
    half_way    whether the agent gave up after a part of its effects: the verdict is then of a second start
    checks      the digests of the answers of the owner's checks
    voids       for a control that is not `same`: plan and repetition of the cells that lose their verdicts by it
    mended      what the gateway did in place of the agent or its tool, to find the part to blame
    """

    call: str
    point: str | None
    form: str
    call_class: CallClass | None
    struck: Count | None
    verdict: CellVerdict
    said_done: bool
    printed: str | None
    findings: Many[CellFinding] = ()
    why: str = ""
    by: JudgedBy = "witness"
    absorbed: Count = 0
    half_way: bool = False
    checks: Many[str] = ()
    voids: Many[tuple[str, Count]] = ()
    mended: Many[GatewayMend] = ()
    on_stdout: str | None = None
    kind: Literal["cell"] = "cell"

    @property
    def is_damage(self) -> bool:
        return self.verdict in DAMAGE


@dataclass(frozen=True)
class PlannedCall:
    """A call of the clean runs.

    tool     the tool's name at its door; `reads` whether the tool claims to read
    rows     the number of rows that it changed in the clean run that let calls through one by one
    """

    name: str
    door: str
    tool: str
    call_class: CallClass
    reads: bool | None
    rows: Count

    @property
    def contradicts(self) -> bool:
        """Whether it claims to read and changed rows."""
        return self.reads is True and self.call_class == "effect"


@dataclass(frozen=True)
class CellsPlanned:
    """What the clean runs showed, and the cells that follow from it.

    calls       the calls, in the order of the clean run
    cells       the plans of the cells, the gravest first; `left_out` the number of further cells, which were not asked for
    volatile    what differs between clean runs: `STORE.TABLE.COLUMN`, or a part of a call's arguments, or of a prompt
    one_by_one  whether the rows are the same when calls are let through one by one; else an effect is that of a group of calls
                that were in flight together
    again       the calls that were repeated with the same effect in the clean runs although the owner does not intend it
    race        the rows that differ when calls are let through one by one: `before` as they are when calls overlap
    written     the paths outside of the stores at which something was written, which no witness reads
    memories    further such paths, at which a framework keeps what the agent knows -> whose file it is, in words
    refused     the hosts and ports that it reached for by the network, and that `probe.toml` does not name
    left_running   the commands of processes that still ran when the agent had ended, and that the probe ended
    seconds     the seconds of a clean run; its record has its tokens
    """

    calls: Many[PlannedCall]
    cells: Many[str]
    left_out: Count
    volatile: Many[str]
    one_by_one: bool
    seconds: Seconds
    again: Many[str] = ()
    race: Many[RowDifference] = ()
    written: Many[str] = ()
    memories: Lookup[str, str] = field(default_factory=dict)
    refused: Many[str] = ()
    left_running: Many[str] = ()
    kind: Literal["cells_planned"] = "cells_planned"


def plan_of(call: str, point: str, form: str = "") -> str:
    """Return the plan of the cell that strikes a call at this point. `form` is given if it is not the point's first form."""
    return f"{call}.{point}.{form}" if form else f"{call}.{point}"


def mended_plan(plan: str, parts: Iterable[GatewayMend]) -> str:
    """Return the plan of a cell that is run again with these parts mended."""
    return "+".join((plan, *parts))


EVENTS = EventPart.of(GatewayCall, GatewayNoticed, StoresRead, CellJudged, CellsPlanned)
