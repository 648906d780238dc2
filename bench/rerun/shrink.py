"""Find the fewest faults that still break a trial, by delta debugging over the strikes that occurred in it.

A. Zeller and R. Hildebrandt, Simplifying and isolating failure-inducing input, IEEE TSE 28(2), 2002. The result is 1-minimal:
without any one of its strikes the trial does not fail in this way. Another set can have fewer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bench.common.errors import ConfigError
from bench.record.record import TrialRecord
from bench.rerun.rerun import Original, TrialFailure, require_equal
from bench.run.trial.faults import FaultPlan, Strike

Item = TypeVar("Item")
PlacedStrike = tuple[int, Strike]
"""(place of a fault in its plan, a strike of it)."""


@dataclass(frozen=True)
class Shrunk:
    """The result of shrinking.

    failure    how the trial ended
    control    how it ends without any fault
    kinds      the damage beyond the control that had to recur; empty if the outcome had to
    struck     all strikes that the trial met, in order
    fewest     the strikes that suffice; empty if the trial fails the same without any fault
    reruns     number of trials that were run
    unjudged   number of reruns that asked for a reply that the recording lacks; each counts as not failing
    """

    original: Original
    failure: TrialFailure
    control: TrialFailure
    kinds: frozenset[str]
    struck: tuple[PlacedStrike, ...]
    fewest: tuple[PlacedStrike, ...]
    reruns: int
    unjudged: int

    @property
    def plan(self) -> FaultPlan:
        """The trial's plan, with only the fewest strikes."""
        return restrict(self.original.plan, self.fewest)


async def shrink(original: Original, kind: str = "", seen: Callable[[TrialRecord], object] = lambda _: None) -> Shrunk:
    """Find the fewest strikes that still break a trial.

    A trial is broken if it has damage beyond its control, or, without such damage, if its outcome is worse.

    Args:
        original: The trial.
        kind: The kind of damage to look at; "": every kind.
        seen: Called with the record of each rerun.

    Raises:
        ConfigError: The trial met no fault, or did not fail, or not in this way.
        ResultsError: A rerun with nothing changed differs from the trial.
    """
    failure, name = TrialFailure.of(original.record), f"trial {original.record.id}"
    if failure.outcome == "error":
        raise ConfigError(f"{name}: it ended in an error ({original.record.reason}); name a trial that ran to its end")
    if kind and kind not in failure.damage:
        raise ConfigError(f"{name}: it ended {failure.words}, so there is no damage of the kind '{kind}' to look into")
    if failure.outcome == "solved" and not failure.damage:
        raise ConfigError(f"{name}: it ended solved, without damage; name a trial that failed")
    whole = await original.again()
    require_equal(original, whole)
    if not whole.strikes:
        raise ConfigError(f"{name}: no fault struck it; name a trial under a fault plan")
    reruns = unjudged = 0

    async def rerun(strikes: Sequence[PlacedStrike]) -> TrialFailure:
        nonlocal reruns, unjudged
        result = await original.again(restrict(original.plan, strikes))
        reruns += 1
        unjudged += result.record.outcome == "error"
        seen(result.record)
        return TrialFailure.of(result.record)

    control = await rerun(())
    beyond = failure.beyond(control)
    kinds = beyond & {kind} if kind else beyond

    async def fails(strikes: Sequence[PlacedStrike]) -> bool:
        ended = await rerun(strikes)
        if ended.outcome == "error":
            return False
        return bool(ended.beyond(control) & kinds) if kinds else ended.outcome == failure.outcome

    struck = tuple(dict.fromkeys(whole.strikes))
    needs_fault = bool(kinds) or (not kind and failure.outcome != control.outcome)
    fewest = tuple(await minimal(struck, fails)) if needs_fault else ()
    return Shrunk(original, failure, control, kinds, struck, fewest, reruns + 1, unjudged)


async def minimal(items: Sequence[Item], fails: Callable[[Sequence[Item]], Awaitable[bool]]) -> Sequence[Item]:
    """Return a 1-minimal subsequence of `items` that still fails, by ddmin. No subsequence is tested twice.

    Args:
        items: What fails together.
        fails: Whether these items, in their order, fail. It is assumed to be true for all and false for none.
    """
    known: dict[tuple[Item, ...], bool] = {tuple(items): True, (): False}

    async def still_fails(part: Sequence[Item]) -> bool:
        key = tuple(part)
        if key not in known:
            known[key] = await fails(key)
        return known[key]

    parts = 2
    while len(items) > 1:
        size = -(-len(items) // parts)
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        rests = [[item for other in chunks if other is not chunk for item in other] for chunk in chunks]
        for smaller, parts_next in (*((chunk, 2) for chunk in chunks), *((rest, max(parts - 1, 2)) for rest in rests)):
            if len(smaller) < len(items) and await still_fails(smaller):
                items, parts = smaller, parts_next
                break
        else:
            if size == 1:
                return items
            parts = min(2 * parts, len(items))
    return items


def restrict(plan: FaultPlan, strikes: Sequence[PlacedStrike]) -> FaultPlan:
    """Return the plan with only these strikes. The random draws stay the same."""
    kept = {number: tuple(strike for at, strike in strikes if at == number) for number in range(len(plan.faults))}
    return replace(plan, faults=tuple(replace(fault, only=kept[number]) for number, fault in enumerate(plan.faults)))
