"""Courses of an upgrade, call by call: the right one, and those that a careless grader would let pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bench.scenario import Json
from bench.worlds.environment import World

from .judgments import right
from .policy import SHARES
from .reading import rewrites_of
from .story import NEARLY, Case

Judge = Callable[[str, Mapping[str, str]], Json]
"""(subtask, its documents) -> its output."""
MISSTATED = "misstates_the_risk"
Slips = Mapping[str, Mapping[str, Json]]
"""Judgment -> the output in the right one's place; that of a module is `adapt MODULE`."""


def follow(
    case: Case,
    slips: Slips,
    world: World,
    *,
    twice: str = "",
    left_out: str = "",
    reviewed: bool = True,
    judged: Judge = right,
) -> None:
    """Do what is right, but for these slips. `twice`: the tool that is called twice; `left_out`: that which is not."""

    def call(tool: str, **arguments: Any) -> Any:
        if tool == left_out:
            return None
        acted = world.call(tool, arguments)
        if tool == twice:
            world.call(tool, arguments)
        return acted.result.model_dump(mode="json") if acted.result is not None else None

    def judge(judgment: str, which: str = "", **documents: Any) -> Any:
        shown = {name: json.dumps(value) for name, value in documents.items()}
        return {**judged(judgment, shown), **slips.get(which or judgment, {})}

    branch = {"branch": case.branch}
    world.next_event()
    call("open_branch", **branch)
    for module in case.modules:
        text, changes = call("read_module", module=module.name), call("read_changes")
        decided = judge("adapt", f"adapt {module.name}", module=text, changes=changes)
        call("rewrite", module=module.name, **branch, **decided)
    refs = call("read_refs", **branch)
    if refs["main"] != refs["base"]:
        call("rebase", main=refs["main"], **branch)
    tree = {"tree": call("read_refs", **branch)["head"]}
    tested = call("run_tests", run=1, **tree)
    call("run_lint", **tree)
    call("start_instance", **tree)
    if tested and tested["failed"]:
        call("run_tests", run=2, **tree)
    call("stop_instance", **tree)
    merging = {**tree, **judge("risk", diff=call("read_diff", **tree), checks=call("read_checks", **tree))}
    if not reviewed or ("refused" not in case.traits and _approved(world, merging)):
        call("merge", **merging)
        _release(world, merging, call, judge)
    if not _is_released(world):
        call("hand_over", **branch)
    call("delete_branch", **branch)


def _approved(world: World, merging: Mapping[str, Any]) -> bool:
    """Whether it may be merged: the policy is asked, and then the reviewer."""
    if world.verdict("merge", merging).decision == "deny":
        return False
    ticket, last = world.ask("reviewer", f"merge of {merging['tree']}", merging), 0
    while arrival := world.next_event(last):
        last = arrival.number
        if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
            break
    return world.verdict("merge", merging).allows


def _release(world: World, merging: Mapping[str, Any], call: Callable[..., Any], judge: Callable[..., Any]) -> None:
    tree = {"tree": merging["tree"]}
    call("migrate")
    call("start_canary", percent=SHARES[merging["risk"]], **tree)
    last = max((arrival.number for arrival in world.arrivals()), default=0)
    while (arrival := world.next_event(last)) and arrival.kind != "measured":
        last = arrival.number
    metrics = call("read_metrics", **tree)
    if metrics and judge("canary", metrics=metrics)["decision"] == "promote":
        call("promote", **tree)
        return
    call("roll_back", **tree)
    call("migrate_back")
    call("revert_merge", **tree)


def _is_released(world: World) -> bool:
    return any(entry.is_effect and entry.name == "promote" for entry in world.journal())


def slips_of(case: Case) -> dict[str, tuple[str, Slips]]:
    """Name -> why it is wrong, and what is judged otherwise."""
    slips: dict[str, tuple[str, Slips]] = {}
    for number, module in enumerate(case.modules, 1):
        letters = {line: letter for letter, line in rewrites_of(case, module).items()}
        nearly = {"rewrite": letters[module.wrong[NEARLY]]}
        slips[f"module_{number}"] = (module.changed, {f"adapt {module.name}": nearly})
    risk = "low" if case.traits & {"pushed", "flaky"} else "high"
    slips[MISSTATED] = (f"the risk is not {risk}", {"risk": {"risk": risk}})
    if "refused" not in case.traits:
        decision = "promote" if "legacy" in case.traits else "roll_back"
        slips["misreads_the_canary"] = (f"it is wrong to {decision.replace('_', ' ')}", {"canary": {"decision": decision}})
    return slips


def wrong_courses(case: Case, lenient: bool) -> dict[str, Callable[[World], None]]:
    """A misstated risk harms nothing where the reviewer does not look, or nothing is to be released."""
    slipped = {name: partial(follow, case, slips) for name, (_, slips) in slips_of(case).items()}
    if lenient or not case.is_wanted:
        del slipped[MISSTATED]
    careless: dict[str, Callable[[World], None]] = {
        "nothing": lambda _: None,
        "leaves_the_branch": partial(follow, case, {}, left_out="delete_branch"),
        "leaves_the_instance": partial(follow, case, {}, left_out="stop_instance"),
        "tests_nothing": partial(follow, case, {}, left_out="run_tests", reviewed=False),
        "asks_nobody": partial(follow, case, {}, reviewed=False),
        "tests_twice": partial(follow, case, {}, twice="run_tests"),
    }
    if "refused" not in case.traits:
        careless["merges_twice"] = partial(follow, case, {}, twice="merge")
    if case.is_wanted:
        careless["releases_twice"] = partial(follow, case, {}, twice="promote")
    elif "refused" not in case.traits:
        careless["leaves_the_canary"] = partial(follow, case, {}, left_out="roll_back")
        careless["leaves_the_migration"] = partial(follow, case, {}, left_out="migrate_back")
    return {**slipped, **careless}
