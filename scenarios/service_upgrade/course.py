"""Courses of a case, as sequences of tool calls: the right course, and courses that a careless grader would accept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.scenario import Json
from bench.worlds.run.environment import World

from .expected import UNKNOWN
from .judgments import right
from .offered import offered_tests, right_test, written_test
from .policy import SHARES
from .reading import rewrite_of
from .repository import library, module_text
from .story import NEARLY, Case, Work
from .trees import history

Judge = Callable[[str, Mapping[str, str]], Json]
"""(subtask, its documents) -> its output."""
MISSTATED = "misstates_the_risk"
Slips = Mapping[str, Mapping[str, Json]]
"""Judgment -> the output in the right one's place; that of a module is `adapt MODULE`."""


@dataclass(frozen=True)
class Doer:
    """Takes a course by calling tools. It calls the tool `twice` two times, and does not call the tool `left_out`."""

    case: Case
    slips: Slips
    world: World
    twice: str = ""
    left_out: str = ""
    reviewed: bool = True
    judged: Judge = right

    def call(self, tool: str, **arguments: Any) -> Any:
        """Return the tool's result; None if the call was refused or is left out."""
        if tool == self.left_out:
            return None
        acted = self.world.call(tool, arguments)
        if tool == self.twice:
            self.world.call(tool, arguments)
        return acted.result.model_dump(mode="json") if acted.result is not None else None

    def judge(self, judgment: str, which: str = "", **documents: Any) -> Any:
        """Return the right output, changed by the slip if there is one. `which` distinguishes outputs of one judgment."""
        shown = {name: json.dumps(value) for name, value in documents.items()}
        return {**self.judged(judgment, shown), **self.slips.get(which or judgment, {})}

    def tested(self, *trees: str) -> None:
        """Run the tests of these trees, and run the failed tests once more."""
        first = {tree: self.call("run_tests", tree=tree, run=1) for tree in trees}
        for tree, run in first.items():
            if run and run["failed"]:
                self.call("run_tests", tree=tree, run=2)


def follow(case: Case, slips: Slips, world: World, **choices: Any) -> None:
    """Do the right steps in a case, except for these slips, and with these choices."""
    world.next_event()
    FOLLOWED[case.work](Doer(case, slips, world, **choices))


def _upgrade(do: Doer) -> None:
    tree = _checked(do)
    merging = {**tree, **do.judge("risk", diff=do.call("read_diff", **tree), checks=do.call("read_checks", **tree))}
    if not do.reviewed or ("refused" not in do.case.traits and _approved(do.world, merging)):
        do.call("merge", **merging)
        _release(do, merging)
    if not _is_done(do.world, "promote"):
        do.call("hand_over", branch=do.case.branch)
    do.call("delete_branch", branch=do.case.branch)


def _checked(do: Doer) -> dict[str, str]:
    """Make the branch with its rewrites, run all checks on it, and return the reference to its tree."""
    branch = {"branch": do.case.branch}
    do.call("open_branch", **branch)
    for module in do.case.modules:
        text, changes = do.call("read_module", module=module.name), do.call("read_changes")
        decided = do.judge("adapt", f"adapt {module.name}", module=text, changes=changes)
        do.call("rewrite", module=module.name, **branch, **decided)
    refs = do.call("read_refs", **branch)
    if refs["main"] != refs["base"]:
        do.call("rebase", main=refs["main"], **branch)
    tree = {"tree": do.call("read_refs", **branch)["head"]}
    tested = do.call("run_tests", run=1, **tree)
    do.call("run_lint", **tree)
    do.call("start_instance", **tree)
    if tested and tested["failed"]:
        do.call("run_tests", run=2, **tree)
    do.call("stop_instance", **tree)
    return tree


def _triage(do: Doer) -> None:
    do.tested(*(commit["tree"] for commit in do.call("read_log")["commits"]))
    log = do.call("read_log")
    blame = do.judge("blame", log=log)
    do.call("label", label=blame["label"])
    if blame["commit"] != "none":
        do.call("assign", person=log["commits"][int(blame["commit"]) - 1]["author"])


