"""The procedures of an upgrade and of a pull request: the order of reads, judgments and effects, from the ticket to the end of
the branch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.worlds.run.environment import Call, Facts, ProcedureStep, Question

from .policy import SHARES, is_green
from .smaller_steps import steps_of_adding, triage_steps
from .story import LAST_LOOK, Case

Calls = Sequence[Call]
SAGA = "release"


@dataclass(frozen=True, eq=False)
class Acts:
    """The actions of each step of one upgrade, as pure functions of the facts."""

    case: Case

    @property
    def branch(self) -> Mapping[str, Any]:
        return {"branch": self.case.branch}

    def open(self, _: Facts) -> Calls:
        return [Call("open_branch", self.branch)]

    def of_module(self, name: str) -> Callable[[Facts], Mapping[str, Call]]:
        return lambda _: {"module": Call("read_module", {"module": name}), "changes": Call("read_changes", {})}

    def rewrite(self, name: str) -> Callable[[Facts], Calls]:
        return lambda facts: [Call("rewrite", {"module": name, **self.branch, **facts.decided[f"adapt_{name}"]})]

    def refs(self, name: str) -> Callable[[Facts], Mapping[str, Call]]:
        return lambda _: {name: Call("read_refs", self.branch)}

    def rebase(self, facts: Facts) -> Calls:
        refs = facts.read["refs"]
        return [] if refs["main"] == refs["base"] else [Call("rebase", {**self.branch, "main": refs["main"]})]

    def check(self, facts: Facts) -> Calls:
        tree = self.tree(facts)
        return [Call("run_tests", {**tree, "run": 1}), Call("run_lint", tree), Call("start_instance", tree)]

    def test_again(self, facts: Facts) -> Calls:
        return [Call("run_tests", {**self.tree(facts), "run": 2})]

    def stop(self, facts: Facts) -> Calls:
        return [Call("stop_instance", self.tree(facts))]

    def of_tree(self, facts: Facts) -> Mapping[str, Call]:
        """Return the calls that read a tree. They always include the refs, since main may have moved."""
        return {
            "now": Call("read_refs", self.branch),
            **{name: Call(f"read_{name}", self.tree(facts)) for name in ("diff", "checks")},
        }

    def merge(self, facts: Facts) -> Calls:
        return [Call("merge", {**self.tree(facts), **facts.decided["merge"]})] if is_green(facts.read["checks"]) else []

    def ask(self, _: Facts, call: Call) -> Question:
        return Question("reviewer", f"merge of {call.arguments['tree']}", call.arguments)

    def deploy(self, facts: Facts) -> Calls:
        share = SHARES[facts.decided["merge"]["risk"]]
        return [Call("migrate", {}), Call("start_canary", {**self.tree(facts), "percent": share})]

    def metrics(self, facts: Facts) -> Mapping[str, Call]:
        return {"metrics": Call("read_metrics", self.tree(facts))}

    def settle(self, facts: Facts) -> Calls:
        if facts.decided["settle"]["decision"] == "promote":
            return [Call("promote", self.tree(facts))]
        return self.take_back(facts)

    def take_back(self, facts: Facts, _: str = "") -> Calls:
        """Return the calls that undo the whole release, the last effect first."""
        return [Call("roll_back", self.tree(facts)), Call("migrate_back", {}), Call("revert_merge", self.tree(facts))]

    def close(self, facts: Facts) -> Calls:
        over = [] if stands(facts, "release of") else [Call("hand_over", self.branch)]
        return [Call("delete_branch", self.branch), *over]

    def propose(self, facts: Facts) -> Calls:
        return [Call("open_pull_request", {**self.tree(facts), **self.branch, **facts.decided["describe"]})]

    def checks(self, facts: Facts) -> Mapping[str, Call]:
        return {"now": Call("read_refs", self.branch), "checks": Call("read_checks", self.tree(facts))}

    def merge_described(self, facts: Facts) -> Calls:
        described, checks = facts.decided["describe"], facts.read["checks"]
        return [Call("merge", {**self.tree(facts), "risk": described["risk"]})] if is_green(checks) else []

    def close_pull_request(self, facts: Facts) -> Calls:
        close = Call("delete_branch", self.branch)
        return [close] if is_merged(facts) else [Call("close_pull_request", self.branch), close, Call("hand_over", self.branch)]

    @staticmethod
    def tree(facts: Facts) -> dict[str, Any]:
        """Return the reference to the branch's tree on the present main."""
        return {"tree": facts.read["checked"]["head"]}


