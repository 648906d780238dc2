"""The procedures of triage and of adding a test: the order of reads, judgments and effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.worlds.run.environment import Call, Facts, ProcedureStep

from .policy import is_proved
from .story import Case


def _log(_: Facts) -> Mapping[str, Call]:
    return {"log": Call("read_log", {})}


def _trees(facts: Facts) -> list[str]:
    return [commit["tree"] for commit in facts.read["log"]["commits"]]


def _failed(facts: Facts, tree: str, run: int) -> list[str] | None:
    """Return the failures in a test run of a tree; None if there was no such run."""
    result = facts.results.get(f"tests of {tree}, run {run}")
    return None if result is None else list(result["failed"])


def _run(trees: Sequence[str], run: int) -> list[Call]:
    return [Call("run_tests", {"tree": tree, "run": run}) for tree in trees]


def _run_again(facts: Facts, trees: Sequence[str]) -> list[Call]:
    return _run([tree for tree in trees if _failed(facts, tree, 1)], 2)


def _blame(facts: Facts) -> list[Call]:
    blame, commits = facts.decided["triage"], facts.read["log"]["commits"]
    label = Call("label", {"label": blame["label"]})
    if blame["commit"] == "none":
        return [label]
    return [label, Call("assign", {"person": commits[int(blame["commit"]) - 1]["author"]})]


def triage_steps() -> tuple[ProcedureStep, ...]:
    """Return the steps of triage: run the tests of each commit, those that failed once more, then label and assign."""
    return (
        ProcedureStep("run", on="ticket", reads=_log, effects=lambda facts: _run(_trees(facts), 1)),
        ProcedureStep("run_again", ("run",), effects=lambda facts: _run_again(facts, _trees(facts))),
        ProcedureStep("triage", ("run_again",), reads=_log, judgment="blame", effects=_blame),
    )


@dataclass(frozen=True, eq=False)
class Adding:
    """The actions of each step of adding a test, as pure functions of the facts."""

    case: Case

    @property
    def branch(self) -> Mapping[str, Any]:
        return {"branch": self.case.branch}

    @property
    def module(self) -> str:
        return self.case.modules[0].name

    def open(self, _: Facts) -> list[Call]:
        return [Call("open_branch", self.branch)]

    def mistake(self, _: Facts) -> Mapping[str, Call]:
        return {"mistake": Call("read_mistake", {"module": self.module}), "changes": Call("read_changes", {})}

    def arguments(self, facts: Facts) -> dict[str, Any]:
        return {"module": self.module, **self.branch, **facts.decided["add"]}

    def add(self, facts: Facts) -> list[Call]:
        return [Call("add_test", self.arguments(facts))]

    def trees(self, facts: Facts) -> list[str]:
        """Return the branch with the test, and the fixed version with the test."""
        added = facts.results.get(f"test {facts.decided['add']['test']} of {self.module}", {})
        return [added["tree"], added["fixed"]] if added else []

    def is_proved(self, facts: Facts) -> bool:
        runs = [(_failed(facts, tree, 2), _failed(facts, tree, 1)) for tree in self.trees(facts)]
        last = [again if again is not None else first for again, first in runs]
        return bool(last) and is_proved({"branch": last[0], "fixed": last[1]})

    def drop(self, facts: Facts) -> list[Call]:
        return [Call("drop_test", self.arguments(facts)), Call("delete_branch", self.branch)]


def steps_of_adding(case: Case) -> tuple[ProcedureStep, ...]:
    """Return the steps of adding a test: put it on a branch, run it on both versions, hand it over or take it back."""
    do = Adding(case)
    return (
        ProcedureStep("open", on="ticket", effects=do.open),
        ProcedureStep("add", ("open",), reads=do.mistake, judgment=case.choosing, effects=do.add),
        ProcedureStep("prove", ("add",), effects=lambda facts: _run(do.trees(facts), 1)),
        ProcedureStep("prove_again", ("prove",), effects=lambda facts: _run_again(facts, do.trees(facts))),
        ProcedureStep("hand_over", ("prove_again",), needed=do.is_proved, effects=lambda _: [Call("hand_over", do.branch)]),
        ProcedureStep("take_back", ("hand_over",), needed=lambda facts: not do.is_proved(facts), effects=do.drop),
    )
