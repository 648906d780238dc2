"""The ledger: pure functions from a trial's events to the account in which each call's tokens stand.

    lost         no usable reply came: cut off, timed out; unpaid calls stand here too, with no tokens
    judging      the call only judged
    useful       an output of it is in the lineage of the final answer
    rejected     an output of it was rejected, and nothing of it is in the answer: a reply is paid, and lost, as a whole
    superseded   accepted or handed on, and thrown away later

The first line that fits holds. A trial without an answer has no lineage, so nothing in it was useful.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bench.runtime.events import Answered, Called, Committed, Event, Judged

Account = Literal["useful", "rejected", "superseded", "lost", "judging"]
ACCOUNTS: tuple[Account, ...] = get_args(Account)
RETRY_CAUSES = ("retry", "rerun", "judge")

Output = tuple[str, int]
"""A version in the state: (subtask, version)."""


@dataclass(frozen=True)
class Entry:
    """One call in the ledger. `verdict`: accepted, rejected:<reason>, handed_on, lost, or unread where nobody looked at it."""

    call: Called
    account: Account
    verdict: str

    @property
    def tokens(self) -> int:
        return self.call.tokens_in + self.call.tokens_out

    @property
    def is_retry(self) -> bool:
        """Whether its tokens are retry tokens, as the paper counts them."""
        return self.call.cause in RETRY_CAUSES


def book(events: Sequence[Event]) -> tuple[Entry, ...]:
    """Each call once, in the order of the calls."""
    answered_by = lineage(events)
    handed_on = {event.call for event in events if isinstance(event, Committed)}
    rejections = last_rejections(events)
    judged = {event.call for event in events if isinstance(event, Judged)}
    entries = []
    for call in (event for event in events if isinstance(event, Called)):
        rejection = rejections.get(call.call)
        account = _account(call, call.call in answered_by, rejection is not None)
        verdict = _verdict(call, rejection, call.call in judged, call.call in handed_on)
        entries.append(Entry(call, account, verdict))
    return tuple(entries)


def totals(entries: Iterable[Entry]) -> dict[Account, int]:
    """Tokens by account; every account is there."""
    sums: dict[Account, int] = dict.fromkeys(ACCOUNTS, 0)
    for entry in entries:
        sums[entry.account] += entry.tokens
    return sums


def imbalance(entries: Iterable[Entry], counted: int) -> str | None:
    """What is wrong, in one line, where the accounts do not add up to the caller's own count of the trial's tokens."""
    booked = sum(totals(entries).values())
    return None if booked == counted else f"the ledger adds up to {booked} tokens, but {counted} were counted"


def lineage(events: Iterable[Event]) -> set[int]:
    """The calls that the final answer stands on: those that wrote its versions, and those that wrote what these were made
    from, and so on. Empty where there is no answer."""
    events = list(events)
    written = {(event.subtask, event.version): event for event in events if isinstance(event, Committed)}
    answer = [version for event in events if isinstance(event, Answered) for version in event.versions]
    made_from = {output: _outputs_read(commit) for output, commit in written.items()}
    return {
        call
        for output in reachable(answer, made_from)
        if output in written
        for call in [written[output].call]
        if call is not None
    }


def reachable(start: Iterable[Output], made_from: Mapping[Output, Sequence[Output]]) -> set[Output]:
    """These outputs and all that they were made from, however far back."""
    found: set[Output] = set()
    open_ = list(start)
    while open_:
        output = open_.pop()
        if output not in found:
            found.add(output)
            open_ += made_from.get(output, ())
    return found


def last_rejections(events: Iterable[Event]) -> dict[int, str]:
    """Call -> the reason of a rejection, for each call with an output whose last verdict was that."""
    last = {(event.call, event.subtask): event for event in events if isinstance(event, Judged) and event.call is not None}
    reasons: dict[int, str] = {}
    for (call, _), verdict in last.items():
        if call is not None and not verdict.accepted:
            reasons.setdefault(call, verdict.reason)
    return reasons


def _outputs_read(commit: Committed) -> list[Output]:
    """What a version was made from, without the documents, whose version is 0."""
    return [(name, version) for name, version, _ in commit.made_from if version]


def _account(call: Called, in_answer: bool, rejected: bool) -> Account:
    if call.failure is not None:
        return "lost"
    if call.cause == "judge":
        return "judging"
    if in_answer:
        return "useful"
    return "rejected" if rejected else "superseded"


def _verdict(call: Called, rejection: str | None, judged: bool, handed_on: bool) -> str:
    if call.failure is not None:
        return "lost"
    if rejection is not None:
        return f"rejected:{rejection}"
    if judged:
        return "accepted"
    return "handed_on" if handed_on else "unread"
