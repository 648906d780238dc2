"""The advice, by its author's five steps of selection: runtime, dimensions, state first, predicates, artifact.

The predicates say which patterns supply what the work demands. Of their arms, the advised arm did no damage under the failures
of the work and takes the fewest tokens. If several cost the same, the arm that supplies the least beyond the demand is advised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.read.analysis.statistics import Share
from bench.read.claims.break_even import BreakEven
from bench.record.config import FAULT_FREE
from bench.rerun.advise.evidence import Evidence
from bench.rerun.advise.workload import HOUR, Runtime, WorkloadEntry

BARE = "bare_agent"
SUPPLIES: Mapping[str, tuple[str, ...]] = {
    BARE: (),
    "hierarchical_delegation": ("delegation",),
    "scatter_gather_saga": ("scatter",),
    "event_driven": ("log",),
    "supervisor_gate": ("gate",),
    "state_machine": ("row",),
    "human_in_the_loop": ("gate", "people"),
    "plan_execute_evaluate": ("row", "delegation"),
    "composition": ("row", "scatter", "gate", "people"),
}
"""Pattern -> the demands that it supplies."""
STANDS_FOR: Mapping[str, str] = {
    "row": "state_machine",
    "log": "event_driven",
    "scatter": "scatter_gather_saga",
    "delegation": "hierarchical_delegation",
    "gate": "supervisor_gate",
    "people": "human_in_the_loop",
}
"""Demand -> the pattern that supplies only this demand and shows its worth."""
STATES = ("row", "log")
ALIKE = 0.001
"""Prices that differ by a smaller share count as equal."""


@dataclass(frozen=True)
class Demand:
    """What the work demands in one dimension, and why. `what` is "" if it demands nothing."""

    dimension: str
    what: str
    why: str


@dataclass(frozen=True)
class Backing:
    """The evidence for a recommendation: an arm compared with another, under the measured failures of the work.

    ours, theirs   the arms
    damaged        the share of trials with any damage, of each arm
    effects        the number of damaged effects, of each arm
    break_even     failure -> the rate from which `ours` takes fewer tokens; None if that was not measured
    """

    ours: str
    theirs: str
    damaged: tuple[Share, Share]
    effects: tuple[int, int]
    break_even: Mapping[str, BreakEven | None]


@dataclass(frozen=True)
class HeldOut:
    """The result of the advised arm in a run that the advice has not seen.

    harmless   number of arms that damaged nothing there; `close`: those within 10% of the cheapest
    ratio      its tokens divided by those of the cheapest harmless arm; None if no arm was harmless
    """

    arm: str
    run: str
    plan: str
    damaged: Share
    tokens: float
    harmless: int
    close: int
    arms: int
    ratio: float | None

    @property
    def holds(self) -> bool:
        """Whether it damaged nothing, within 10% of the best price of the harmless arms."""
        return self.damaged.k == 0 and self.ratio is not None and self.ratio <= 1.1


@dataclass(frozen=True)
class Advice:
    """The advice, with its measurements.

    arm            the advised arm; `pattern`: the arm without its remedies
    kept           the patterns that supply all demands, or, if none does, the state's demand and most others
    unmeasured     failures of the work that the run did not measure
    harmless       kept arms that damaged nothing -> tokens of a run of the work
    alike          the other arms that cost the same
    backing        the comparisons that show the worth of the advised arm and of each demanded pattern
    """

    runtime: Runtime
    demands: tuple[Demand, ...]
    kept: tuple[str, ...]
    pattern: str
    arm: str
    price: float
    damaged: Share
    harmless: Mapping[str, float]
    alike: tuple[str, ...]
    measured: tuple[str, ...]
    unmeasured: tuple[str, ...]
    backing: tuple[Backing, ...]


def advise(workload: WorkloadEntry, evidence: Evidence) -> Advice:
    """Advise on a workload from measurements.

    Args:
        workload: The work.
        evidence: The trials of the world that is most like it.

    Returns:
        The advice.
    """
    demands = tuple(_demands(workload))
    wanted = [demand.what for demand in demands if demand.what]
    kept = _kept(wanted, [pattern for pattern in SUPPLIES if pattern in evidence.patterns])
    measured = tuple(name for name in workload.failures if name in evidence.plans)
    failures = {name: workload.failures[name] for name in measured}
    plans = (FAULT_FREE, *measured)
    arms = {arm: pattern for pattern in kept for arm in (pattern, evidence.patterns[pattern])}
    damaged = {arm: evidence.damaged(arm, plans) for arm in arms}
    prices = {arm: evidence.price(arm, failures) for arm in arms}
    harmless = {arm: prices[arm] for arm in arms if damaged[arm].k == 0}
    least = min(damaged.values(), key=lambda share: share.k).k
    best = min(prices[arm] for arm in arms if damaged[arm].k == least)
    alike = [arm for arm in arms if damaged[arm].k == least and prices[arm] <= best * (1 + ALIKE)]
    # If a failure is not measured, an arm without remedies has no margin.
    arm = min(alike, key=lambda name: (len(SUPPLIES[arms[name]]), name in evidence.patterns))
    pattern = arms[arm]
    other = evidence.patterns[pattern] if arm == pattern else pattern
    pairs = [(arm, other), *((STANDS_FOR[what], BARE) for what in wanted if STANDS_FOR[what] in evidence.patterns)]
    return Advice(
        runtime=workload.goes_by,
        demands=demands,
        kept=tuple(kept),
        pattern=pattern,
        arm=arm,
        price=prices[arm],
        damaged=damaged[arm],
        harmless=harmless,
        alike=tuple(name for name in alike if name != arm),
        measured=measured,
        unmeasured=tuple(name for name in workload.failures if name not in evidence.plans),
        backing=tuple(_compared(evidence, ours, theirs, measured) for ours, theirs in pairs if BARE in evidence.patterns),
    )


def _demands(workload: WorkloadEntry) -> Iterator[Demand]:
    """Yield the demands. State comes first: coordination is built around it, and control bounds it."""
    work, crashes = workload.work, workload.failures.get("crash", 0.0)
    if work.log_is_truth:
        yield Demand("state", "log", "a log of events is the truth")
    elif workload.goes_by == "long-horizon" or crashes > 0 or work.lasts_minutes >= HOUR:
        why = "it crashes" if crashes > 0 else f"it lasts {work.lasts_minutes:g} minutes"
        yield Demand("state", "row", f"{why}, so a step that is done has to stay done")
    else:
        yield Demand("state", "", "it ends within the hour and no crash is expected")
    if work.parts > 1:
        what = "scatter" if work.outside_effects else "delegation"
        yield Demand("coordination", what, f"{work.parts} parts go on side by side")
    else:
        yield Demand("coordination", "", "it has one part")
    if work.approvals:
        yield Demand("control", "people", "somebody has to approve some of it")
    elif work.cannot_be_undone:
        yield Demand("control", "gate", "some of it cannot be taken back")
    else:
        yield Demand("control", "", "all of it can be taken back" if work.outside_effects else "it changes nothing outside")


def _kept(wanted: list[str], patterns: list[str]) -> list[str]:
    """Return the patterns that supply all demands. If none does, those that supply the state's demand and most of the
    others."""
    if complete := [pattern for pattern in patterns if set(wanted) <= set(SUPPLIES[pattern])]:
        return complete
    states = [what for what in wanted if what in STATES]
    spines = [pattern for pattern in patterns if set(states) <= set(SUPPLIES[pattern])] or patterns
    most = max(len(set(wanted) & set(SUPPLIES[pattern])) for pattern in spines)
    return [pattern for pattern in spines if len(set(wanted) & set(SUPPLIES[pattern])) == most]


def _compared(evidence: Evidence, ours: str, theirs: str, failures: tuple[str, ...]) -> Backing:
    plans = (FAULT_FREE, *failures)
    return Backing(
        ours=ours,
        theirs=theirs,
        damaged=(evidence.damaged(ours, plans), evidence.damaged(theirs, plans)),
        effects=(evidence.effects(ours, plans), evidence.effects(theirs, plans)),
        break_even={failure: evidence.break_even(ours, theirs, failure) for failure in failures},
    )


def held_out(advice: Advice, evidence: Evidence, plan: str) -> HeldOut:
    """Judge advice by a run that it has not seen.

    Args:
        advice: The advice.
        evidence: The other run's trials.
        plan: The fault plan of that run under which the advice is judged.

    Returns:
        The damage and cost of the advised arm there, compared with all arms of the run.
    """
    arms = [arm for pattern in evidence.patterns.items() for arm in pattern]
    damaged = {arm: evidence.damaged(arm, (plan,)) for arm in arms}
    prices = {arm: evidence.tokens(arm, plan) for arm in arms if damaged[arm].k == 0}
    tokens, best = evidence.tokens(advice.arm, plan), min(prices.values(), default=None)
    return HeldOut(
        arm=advice.arm,
        run=evidence.run,
        plan=plan,
        damaged=damaged[advice.arm],
        tokens=tokens,
        harmless=len(prices),
        close=sum(price <= 1.1 * best for price in prices.values()) if best is not None else 0,
        arms=len(arms),
        ratio=tokens / best if best is not None else None,
    )