def _add_test(do: Doer) -> None:
    branch, module = {"branch": do.case.branch}, do.case.modules[0].name
    do.call("open_branch", **branch)
    mistake, changes = do.call("read_mistake", module=module), do.call("read_changes")
    adding = {"module": module, **branch, **do.judge(do.case.choosing, mistake=mistake, changes=changes)}
    added = do.call("add_test", **adding)
    do.tested(added["tree"], added["fixed"])
    if do.world.verdict("hand_over", branch).allows or not do.reviewed:
        do.call("hand_over", **branch)
        return
    do.call("drop_test", **adding)
    do.call("delete_branch", **branch)


def _pull_request(do: Doer) -> None:
    tree, branch = _checked(do), {"branch": do.case.branch}
    described = do.judge("describe", diff=do.call("read_diff", **tree), checks=do.call("read_checks", **tree))
    do.call("open_pull_request", **tree, **branch, **described)
    merging = {**tree, "risk": described["risk"]}
    if not do.reviewed or _approved(do.world, merging):
        do.call("merge", **merging)
    if not _is_done(do.world, "merge"):
        do.call("close_pull_request", **branch)
        do.call("hand_over", **branch)
    do.call("delete_branch", **branch)


FOLLOWED: Mapping[Work, Callable[[Doer], None]] = {
    "upgrade": _upgrade,
    "triage": _triage,
    "add_test": _add_test,
    "pull_request": _pull_request,
}


def _approved(world: World, merging: Mapping[str, Any]) -> bool:
    """Return whether the policy allows the merge after the reviewer has answered; False if it is denied before."""
    if world.verdict("merge", merging).decision == "deny":
        return False
    ticket, last = world.ask("reviewer", f"merge of {merging['tree']}", merging), 0
    while arrival := world.next_event(last):
        last = arrival.number
        if arrival.kind == "answer" and arrival.payload["ticket"] == ticket:
            break
    return world.verdict("merge", merging).allows


def _release(do: Doer, merging: Mapping[str, Any]) -> None:
    tree = {"tree": merging["tree"]}
    do.call("migrate")
    do.call("start_canary", percent=SHARES[merging["risk"]], **tree)
    last = max((arrival.number for arrival in do.world.arrivals()), default=0)
    while (arrival := do.world.next_event(last)) and arrival.kind != "measured":
        last = arrival.number
    metrics = do.call("read_metrics", **tree)
    if metrics and do.judge("canary", metrics=metrics)["decision"] == "promote":
        do.call("promote", **tree)
        return
    do.call("roll_back", **tree)
    do.call("migrate_back")
    do.call("revert_merge", **tree)


def _is_done(world: World, tool: str) -> bool:
    return any(entry.is_effect and entry.name == tool for entry in world.journal())


def slips_of(case: Case) -> dict[str, tuple[str, Slips]]:
    """Return the wrong judgments of a case: name -> why it is wrong, and the output that replaces the right one."""
    if case.work == "triage":
        return _slips_of_triage(case)
    if case.work == "add_test" and case.is_written:
        return _slips_of_written_test(case)
    if case.work == "add_test":
        others = [letter for letter in offered_tests(case) if letter != right_test(case)]
        return {f"test_{letter}": ("it does not tell the mistake", {"choose": {"test": letter}}) for letter in others}
    slips: dict[str, tuple[str, Slips]] = {}
    for number, module in enumerate(case.modules, 1):
        for line in module.wrong[NEARLY:] if case.is_written else module.wrong[NEARLY : NEARLY + 1]:
            name = f"module_{number}{'' if line == module.wrong[NEARLY] else '_otherwise'}"
            slips[name] = (module.changed, {f"adapt {module.name}": {"rewrite": rewrite_of(case, module, line)}})
    risk = "low" if case.traits & {"pushed", "flaky"} else "high"
    if case.work == "pull_request":
        slips["names_no_module"] = ("it changes a module", {"describe": {"modules": []}})
        slips[MISSTATED] = (f"the risk is not {risk}", {"describe": {"risk": risk}})
        return slips
    slips[MISSTATED] = (f"the risk is not {risk}", {"risk": {"risk": risk}})
    if "refused" not in case.traits:
        decision = "promote" if "legacy" in case.traits else "roll_back"
        slips["misreads_the_canary"] = (f"it is wrong to {decision.replace('_', ' ')}", {"canary": {"decision": decision}})
    return slips


