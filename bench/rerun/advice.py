"""The advice on a pattern. It follows the five steps of selection by the patterns' author: runtime, dimensions, state first,
predicates, artifact.

The predicates say which patterns supply what the work demands. The steps lead to the arm of these patterns that did the least
damage under the failures of the work. If several arms did, the steps lead to the cheapest of these arms, and if several cost
the same, to the arm that supplies the least beyond the demand. This arm is advised, unless an arm that can be built did
significantly less damage. The advice also names the arms whose damage does not differ significantly from the advised arm's: it
cannot choose among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.common.errors import ResultsError
from bench.read.analysis.statistics import Pair, Share, holm, paired_test
from bench.read.claims.break_even import BreakEven
from bench.record.config import FAULT_FREE
from bench.rerun.evidence import Evidence
from bench.rerun.workload import HOUR, Runtime, WorkloadEntry

BARE = "bare_agent"
MECHANISMS_OF_PATTERN: Mapping[str, tuple[str, ...]] = {
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
"""Pattern -> the mechanisms that it supplies."""
PATTERN_WITH_ONLY: Mapping[str, str] = {
    "row": "state_machine",
    "log": "event_driven",
    "scatter": "scatter_gather_saga",
    "delegation": "hierarchical_delegation",
    "gate": "supervisor_gate",
    "people": "human_in_the_loop",
}
"""Mechanism -> the pattern that supplies only this mechanism, and so shows its worth."""
STATE_MECHANISMS = ("row", "log")
SIGNIFICANCE_LEVEL = 0.05
EQUAL_PRICE_SHARE = 0.001
"""Two prices count as equal if the higher one exceeds the lower one by at most this share."""


@dataclass(frozen=True)
class Demand:
    """The mechanism that the work demands in one dimension, and the reason. `mechanism` is "" if the work demands none."""

    dimension: str
    mechanism: str
    reason: str


@dataclass(frozen=True)
class ArmEvidence:
    """The evidence for a recommendation: one arm compared with another, under the measured failures of the work.

    ours, theirs   the recommended arm, and the arm that it is compared with
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
class HeldOutResult:
    """The result of the advised arm in a run that the advice did not use.

    harmless   the number of arms that damaged nothing in that run
    close      the number of harmless arms that cost at most 10% more than the cheapest harmless arm
    ratio      the advised arm's tokens divided by the tokens of the cheapest harmless arm; None if no arm was harmless
    harm       each arm that can be built -> its damaged effects for each delivered fault
    solved     each arm that can be built -> its share of solved trials
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
    harm: Mapping[str, float]
    solved: Mapping[str, float]

    @property
    def best(self) -> str:
        """The arm that did the least damage per fault."""
        return min(self.harm, key=lambda arm: self.harm[arm])

    @property
    def worst(self) -> str:
        """The arm that did the most damage per fault."""
        return max(self.harm, key=lambda arm: self.harm[arm])

    @property
    def mean_harm(self) -> float:
        """The mean damage per fault of an arm that is drawn at random."""
        return sum(self.harm.values()) / len(self.harm)

    @property
    def holds(self) -> bool:
        """Whether the advised arm damaged nothing and cost at most 10% more than the cheapest arm without damage."""
        return self.damaged.k == 0 and self.ratio is not None and self.ratio <= 1.1


@dataclass(frozen=True)
class Advice:
    """The advice and the measurements behind it.

    arm                 the advised arm; `pattern` is its pattern, and `price` the tokens of a run of the work
    matching            the patterns that supply all demanded mechanisms; if no pattern does, the patterns that supply the
                        mechanism for state and most of the others
    damaged             the share of the advised arm's trials with any damage
    measured            the failures of the work that the run measured; `unmeasured`: its other failures
    harmless            arm of a matching pattern that damaged nothing -> tokens of a run of the work
    equally_cheap       the other arms that cost the same
    arm_by_steps        the arm to which the steps lead; another arm is advised if it did significantly less damage
    harm                arm that can be built -> mean damaged effects of a run of the work
    indistinguishable   the other arms whose damage equals the advised arm's, or does not differ significantly from it
    comparisons         the comparisons that show the worth of the advised arm and of each demanded mechanism
    """

    runtime: Runtime
    demands: tuple[Demand, ...]
    matching: tuple[str, ...]
    pattern: str
    arm: str
    price: float
    damaged: Share
    harmless: Mapping[str, float]
    equally_cheap: tuple[str, ...]
    arm_by_steps: str
    harm: Mapping[str, float]
    indistinguishable: tuple[str, ...]
    measured: tuple[str, ...]
    unmeasured: tuple[str, ...]
    comparisons: tuple[ArmEvidence, ...]


def advise(workload: WorkloadEntry, evidence: Evidence) -> Advice:
    """Return the pattern to build for a workload, chosen by the damage and the price of each arm in measured trials.

    Args:
        workload: The properties of the work, and how often each failure comes in a run of it.
        evidence: The trials of the world that is most like the work.

    Raises:
        ResultsError: The evidence has no pattern whose mechanisms are known.
    """
    demands = tuple(_demands(workload))
    demanded = [demand.mechanism for demand in demands if demand.mechanism]
    buildable = evidence.arms(workload.work.keys)
    patterns = [pattern for pattern in MECHANISMS_OF_PATTERN if pattern in buildable.values()]
    if not patterns:
        raise ResultsError(f"{evidence.run}: advice needs one of the patterns {', '.join(MECHANISMS_OF_PATTERN)}; run one")
    matching = _matching_patterns(demanded, patterns)
    measured = tuple(name for name in workload.failures if name in evidence.plans)
    failures = {name: workload.failures[name] for name in measured}
    plans = (FAULT_FREE, *measured)
    arms = [arm for pattern in matching for arm in buildable if buildable[arm] == pattern]
    prices = {arm: evidence.price(arm, failures) for arm in buildable}
    harm = {arm: evidence.expected_harm(arm, failures) for arm in buildable}
    means = {arm: sum(values.values()) / len(values) for arm, values in harm.items()}
    least_harmful = [arm for arm in arms if means[arm] == min(means[candidate] for candidate in arms)]
    lowest_price = min(prices[arm] for arm in least_harmful)
    cheapest_arms = [arm for arm in least_harmful if prices[arm] <= lowest_price * (1 + EQUAL_PRICE_SHARE)]
    # The fewest mechanisms first, and then the arm with remedies: an arm without remedies has no margin for a failure that is
    # not measured. The keys of `evidence.patterns` are the arms without remedies.
    arm_by_steps = min(cheapest_arms, key=lambda name: (len(MECHANISMS_OF_PATTERN[buildable[name]]), name in evidence.patterns))
    better = [arm for arm in _distinguishable(harm, arm_by_steps) if means[arm] < means[arm_by_steps]]
    arm = min(better, key=lambda name: (means[name], prices[name]), default=arm_by_steps)
    pattern, distinguishable = buildable[arm], _distinguishable(harm, arm)
    other_form = next((name for name in buildable if buildable[name] == pattern and name != arm), BARE)
    pairs = [(arm, arm_by_steps if better else other_form)]
    shown_patterns = [PATTERN_WITH_ONLY[mechanism] for mechanism in demanded]
    pairs += [(name, BARE) for name in shown_patterns if name in evidence.patterns]
    return Advice(
        runtime=workload.derived_runtime,
        demands=demands,
        matching=tuple(matching),
        pattern=pattern,
        arm=arm,
        price=prices[arm],
        damaged=evidence.damaged_share(arm, plans),
        harmless={arm: prices[arm] for arm in arms if not evidence.damaged_share(arm, plans).k},
        equally_cheap=() if better else tuple(name for name in cheapest_arms if name != arm),
        arm_by_steps=arm_by_steps,
        harm=means,
        indistinguishable=tuple(name for name in buildable if name not in (arm, *distinguishable)),
        measured=measured,
        unmeasured=tuple(name for name in workload.failures if name not in evidence.plans),
        comparisons=tuple(_compare_arms(evidence, first, second, measured) for first, second in pairs if BARE in buildable),
    )


def _demands(workload: WorkloadEntry) -> Iterator[Demand]:
    """Yield what the work demands of an architecture in each dimension: first state, on which coordination depends, and which
    limits control."""
    work, crashes = workload.work, workload.failures.get("crash", 0.0)
    if work.log_is_truth:
        yield Demand("state", "log", "a log of events is the truth")
    elif workload.derived_runtime == "long-horizon" or crashes > 0 or work.lasts_minutes >= HOUR:
        reason = "it crashes" if crashes > 0 else f"it lasts {work.lasts_minutes:g} minutes"
        yield Demand("state", "row", f"{reason}, so a step that is done has to stay done")
    else:
        yield Demand("state", "", "it ends within the hour and no crash is expected")
    if work.parts > 1:
        mechanism = "scatter" if work.outside_effects else "delegation"
        yield Demand("coordination", mechanism, f"{work.parts} parts go on side by side")
    else:
        yield Demand("coordination", "", "it has one part")
    if work.approvals:
        yield Demand("control", "people", "somebody has to approve some of it")
    elif work.cannot_be_undone:
        yield Demand("control", "gate", "some of it cannot be taken back")
    else:
        yield Demand("control", "", "all of it can be taken back" if work.outside_effects else "it changes nothing outside")


def _matching_patterns(demanded: list[str], patterns: list[str]) -> list[str]:
    """Return the patterns that supply all demanded mechanisms. If no pattern does, return the patterns that supply the demanded
    mechanism for state and the largest number of the others."""
    if complete := [pattern for pattern in patterns if set(demanded) <= set(MECHANISMS_OF_PATTERN[pattern])]:
        return complete
    states = {mechanism for mechanism in demanded if mechanism in STATE_MECHANISMS}
    with_state = [pattern for pattern in patterns if states <= set(MECHANISMS_OF_PATTERN[pattern])] or patterns
    supplied_counts = {pattern: len(set(demanded) & set(MECHANISMS_OF_PATTERN[pattern])) for pattern in with_state}
    return [pattern for pattern, count in supplied_counts.items() if count == max(supplied_counts.values())]


def _distinguishable(harm: Mapping[str, Mapping[str, float]], arm: str) -> list[str]:
    """Return the arms whose damage differs from this arm's damage: p < 0.05 in the sign-flip test over instances, after
    Holm's correction over all arms with any difference."""

    def by_pair(name: str) -> dict[Pair, float]:
        """Return the damage of an arm by pairs of trials."""
        return {(instance, 1): value for instance, value in harm[name].items()}

    p_values = {name: paired_test(by_pair(name), by_pair(arm)).p for name in harm if harm[name] != harm[arm]}
    return [name for name, p in holm(p_values).items() if p is not None and p < SIGNIFICANCE_LEVEL]


