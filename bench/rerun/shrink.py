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
from bench.rerun.rerun import RerunnableTrial, TrialFailure, require_equal
from bench.run.trial.faults import FaultPlan, Strike

Item = TypeVar("Item")
PlacedStrike = tuple[int, Strike]
"""(index of a fault in its plan, a strike of this fault)."""


@dataclass(frozen=True)
class ShrinkResult:
    """The fewest faults that still break a trial.

    failure    the end of the trial
    control    the end of its rerun without any fault
    kinds      the kinds of damage beyond the control that had to recur; empty if the outcome had to recur
    struck     all strikes in the trial, in order
    fewest     the strikes that suffice; empty if the trial fails in the same way without any fault
    reruns     the number of trials that were run
    unjudged   the number of reruns that asked for an unrecorded reply; each counts as not failing
    """

    original: RerunnableTrial
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


async def shrink(
    original: RerunnableTrial, kind: str = "", on_rerun: Callable[[TrialRecord], object] = lambda _: None
) -> ShrinkResult:
    """Find the fewest strikes that still break a trial.

    A trial is broken if it has damage beyond its control, or, without such damage, if its outcome is worse.

    Args:
        original: The broken trial.
        kind: The kind of damage to look at; "": every kind.
        on_rerun: Called with the record of each rerun.

    Raises:
        ConfigError: The trial met no fault, did not fail, or has no damage of this kind.
        ResultsError: A rerun with nothing changed differs from the trial.
    """
    failure, name = TrialFailure.of(original.record), f"trial {original.record.id}"
    if failure.outcome == "error":
        raise ConfigError(f"{name}: it ended in an error ({original.record.reason}); name a trial that ran to its end")
    if kind and kind not in failure.damage:
        raise ConfigError(f"{name}: it ended {failure.words}, so there is no damage of the kind '{kind}' to look into")
    if failure.outcome == "solved" and not failure.damage:
        raise ConfigError(f"{name}: it ended solved, without damage; name a trial that failed")
    repeated = await original.run_again()
    require_equal(original, repeated)
    if not repeated.strikes:
        raise ConfigError(f"{name}: no fault struck it; name a trial under a fault plan")
    reruns = unjudged = 0

    async def rerun(strikes: Sequence[PlacedStrike]) -> TrialFailure:
        """Run the trial again with only these strikes."""
        nonlocal reruns, unjudged
        result = await original.run_again(restrict(original.plan, strikes))
        reruns += 1
        unjudged += result.record.outcome == "error"
        on_rerun(result.record)
        return TrialFailure.of(result.record)

    control = await rerun(())
    beyond = failure.beyond(control)
    kinds = beyond & {kind} if kind else beyond

    async def fails(strikes: Sequence[PlacedStrike]) -> bool:
        """Return whether the trial still fails with only these strikes."""
        end = await rerun(strikes)
        if end.outcome == "error":
            return False
        return bool(end.beyond(control) & kinds) if kinds else end.outcome == failure.outcome

    delivered = tuple(dict.fromkeys(repeated.strikes))
    needs_fault = bool(kinds) or (not kind and failure.outcome != control.outcome)
    fewest = tuple(await minimal_subsequence(delivered, fails)) if needs_fault else ()
    return ShrinkResult(original, failure, control, kinds, delivered, fewest, reruns + 1, unjudged)


async def minimal_subsequence(items: Sequence[Item], fails: Callable[[Sequence[Item]], Awaitable[bool]]) -> Sequence[Item]:
    """Return a 1-minimal subsequence of `items` that still fails, by the algorithm ddmin. No subsequence is tested twice.

    Args:
        items: The items that fail together.
        fails: A function that returns whether these items, in their order, fail. All items are assumed to fail, and no items
            not to fail.
    """
    results: dict[tuple[Item, ...], bool] = {tuple(items): True, (): False}

    async def still_fails(part: Sequence[Item]) -> bool:
        """Return the stored result for this part, or test the part."""
        key = tuple(part)
        if key not in results:
            results[key] = await fails(key)
        return results[key]

    parts = 2
    while len(items) > 1:
        size = -(-len(items) // parts)
        chunks = [items[start : start + size] for start in range(0, len(items), size)]
        rests = [[*items[:start], *items[start + size :]] for start in range(0, len(items), size)]
        candidates = [(chunk, 2) for chunk in chunks] + [(rest, max(parts - 1, 2)) for rest in rests]
        for candidate, next_parts in candidates:
            if len(candidate) < len(items) and await still_fails(candidate):
                items, parts = candidate, next_parts
                break
        else:
            if size == 1:
                return items
            parts = min(2 * parts, len(items))
    return items


def restrict(plan: FaultPlan, strikes: Sequence[PlacedStrike]) -> FaultPlan:
    """Return the plan with only these strikes. The random draws stay the same."""
    faults = []
    for number, fault in enumerate(plan.faults):
        strikes_of_fault = tuple(strike for fault_number, strike in strikes if fault_number == number)
        faults.append(replace(fault, only=strikes_of_fault))
    return replace(plan, faults=tuple(faults))