def stands(facts: Facts, effect: str) -> bool:
    return any(key.startswith(effect) for key in facts.results)


def failed_first(facts: Facts) -> bool:
    """Return whether a test failed in the first run, so that it has to run again."""
    runs = [result for effect, result in facts.results.items() if effect.startswith("tests of") and effect.endswith("run 1")]
    return any(result["failed"] for result in runs)


def is_merged(facts: Facts) -> bool:
    return stands(facts, "merge of")


def is_on_trial(facts: Facts) -> bool:
    return stands(facts, "canary of") and not stands(facts, "release of")


def came_to_nothing(facts: Facts) -> bool:
    return not is_on_trial(facts)


def is_open(facts: Facts) -> bool:
    return stands(facts, "branch ")


def steps(case: Case) -> tuple[ProcedureStep, ...]:
    do = Acts(case)
    match case.work:
        case "triage":
            return triage_steps()
        case "add_test":
            return steps_of_adding(case)
        case "pull_request":
            return (*_up_to_the_checks(do), *_of_pull_request(do))
        case _:
            return (*_up_to_the_checks(do), *_of_release(do))


def _up_to_the_checks(do: Acts) -> Iterator[ProcedureStep]:
    last = "open"
    yield ProcedureStep("open", on="ticket", effects=do.open)
    for module in do.case.modules:
        name = f"adapt_{module.name}"
        reads, effects = do.of_module(module.name), do.rewrite(module.name)
        yield ProcedureStep(name, (last,), reads=reads, judgment="adapt", effects=effects)
        last = name
    yield ProcedureStep("rebase", (last,), reads=do.refs("refs"), effects=do.rebase)
    yield ProcedureStep("check", ("rebase",), reads=do.refs("checked"), effects=do.check)
    yield ProcedureStep("test_again", ("check",), needed=failed_first, effects=do.test_again)
    yield ProcedureStep("stop", ("test_again",), effects=do.stop)


def _of_release(do: Acts) -> Iterator[ProcedureStep]:
    yield ProcedureStep("merge", ("stop",), reads=do.of_tree, judgment="risk", effects=do.merge, asks=do.ask)
    yield ProcedureStep("deploy", ("merge",), needed=is_merged, effects=do.deploy)
    yield ProcedureStep("give_up", ("deploy",), needed=came_to_nothing, effects=do.close)
    yield ProcedureStep(
        "settle", ("deploy",), "measured", needed=is_on_trial, reads=do.metrics, judgment="canary", effects=do.settle
    )
    yield ProcedureStep("close", ("settle",), needed=is_open, effects=do.close)
    last_look = do.case.moment(LAST_LOOK)
    yield ProcedureStep("last_look", ("give_up",), starts=last_look, needed=is_on_trial, effects=do.take_back)
    yield ProcedureStep("last_close", ("last_look",), needed=is_open, effects=do.close)


def _of_pull_request(do: Acts) -> Iterator[ProcedureStep]:
    """Yield the steps of a pull request. It is opened whatever the checks gave, and merged if they are green and the reviewer
    approves."""
    yield ProcedureStep("describe", ("stop",), reads=do.of_tree, judgment="describe", effects=do.propose)
    yield ProcedureStep("merge", ("describe",), reads=do.checks, effects=do.merge_described, asks=do.ask)
    yield ProcedureStep("close", ("merge",), effects=do.close_pull_request)
