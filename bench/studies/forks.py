"""A recorded trial, forked where its verifier first rejected something, and what each policy would pay from there on.

A call that is made again is priced at the tokens of the recorded one: the same prompt, a reply of the same size, accepted this
time. So no policy is charged for a repair prompt, nor for a second failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.analysis.ledger import is_retry
from bench.runtime.events import Answered, Called, Committed, Event, Judged

POLICIES = ("full rerun", "rerun from there", "rerun what it invalidates", "retry alone", "least")
"""What is asked again, of the subtasks that had been asked when the failure was noticed:

full rerun                  all
rerun from there            the first rejected one and all that were asked after it
rerun what it invalidates   the rejected ones and all outputs made from theirs, by the lineage that the commits keep
retry alone                 the rejected ones: where something was made from their outputs, that now stands on nothing
least                       no policy that mends the failure pays less: the rejected ones, and of what was made from them that
                            which the answer holds in another text. Only hindsight knows it; without an answer it is nothing
"""


@dataclass(frozen=True)
class Fork:
    """One failure. `prices`: tokens by policy; `standing`: how many outputs had been made from the rejected ones; `paid`: the
    tokens of all calls that the trial made again after it."""

    prices: Mapping[str, int]
    standing: int
    paid: int


@dataclass
class _Progress:
    """What a trial had done up to a moment. `by`: the call that a subtask was last asked in, in the order of the first time."""

    by: dict[str, Called] = field(default_factory=dict)
    written: dict[str, Committed] = field(default_factory=dict)

    def see(self, event: Event) -> None:
        if isinstance(event, Called) and event.failure is None and event.cause != "judge":
            self.by.update(dict.fromkeys(event.subtasks, event))
        elif isinstance(event, Committed):
            self.written[event.subtask] = event

    def from_(self, failed: Iterable[str]) -> set[str]:
        """The subtasks whose outputs were made from those of `failed`, however far down."""
        found = set(failed)
        while more := {name for name in self.written.keys() - found if found & _reads(self.written[name])}:
            found |= more
        return found - set(failed)

    def price(self, subtasks: Iterable[str]) -> int:
        """Of asking for these again: a call that does several subtasks' work is made once."""
        calls = {self.by[name].call: self.by[name] for name in subtasks if name in self.by}
        return sum(call.tokens_in + call.tokens_out for call in calls.values())


def _reads(commit: Committed) -> set[str]:
    return {name for name, version, _ in commit.made_from if version}


def fork_of(events: Sequence[Event]) -> Fork | None:
    """The trial's first failure; None where nothing was rejected."""
    made = _Progress()
    for place, event in enumerate(events):
        made.see(event)
        if _is_rejection(event):
            return _fork(made, _rejected_together(events[place:]), events[place:])
    return None


def _is_rejection(event: Event) -> bool:
    """Whether the trial met a rejection here; a verdict on what a fault had replaced is none of its course."""
    return isinstance(event, Judged) and not event.accepted and event.view != "undamaged"


def _rejected_together(rest: Iterable[Event]) -> list[str]:
    """All that is rejected before the next call is made."""
    failed = []
    for event in rest:
        if isinstance(event, Called):
            break
        if isinstance(event, Judged) and _is_rejection(event):
            failed.append(event.subtask)
    return list(dict.fromkeys(failed))


def _fork(made: _Progress, failed: Sequence[str], rest: Sequence[Event]) -> Fork:
    asked = list(made.by)
    first = min((asked.index(name) for name in failed if name in made.by), default=0)
    below = made.from_(failed)
    differing = {name for name in below if _came_out_different(made.written[name], rest)}
    again = (asked, asked[first:], {*failed, *below}, failed, {*failed, *differing})
    calls = [event for event in rest if isinstance(event, Called) and is_retry(event)]
    return Fork(
        prices={policy: made.price(names) for policy, names in zip(POLICIES, again, strict=True)},
        standing=len(below),
        paid=sum(call.tokens_in + call.tokens_out for call in calls),
    )


def _came_out_different(before: Committed, rest: Iterable[Event]) -> bool:
    """Whether the answer holds another text of it than had been made before. A trial without an answer does not tell."""
    texts = {(event.subtask, event.version): event.digest for event in rest if isinstance(event, Committed)}
    answer = dict(next((event.versions for event in rest if isinstance(event, Answered)), ()))
    final = (before.subtask, answer.get(before.subtask, before.version))
    return texts.get(final, before.digest) != before.digest