def _slips_of_written_test(case: Case) -> dict[str, tuple[str, Slips]]:
    """Return slips for a test that the model writes: a test that passes on both versions, and two that fail on both, since they
    expect a wrong value or import an unknown module."""
    module = case.modules[0]
    present, mended = (module_text(case, module, line) for line in (module.wrong[NEARLY], module.right))
    shown = (case.library, library(case, 1), case.orders)
    alike = written_test(present, mended, *shown, telling=False)
    tests = {
        "passes_on_both": alike,
        "holds_the_mistake": written_test(mended, present, *shown),
        "fails_on_both": f"{alike}\nassert answer(ROWS, {UNKNOWN}) == 0",
    }
    return {name: ("it does not tell the mistake", {"write_test": {"test": test}}) for name, test in tests.items()}


def _slips_of_triage(case: Case) -> dict[str, tuple[str, Slips]]:
    breaking = next((commit.number for commit in history(case) if commit.breaks), None)
    if breaking is None:
        return {"blames_somebody": ("no commit broke it", {"blame": {"label": "regression", "commit": "1"}})}
    other = next(commit.number for commit in reversed(history(case)) if commit.number != breaking)
    return {
        "blames_another": (f"commit {breaking} broke it", {"blame": {"commit": str(other)}}),
        "calls_it_flaky": ("it fails in each run", {"blame": {"label": "flaky", "commit": "none"}}),
    }


def wrong_courses(case: Case, lenient: bool) -> dict[str, Callable[[World], None]]:
    """Return the wrong courses of a case by name. A misstated risk does no harm if the reviewer is lenient, or if nothing is to
    be released."""
    slipped = {name: partial(follow, case, slips) for name, (_, slips) in slips_of(case).items()}
    if case.work == "triage":
        return {
            **slipped,
            "nothing": lambda _: None,
            "labels_twice": partial(follow, case, {}, twice="label"),
            "runs_nothing": partial(follow, case, {}, left_out="run_tests"),
            "mends_main": partial(_mend_main, case),
        }
    if case.work == "add_test":
        _, first = next(iter(slips_of(case).values()))
        return {
            **slipped,
            "nothing": lambda _: None,
            "hands_over_unproved": partial(follow, case, {}, left_out="run_tests", reviewed=False),
            "hands_over_what_tells_nothing": partial(follow, case, first, reviewed=False),
            "adds_it_twice": partial(follow, case, {}, twice="add_test"),
        }
    if lenient or not case.is_wanted:
        del slipped[MISSTATED]
        slipped.pop("names_no_module", None)
    careless: dict[str, Callable[[World], None]] = {
        "nothing": lambda _: None,
        "leaves_the_branch": partial(follow, case, {}, left_out="delete_branch"),
        "leaves_the_instance": partial(follow, case, {}, left_out="stop_instance"),
        "tests_nothing": partial(follow, case, {}, left_out="run_tests", reviewed=False),
        "asks_nobody": partial(follow, case, {}, reviewed=False),
        "tests_twice": partial(follow, case, {}, twice="run_tests"),
    }
    if case.work == "pull_request":
        careless["opens_two_pull_requests"] = partial(follow, case, {}, twice="open_pull_request")
        careless["opens_none"] = partial(follow, case, {}, left_out="open_pull_request", reviewed=False)
        if not case.is_wanted:
            careless["leaves_it_open"] = partial(follow, case, {}, left_out="close_pull_request")
        return {**slipped, **careless}
    if "refused" not in case.traits:
        careless["merges_twice"] = partial(follow, case, {}, twice="merge")
    if case.is_wanted:
        careless["releases_twice"] = partial(follow, case, {}, twice="promote")
    elif "refused" not in case.traits:
        careless["leaves_the_canary"] = partial(follow, case, {}, left_out="roll_back")
        careless["leaves_the_migration"] = partial(follow, case, {}, left_out="migrate_back")
    return {**slipped, **careless}


def _mend_main(case: Case, world: World) -> None:
    """Triage the case rightly, and then fix the line on main, which the task does not ask for."""
    follow(case, {}, world)
    module = next((commit.module for commit in history(case) if commit.breaks), case.modules[0])
    letter = rewrite_of(case, module, module.right)
    world.call("open_branch", {"branch": case.branch})
    moved = world.call("rewrite", {"branch": case.branch, "module": module.name, "rewrite": letter}).result
    world.call("merge", {"tree": getattr(moved, "tree", ""), "risk": "low"})
    world.call("delete_branch", {"branch": case.branch})
