"""The ledger: it assigns each call of a trial, with its tokens, to one account.

    lost         no usable reply came: cut off, timed out; an unpaid call is here too, with no tokens
    judging      the call only judged
    in_answer    the final answer, right or wrong, is made from an output of the call
    rejected     an output of the call was rejected and none is in the answer: a reply is lost as a whole
    redundant    one of several samples of an output, but not the chosen one
    superseded   accepted or not judged, and thrown away later

A call is in the first of these accounts whose description is true of it. A trial without an answer has no tokens in an answer.
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
    verdict   accepted, rejected:<reason>, unverified, lost, or unread if its reply was neither judged nor used
    """

    call: Called
    account: Account
    verdict: str

    @property
    def tokens(self) -> int:
        """The tokens of the call, sent and received."""
        return self.call.tokens_in + self.call.tokens_out

    @property
    def is_retry(self) -> bool:
        """Whether the call's tokens are retry tokens (`is_retry`)."""
        return is_retry(self.call)


def is_retry(call: Called) -> bool:
    """Whether a call is a retry, a rerun, or a judgment that a rejection made necessary."""
    return call.cause in ("retry", "rerun") or (call.cause == "judge" and call.caused_by is not None)


def book(events: Sequence[Event]) -> tuple[LedgerEntry, ...]:
    """Return the ledger entry of each call, in the order of the calls."""
    in_answer = Lineage(events).of_answer
    calls = of_kind(events, Called)
    writing_calls = {call for commit in of_kind(events, Committed) for call in commit.calls}
    verdicts = last_verdicts(events)
    sampled_attempts = {_attempt(call) for call in calls if call.sample > 1}
    entries = []
    for call in calls:
        reason, is_written = verdicts.get(call.call), call.call in writing_calls
        is_unused_sample = bool(sampled_attempts) and not is_written and _attempt(call) in sampled_attempts
        account = _account(call, call.call in in_answer, bool(reason), is_unused_sample)
        entries.append(LedgerEntry(call, account, _verdict(call, reason, is_written)))
    return tuple(entries)


def totals(entries: Iterable[LedgerEntry]) -> dict[Account, int]:
    """Return account -> the tokens in it."""
    sums: dict[Account, int] = dict.fromkeys(ACCOUNTS, 0)
    for entry in entries:
        sums[entry.account] += entry.tokens
    return sums


def imbalance(entries: Iterable[LedgerEntry], counted: int) -> str | None:
    """Return in words that the accounts do not add up to the tokens that the caller counted; None if they do."""
    booked = sum([entry.tokens for entry in entries])
    return None if booked == counted else f"the ledger adds up to {booked} tokens, but {counted} were counted"


def last_verdicts(events: Iterable[Event]) -> dict[int, str]:
    """Return call -> "" if the last verdicts accepted all its outputs, else the reason of a rejection. Verdicts on replies
    without their fault do not count."""
    verdicts = [verdict for verdict in of_kind(events, Judged) if verdict.view != "undamaged"]
    last = {(call, verdict.subtask): verdict for verdict in verdicts for call in verdict.calls}
    reasons: dict[int, str] = {}
    for (call, _), verdict in last.items():
        reasons[call] = reasons.get(call, "") or verdict.reason
    return reasons


def _attempt(call: Called) -> tuple[tuple[str, ...], int]:
    return call.subtasks, call.attempt


def _account(call: Called, in_answer: bool, rejected: bool, is_unused_sample: bool) -> Account:
    """Return the account in which the tokens of a call are booked."""
    if call.failure is not None:
        return "lost"
    if call.cause == "judge":
        return "judging"
    if in_answer:
        return "in_answer"
    if rejected:
        return "rejected"
    return "redundant" if is_unused_sample else "superseded"


def _verdict(call: Called, reason: str | None, written: bool) -> str:
    """Return what became of a call's outputs (`LedgerEntry.verdict`)."""
    if call.failure is not None:
        return "lost"
    if reason is not None:
        return f"rejected:{reason}" if reason else "accepted"
    return "unverified" if written else "unread"
