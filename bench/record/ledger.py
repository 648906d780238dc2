"""The ledger: pure functions from a trial's events to the account of each call's tokens.

    lost         no usable reply came: cut off, timed out; an unpaid call is here too, with no tokens
    judging      the call only judged
    in_answer    the final answer, right or wrong, is made from an output of the call
    rejected     an output of the call was rejected and none is in the answer: a reply is lost as a whole
    redundant    one of several samples of an output, but not the chosen one
    superseded   accepted or not judged, and thrown away later

The first line that fits holds. A trial without an answer has no tokens in an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from bench.common.values import dataclass
from bench.record.events import Called, Committed, Event, Judged, of_kind
from bench.record.lineage import Lineage

Account = Literal["in_answer", "rejected", "superseded", "redundant", "lost", "judging"]
ACCOUNTS: tuple[Account, ...] = get_args(Account)


@dataclass(frozen=True)
class LedgerEntry:
    """One call in the ledger.

    call      its event (`bench.record.events.Called`): cause, subtasks, tokens, seconds
    account   the account of its tokens
    verdict   accepted, rejected:<reason>, unverified, lost, or unread if nobody looked at it
    """

    call: Called
    account: Account
    verdict: str

    @property
    def tokens(self) -> int:
        return self.call.tokens_in + self.call.tokens_out

    @property
    def is_retry(self) -> bool:
        """Whether its tokens are retry tokens: of retries, of reruns, and of judging after a rejection."""
        return is_retry(self.call)


def is_retry(call: Called) -> bool:
    return call.cause in ("retry", "rerun") or (call.cause == "judge" and call.caused_by is not None)


def book(events: Sequence[Event]) -> tuple[LedgerEntry, ...]:
    """Return the ledger entry of each call, in the order of the calls."""
    in_answer = Lineage(events).of_answer
    calls = of_kind(events, Called)
    written = {call for commit in of_kind(events, Committed) for call in commit.calls}
    verdicts = last_verdicts(events)
    sampled = {_attempt(call) for call in calls if call.sample > 1}
    entries = []
    for call in calls:
        reason, is_written = verdicts.get(call.call), call.call in written
        not_taken = bool(sampled) and not is_written and _attempt(call) in sampled
        account = _account(call, call.call in in_answer, bool(reason), not_taken)
        entries.append(LedgerEntry(call, account, _verdict(call, reason, is_written)))
    return tuple(entries)


def totals(entries: Iterable[LedgerEntry]) -> dict[Account, int]:
    """Return the tokens of every account."""
    sums: dict[Account, int] = dict.fromkeys(ACCOUNTS, 0)
    for entry in entries:
        sums[entry.account] += entry.tokens
    return sums


def imbalance(entries: Iterable[LedgerEntry], counted: int) -> str | None:
    """Return, in one line, by how much the accounts differ from the tokens that the caller counted; None if they agree."""
    booked = sum([entry.tokens for entry in entries])
    return None if booked == counted else f"the ledger adds up to {booked} tokens, but {counted} were counted"


def last_verdicts(events: Iterable[Event]) -> dict[int, str]:
    """Return, for each call, "" if the last verdicts accepted all its outputs, else the first reason of a rejection. Verdicts
    on undamaged replies do not count."""
    judged = [verdict for verdict in of_kind(events, Judged) if verdict.view != "undamaged"]
    last = {(call, verdict.subtask): verdict for verdict in judged for call in verdict.calls}
    reasons: dict[int, str] = {}
    for (call, _), verdict in last.items():
        reasons[call] = reasons.get(call, "") or verdict.reason
    return reasons


def _attempt(call: Called) -> tuple[tuple[str, ...], int]:
    return call.subtasks, call.attempt


def _account(call: Called, in_answer: bool, rejected: bool, not_taken: bool) -> Account:
    """Return the account in which the tokens of a call are booked."""
    if call.failure is not None:
        return "lost"
    if call.cause == "judge":
        return "judging"
    if in_answer:
        return "in_answer"
    if rejected:
        return "rejected"
    return "redundant" if not_taken else "superseded"


def _verdict(call: Called, reason: str | None, written: bool) -> str:
    if call.failure is not None:
        return "lost"
    if reason is not None:
        return f"rejected:{reason}" if reason else "accepted"
    return "unverified" if written else "unread"
