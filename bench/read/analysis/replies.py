"""The judged replies of a trial: whether each was rejected, for which reason, and whether a fault had touched it."""

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
UNVIOLATED = {None}
"""The kinds of a reply's verdicts if every part was always accepted."""
FORM_REASONS = ("schema", "empty", "refusal", "not_json", "cut_off", "code_blocks")
"""The reasons of verdicts on replies that do not fit their schema."""


@dataclass(frozen=True)
class JudgedReply:
    """A judged reply.

    call       the number of its call
    subtasks   the subtasks that the call asked for
    exposed    whether a fault struck a call that made its output, or a call from whose output this one was made
    kind       the kind of its rejection; '' if every part was always accepted
    digest     the digest of the request (messages and seed) and the reply: equal for one reply that several trials got
    """

    call: int
    subtasks: tuple[str, ...]
    attempt: int
    exposed: bool
    kind: ViolationKind | Literal[""]
    digest: str


def judged_replies(events: Sequence[Event], receipts: Iterable[Receipt]) -> tuple[JudgedReply, ...]:
    """Return each judged reply once, even if it has several outputs. An output that several calls made belongs to the last
    call. Verdicts on the reply without a fault do not count."""
    calls = {call.call: call for call in of_kind(events, Called)}
    struck = [receipt.call for receipt in receipts if receipt.delivered and receipt.call is not None]
    exposed = Lineage(events).calls_made_from(struck) if struck else frozenset()
    verdicts_on: dict[int, list[Judged]] = {}
    for verdict in of_kind(events, Judged):
        if verdict.calls and verdict.view != "undamaged":
            verdicts_on.setdefault(verdict.calls[-1], []).append(verdict)
    return tuple([_reply(calls[call], verdicts, exposed) for call, verdicts in verdicts_on.items() if call in calls])


def _reply(call: Called, verdicts: Sequence[Judged], exposed_calls: frozenset[int]) -> JudgedReply:
    """Return a reply with its verdicts. `exposed_calls` are the calls that a fault touched."""
    kinds = {verdict.violation for verdict in verdicts}
    request = [f"{message.role} {message.content}\n" for message in call.messages]
    return JudgedReply(
        call=call.call,
        subtasks=call.subtasks,
        attempt=call.attempt,
        exposed=bool(exposed_calls) and not exposed_calls.isdisjoint([call for verdict in verdicts for call in verdict.calls]),
        kind="" if kinds == UNVIOLATED else next((kind for kind in KINDS if kind in kinds), ""),
        digest=digest_of(f"{''.join(request)}{call.seed}\n{call.reply}"),
    )
