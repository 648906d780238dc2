"""One mutant: the full suite, and what our selector and pytest-testmon run and keep of it, each in processes of its own."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from impact.mutants import Mutant
from impact.packages import Package

Outcomes = dict[str, tuple[str, str]]
TOOLS = Path(__file__).parents[1]
LIMIT, WAIT = 60, 1800.0
"""Seconds of the processor, and of waiting; a mutant that makes its suite take longer is left out, and told."""
PLAIN = ("-p", "no:testmon")
OURS = ("-p", "no:testmon", "-p", "bench.codebase.plugin")
SELECTORS = {"bench": (*OURS, "--bench-impact"), "testmon": ("--testmon",)}


@dataclass(frozen=True)
class Session:
    """One run of pytest: what ran, how it came out, and the processor seconds that it took."""

    outcomes: Outcomes
    seconds: float


@dataclass(frozen=True)
class Row:
    """What one selector did for one mutant, in numbers of tests; `whole` is what the full suite took, in processor seconds."""

    package: str
    mutant: str
    selector: str
    tests: int
    changed: int
    run: int
    missed: int
    distorted: int
    over_run: int
    seconds: float
    whole: float


class Suite:
    """A package's tests in a repository of its own, with the states of both selectors as the unchanged code left them."""

    def __init__(self, package: Package, root: Path):
        self.package, self.root = package, root
        self.states = root.parent / f"{package.release}-states"
        self.kept = (root / ".git" / "bench-code", root / ".testmondata")

    def run(self, *options: str) -> Session | None:
        """The suite under these options; None where it does not end in time."""
        to = self.states.parent / f"{self.package.release}.json"
        to.unlink(missing_ok=True)
        path = os.pathsep.join((str(self.root / self.package.source), str(TOOLS), str(TOOLS.parent)))
        fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "IMPACT_OUTCOMES": str(to)}
        words = ("-q", "--continue-on-collection-errors", "-p", "impact.outcomes", *options, self.package.tests)
        began = os.times()
        with subprocess.Popen(
            (sys.executable, "-m", "pytest", *words),
            cwd=self.root,
            env=os.environ | fixed,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (LIMIT, LIMIT))
            try:
                if process.wait(WAIT) < 0:
                    return None
            except subprocess.TimeoutExpired:
                process.kill()
                return None
        ended = os.times()
        seconds = ended.children_user + ended.children_system - began.children_user - began.children_system
        found = json.loads(to.read_text(encoding="utf-8")) if to.exists() else {}
        return Session({name: (outcome, detail) for name, (outcome, detail) in found.items()}, seconds)

    def keep(self) -> None:
        """Set both states aside as they are now."""
        shutil.rmtree(self.states, ignore_errors=True)
        self.states.mkdir()
        for number, state in enumerate(self.kept):
            if state.is_dir():
                shutil.copytree(state, self.states / str(number))
            elif state.exists():
                shutil.copy2(state, self.states / str(number))

    def restore(self) -> None:
        """Bring both states back to what was set aside."""
        for number, state in enumerate(self.kept):
            kept = self.states / str(number)
            if state.is_dir():
                shutil.rmtree(state)
                shutil.copytree(kept, state)
            elif kept.exists():
                for beside in state.parent.glob(f"{state.name}*"):
                    beside.unlink()
                shutil.copy2(kept, state)

    def judge(self, base: Outcomes, flaky: set[str], mutant: Mutant, silent: bool = True) -> list[Row] | None:
        """Run the mutant in full and by each selector.

        Args:
            base: What the tests of the unchanged code came to.
            flaky: Tests that are left out, since they differ without a change.
            mutant: The edit.
            silent: Whether a mutant that changes no result is asked for; else there are no rows of it.

        Returns:
            A row for each selector; None where the mutant does not end.
        """
        file = self.root / mutant.path
        before = file.read_bytes()
        file.write_text(mutant.content, encoding="utf-8")
        try:
            full = self.run(*PLAIN)
            if full is None:
                return None
            if not silent and all(full.outcomes.get(test) == base[test] for test in set(base) - flaky):
                return []
            rows = []
            for name, options in SELECTORS.items():
                self.restore()
                selected = self.run(*options)
                if selected is None:
                    return None
                rows.append(self._row(name, base, flaky, mutant, full, selected))
            return rows
        finally:
            file.write_bytes(before)

    def _row(self, name: str, base: Outcomes, flaky: set[str], mutant: Mutant, full: Session, selected: Session) -> Row:
        tests = set(base) - flaky
        changed = {test for test in tests if full.outcomes.get(test) != base[test]}
        ran = tests & set(selected.outcomes)
        # A test that has gone, say with a file that cannot be collected any more, was not kept where its file was collected.
        gone = _files(selected.outcomes, "collection")
        missed = {test for test in changed - ran if test.partition("::")[0] not in gone}
        distorted = {test for test in ran if selected.outcomes[test] != full.outcomes.get(test)}
        where = f"{mutant.path}:{mutant.line} {mutant.what}"
        counts = (len(tests), len(changed), len(ran), len(missed), len(distorted), len(ran - changed))
        return Row(self.package.release, where, name, *counts, round(selected.seconds, 3), round(full.seconds, 3))


def _files(outcomes: Mapping[str, tuple[str, str]], detail: str) -> set[str]:
    return {name.partition("::")[0] for name, (_, why) in outcomes.items() if why == detail}