def _compare_arms(evidence: Evidence, arm: str, other_arm: str, failures: tuple[str, ...]) -> ArmEvidence:
    """Return the damage of two arms under these failures, and their break-even points."""
    plans = (FAULT_FREE, *failures)
    return ArmEvidence(
        ours=arm,
        theirs=other_arm,
        damaged=(evidence.damaged_share(arm, plans), evidence.damaged_share(other_arm, plans)),
        effects=(evidence.damaged_effects(arm, plans), evidence.damaged_effects(other_arm, plans)),
        break_even={failure: evidence.break_even(arm, other_arm, failure) for failure in failures},
    )


def held_out(advice: Advice, evidence: Evidence, plan: str) -> HeldOutResult:
    """Return the result of advice in a run that the advice did not use.

    Args:
        advice: The advice that is judged.
        evidence: The other run's trials.
        plan: The fault plan of that run under which the advice is judged.

    Returns:
        The damage and cost of the advised arm there, compared with all arms of the run that can be built.

    Raises:
        ResultsError: The run lacks the advised arm.
    """
    arms = [arm for arm in advice.harm if arm in evidence.config.architectures]
    if advice.arm not in arms:
        raise ResultsError(f"{evidence.run}: has no arm '{advice.arm}', which is advised; run the held-out config with it")
    damaged = {arm: evidence.damaged_share(arm, (plan,)) for arm in arms}
    prices = {arm: evidence.tokens(arm, plan) for arm in arms if damaged[arm].k == 0}
    tokens, lowest_price = evidence.tokens(advice.arm, plan), min(prices.values(), default=None)
    return HeldOutResult(
        arm=advice.arm,
        run=evidence.run,
        plan=plan,
        damaged=damaged[advice.arm],
        tokens=tokens,
        harmless=len(prices),
        close=sum(price <= 1.1 * lowest_price for price in prices.values()) if lowest_price is not None else 0,
        arms=len(arms),
        ratio=tokens / lowest_price if lowest_price is not None else None,
        harm={arm: evidence.harm_by_fault(arm, plan) for arm in arms},
        solved={arm: evidence.solved_share(arm, plan) for arm in arms},
    )
