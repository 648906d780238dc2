"""The replies of a trial as the verifier saw them: which were rejected, for which reason, and which no fault had touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from bench.common.digests import digest_of
from bench.common.values import dataclass
from bench.read.analysis.faults import Receipt
from bench.record.events import Called, Event, Judged, ViolationKind, of_kind
from bench.record.lineage import Lineage

KINDS: tuple[ViolationKind, ...] = get_args(ViolationKind)
MALFORMED: tuple[ViolationKind, ...] = ("cut_off", "missing_field", "form", "vocabulary")
"""The kinds of replies that do not fit their schema."""
FORM = ("schema", "empty", "refusal", "not_json", "cut_off", "code_blocks")
"""The verdicts' reasons that these kinds have."""


@dataclass(frozen=True)
class JudgedReply:
    """A judged reply, with the number of the call that it ended.

    subtasks   the subtasks that the call asked for
    exposed    whether a call that made its output carried a delivered fault, or the output was made from such a call's output
    kind       why it was rejected; '' if every part was always accepted
    digest     of what was asked (messages and seed) and what was replied: equal for one reply that several trials were given
    """

    call: int
    subtasks: tuple[str, ...]
    attempt: int
    exposed: bool
    kind: ViolationKind | Literal[""]
    digest: str


def judged_replies(events: Sequence[Event], receipts: Iterable[Receipt]) -> tuple[JudgedReply, ...]:
    """Return each judged reply once, even if it has several outputs. An output that several calls made belongs to the last
    call. Verdicts on what was there before a fault do not count."""
    made = {call.call: call for call in of_kind(events, Called)}
    struck = [receipt.call for receipt in receipts if receipt.delivered and receipt.call is not None]
    touched = Lineage(events).calls_made_from(struck) if struck else frozenset()
    judged: dict[int, list[Judged]] = {}
    for verdict in of_kind(events, Judged):
        if verdict.calls and verdict.view != "undamaged":
            judged.setdefault(verdict.calls[-1], []).append(verdict)
    return tuple([_reply(made[call], verdicts, touched) for call, verdicts in judged.items() if call in made])


def _reply(call: Called, verdicts: Sequence[Judged], touched: frozenset[int]) -> JudgedReply:
    kinds = [verdict.violation for verdict in verdicts if verdict.violation]
    asked = [f"{message.role} {message.content}" for message in call.messages]
    return JudgedReply(
        call=call.call,
        subtasks=call.subtasks,
        attempt=call.attempt,
        exposed=bool(touched) and not touched.isdisjoint([call for verdict in verdicts for call in verdict.calls]),
        kind=next((kind for kind in KINDS if kind in kinds), "") if kinds else "",
        digest=digest_of("\n".join([*asked, str(call.seed), str(call.reply)])),
    )
