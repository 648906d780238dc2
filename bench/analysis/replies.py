"""A trial's replies as the verifier saw them: which were rejected, for what kind of reason, and which no fault had touched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bench.analysis.faults import Receipt
from bench.digests import digest_of
from bench.runtime.events import Called, Event, Judged, of_kind
from bench.runtime.lineage import Lineage

Kind = Literal["cut_off", "missing_field", "form", "vocabulary", "content", "insufficient"]
"""Why a reply was rejected; of several reasons the first of these.

cut_off        it breaks off inside its JSON object, a code block, or a draft
missing_field  a field that its schema requires is not there: the paper's kind
form           there is no JSON object in it, its code blocks cannot be told apart, or a field is of another form than its
               schema says
vocabulary     all of its form is right, but a field holds a word outside the closed list that it may take
content        its form is right, but a check or a later validation refused what it says
insufficient   it is right so far as it goes, and too weak to build on
"""
KINDS: tuple[Kind, ...] = get_args(Kind)
MALFORMED: tuple[Kind, ...] = ("cut_off", "missing_field", "form", "vocabulary")
"""Kinds of a reply that does not fit its schema."""
FORM = ("schema", "empty", "refusal", "not_json", "cut_off", "code_blocks")
"""The reasons of a verdict that they come of."""
_BY_REASON: dict[str, Kind] = {
    **dict.fromkeys(("empty", "refusal", "not_json", "code_blocks"), "form"),
    "cut_off": "cut_off",
    "insufficient": "insufficient",
}
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_UNTOLD = re.compile(r"and \d+ more")
_OF_A_LIST = re.compile(r": Input (?:should be (?:'|-?\d|True\b|False\b)|tag ')")


def kind_of(reason: str, detail: str) -> Kind:
    """The kind of a rejection. What its schema said stands in the detail, its first three violations in pydantic's words."""
    return _violated(detail) if reason == "schema" else _BY_REASON.get(reason, "content")


def _violated(detail: str) -> Kind:
    said = [one for one in _QUOTED.sub("''", detail).split("; ") if not _UNTOLD.fullmatch(one)]
    if any(one.endswith(": Field required") for one in said):
        return "missing_field"
    return "vocabulary" if all(map(_OF_A_LIST.search, said)) else "form"


@dataclass(frozen=True)
class JudgedReply:
    """A reply, by the call that it ended, and all that the verifier ever said of it.

    subtasks   those that the call asked for
    exposed    a call that made its output carried a delivered fault, or it was made from an output of such a call
    kind       why it was rejected; '' where every part of it was always accepted
    digest     of what was asked (messages and seed) and of what was replied: equal for one reply that several trials were given
    """

    call: int
    subtasks: tuple[str, ...]
    attempt: int
    exposed: bool
    kind: Kind | Literal[""]
    digest: str


def judged_replies(events: Sequence[Event], receipts: Iterable[Receipt]) -> tuple[JudgedReply, ...]:
    """Each reply that was judged as it stood, once however many outputs it held. An output that several calls made is the last
    one's."""
    made = {call.call: call for call in of_kind(events, Called)}
    struck = [receipt.call for receipt in receipts if receipt.delivered and receipt.call is not None]
    touched = Lineage(events).calls_made_from(struck) if struck else frozenset()
    judged: dict[int, list[Judged]] = {}
    for verdict in of_kind(events, Judged):
        if verdict.calls and verdict.view != "undamaged":
            judged.setdefault(verdict.calls[-1], []).append(verdict)
    return tuple(_reply(made[call], verdicts, touched) for call, verdicts in judged.items() if call in made)


def _reply(call: Called, verdicts: Sequence[Judged], touched: frozenset[int]) -> JudgedReply:
    kinds = {kind_of(verdict.reason, verdict.detail) for verdict in verdicts if not verdict.accepted}
    asked = [f"{message.role} {message.content}" for message in call.messages]
    return JudgedReply(
        call=call.call,
        subtasks=call.subtasks,
        attempt=call.attempt,
        exposed=not touched.isdisjoint(one for verdict in verdicts for one in verdict.calls),
        kind=next((kind for kind in KINDS if kind in kinds), "") if kinds else "",
        digest=digest_of("\n".join([*asked, str(call.seed), str(call.reply)])),
    )
