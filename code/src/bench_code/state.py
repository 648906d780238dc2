"""The execution state of a repository: what ran when, on which versions, what it depended on, and what must run again."""

from __future__ import annotations

import itertools
import os

from bench_code import patches, running
from bench_code import portfolio as portfolios
from bench_code.git import CodeError
from bench_code.patches import Patch
from bench_code.present import Present
from bench_code.record import Fact
from bench_code.store import Kept
from bench_code.validity import ValidityDecision, decide
from bench_code.workspace import Workspace


class ExecutionState(Workspace):
    """Answers questions about a repository's executions, runs what must run again, and applies patches.

    Attributes:
        root: The top of the working tree.
        repository: The git repository.
        store: The file that holds the state.
    """

    # Steps

    def at(self, step: int) -> dict[str, str]:
        """Return the versions of the code at a step.

        Args:
            step: The number of a step.

        Returns:
            The digest of each artifact's version at that step. `content(step, path)` returns the code itself.

        Raises:
            CodeError: There is no step of this number.
        """
        self.named_step(step)
        query = "SELECT artifact, digest FROM versions WHERE step <= ? ORDER BY step"
        return {artifact: value for artifact, value in dict(self.store.rows(query, step)).items() if value != "absent"}

    def content(self, step: int, path: str) -> bytes:
        """Return the content of a file at a step.

        Args:
            step: The number of a step.
            path: The file, relative to the top of the tree.

        Returns:
            The content.

        Raises:
            CodeError: There is no step of this number, or the file did not exist at that step.
        """
        blob = self.repository.blob_at(self.named_step(step).tree, path)
        if not blob:
            raise CodeError(f"{path} was not there at step {step}")
        return self.repository.content(blob)

    # Patches

    propose = patches.propose
    note_changes = patches.note_changes
    patch = patches.patch_of
    apply = patches.apply
    revert = patches.revert
    back = patches.back
    prune = patches.prune

    def turned_by(self, name: str) -> list[Patch]:
        """Return the patches after which an execution last changed its outcome.

        Args:
            name: A test's node id, or the path of a script or document.

        Returns:
            The patches between the two runs with different outcomes; none if the outcome never changed.

        Raises:
            CodeError: Nothing of this name ever ran.
        """
        runs = self.store.executions(name=self.last(name).name)
        for before, after in reversed(list(itertools.pairwise(runs))):
            if before.outcome != after.outcome:
                query = "SELECT DISTINCT patch FROM versions WHERE step > ? AND step <= ? AND patch IS NOT NULL ORDER BY patch"
                return [self.patch(number) for (number,) in self.store.rows(query, before.step, after.step)]
        return []

    # Portfolios

    declare = portfolios.declare
    confirm = portfolios.confirm
    stale = portfolios.stale

    # Executions

    def decide(self, layout: str = "", present: Present | None = None) -> ValidityDecision:
        """Decide which results hold in the present tree, and which executions must run again.

        Args:
            layout: The options under which the executions ran.
            present: The present tree, if it is known.

        Returns:
            The decision.
        """
        return decide(self.store, present or self.present(), layout)

    run = running.run_tests
    run_all = running.run_all

    def invalid(self) -> list[str]:
        """Return the executions of all layouts that must run again in the present tree.

        Returns:
            Their names, in the order in which they last ran.
        """
        return [name for decision in self.decisions() for name in decision.invalid]

    def outcomes_at(self, step: int) -> dict[str, int]:
        """Count what ran at a step by outcome; what ran several times counts once, by its last outcome.

        Args:
            step: The number of a step.

        Returns:
            The numbers by outcome; empty if nothing ran.
        """
        last = "SELECT MAX(id) FROM executions WHERE step = ? GROUP BY kind, name"
        return dict(self.store.rows(f"SELECT outcome, COUNT(*) FROM executions WHERE id IN ({last}) GROUP BY outcome", step))

    def ran(self, step: int) -> tuple[list[Kept], dict[str, str]]:
        """Return what ran at a step.

        Args:
            step: The number of a step.

        Returns:
            The executions, and the version of each function that ran in them.

        Raises:
            CodeError: There is no step of this number.
        """
        self.named_step(step)
        executions = [each for each in self.store.executions() if each.step == step]
        facts = {fact for each in executions for _, _, fact in self.store.facts_of(each.id)}
        return executions, {fact.name: fact.value for fact in sorted(facts) if fact.kind == "body"}

    def needs(self, name: str | None = None) -> dict[str, list[Fact]]:
        """Return what executions depended on when they last ran: the graph of the repository's executions.

        Left out is what all tests depend on, which is all that is no body of a function.

        Args:
            name: A test's node id, or the path of a script or document; None for all.

        Returns:
            The facts of each execution, by its name.

        Raises:
            CodeError: Nothing of this name ever ran.
        """
        last = {each.name: each.id for each in ([self.last(name)] if name else self.store.executions())}
        of = self.store.facts_of
        return {each: sorted({fact for kind, _, fact in of(id_) if kind != "rest"}) for each, id_ in last.items()}

    def executions(self, name: str | None = None) -> list[Kept]:
        """Return the executions so far.

        Args:
            name: A test's node id, or the path of a script or document; None for all.

        Returns:
            The executions, oldest first.
        """
        return self.store.executions(name=name)

    def why(self, name: str) -> list[Fact]:
        """Return why an execution must run again.

        Args:
            name: A test's node id, or the path of a script or document.

        Returns:
            The facts that its last execution relied on and that no longer hold; none if a result of it is kept.

        Raises:
            CodeError: Nothing of this name ever ran.
        """
        if self.kept(name) is not None:
            return []
        present = self.present()
        return sorted({fact for _, _, fact in self.store.facts_of(self.last(name).id) if not present.holds(fact)})

    def kept(self, name: str) -> Kept | None:
        """Return the result of an execution that a run with the options of the last one would keep.

        Args:
            name: A test's node id, or the path of a script or document.

        Returns:
            The result, which can be older than the last; None if the execution must run again.

        Raises:
            CodeError: Nothing of this name ever ran.
        """
        last = self.last(name)
        [(layout,)] = self.store.rows("SELECT layout FROM executions WHERE id = ?", last.id)
        return self.decide(layout).kept.get(last.name)

    def last(self, name: str) -> Kept:
        """Return the last execution of this name.

        Args:
            name: A test's node id, or the path of a script or document.

        Returns:
            The execution.

        Raises:
            CodeError: Nothing of this name ever ran.
        """
        path, separator, inner = name.partition("::")
        executions = self.store.executions(name=name) or self.store.executions(name=os.path.normpath(path) + separator + inner)
        if not executions:
            raise CodeError(f"nothing named '{name}' has run here; `bench code log` shows what has")
        return executions[-1]

    def impact(self, artifact: str) -> list[str]:
        """Return what must run again if the functions of an artifact are made anew. Another change of code runs all tests.

        Args:
            artifact: `path::function`, `path::Class.method`, or the path of a file.

        Returns:
            The names of the executions, in the order in which they last ran; none for code that no execution ran.

        Raises:
            CodeError: There is no such file, or the file has no such function or class.
        """
        path, _, inner = artifact.partition("::")
        path = os.path.normpath(path)
        if not os.path.exists(self.root / path):
            raise CodeError(f"there is no file {path}; name an artifact as path::function")
        present = self.present()
        module = present.module(path)
        if inner and module is None:
            raise CodeError(f"{path} is no file of Python's; give its path alone")
        if inner and module and inner not in {unit.name for unit in module.units}:
            raise CodeError(module.why_not(path, inner))
        names = {f"{path}::{inner}"} if inner and module and inner in module.bodies else {path}
        wanted = [
            id_
            for id_, fact in self.store.facts().items()
            if fact.name in names or fact[:2] == ("file", path) or (not inner and fact.name.startswith(f"{path}::"))
        ]
        bad = self.store.executions_on(wanted, but="rest")
        last = {execution.name: execution.id for execution in self.store.executions()}
        return [name for name, id_ in last.items() if id_ in bad]
