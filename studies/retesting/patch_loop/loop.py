"""The loop: look at the tests, patch, look again, take a patch back that broke passing tests; stop when all seem to pass.

The proposer is simulated. Its draws depend on the case and on the number of the patch, so they are the same for all arms.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

from bench.common.seeding import draw_for
from bench.common.tokens import count_tokens

from .arms import RetestArm
from .case import LineChange, RepairCase, patch_text
from .results import Disruption, LoopResult
from .suite import CallResult

MOST_PATCHES = 12
ERRS = 0.25
"""The chance that a patch is wrong: it breaks a line that was right, and mends nothing."""
AT_ONCE = 2
"""Lines that a right patch mends."""
SECONDS_A_TEST, TOKENS_A_SECOND_READ, TOKENS_A_SECOND_WRITTEN = 1.0, 2000, 50
"""The parts of simulated seconds."""


def run_loop(case: RepairCase, arm: RetestArm, disruption: Disruption, seed: int) -> LoopResult:
    """Repair a case in an arm, to its end.

    Args:
        case: The repository and its tests.
        arm: What it trusts.
        disruption: What goes wrong.
        seed: The seed of all draws.

    Returns:
        The result.
    """
    return _Loop(case, arm, disruption, seed).run()


class _Loop:
    def __init__(self, case: RepairCase, arm: RetestArm, disruption: Disruption, seed: int):
        self.case, self.arm, self.disruption, self.seed = case, arm, disruption, seed
        self.changes: frozenset[LineChange] = frozenset()
        self.kept: defaultdict[str, list[CallResult]] = defaultdict(list)
        self.executions = self.believed = self.wrong = self.over_run = self.tokens = self.looks = 0
        self.written, self.struck = 0, False
        draw = draw_for(seed, case.name, disruption)
        self.struck_look, self.struck_test = draw.randint(1, 3), draw.choice(case.suite.tests).name
        self.struck_patch = draw.randint(1, 2)

    def run(self) -> LoopResult:
        if self.disruption == "stale_cache":
            self.struck = True
            for name, result in self.case.suite.run(self.case.right).results.items():
                self.kept[name].append(result)
        passing, patches = self._look(), 0
        while patches < MOST_PATCHES and len(passing) < len(self.case.suite.tests):
            patches += 1
            before = self.changes
            self._patch(patches, passing)
            after = self._look()
            if passing - after:
                self.changes = before
                after = self._look()
            passing = after
        truth = self.case.suite.run(self.case.files(self.changes)).passes
        handed_in = len(passing) == len(self.case.suite.tests)
        read = self.tokens - self.written
        seconds = self.executions * SECONDS_A_TEST + read / TOKENS_A_SECOND_READ + self.written / TOKENS_A_SECOND_WRITTEN
        return LoopResult(
            "gave_up" if not handed_in else "solved" if truth else "wrong",
            self.tokens,
            self.executions,
            round(seconds, 3),
            self.believed,
            self.wrong,
            self.over_run,
            patches,
            self.struck,
        )

    def _look(self) -> frozenset[str]:
        """Run the tests without a trusted result again. Return the tests that are believed to pass now."""
        self.looks += 1
        run = self.case.suite.run(self.case.files(self.changes))
        passing = set()
        for test in self.case.suite.tests:
            kept = self.kept[test.name]
            if self.arm.trusts(kept, run.version):
                self.believed += 1
                self.wrong += not run.results[test.name].passed
                passing.add(test.name)
            elif self._executed(test.name, run.results[test.name]).passed:
                passing.add(test.name)
        return frozenset(passing)

    def _executed(self, name: str, result: CallResult) -> CallResult:
        strikes = not self.struck and name == self.struck_test and self.looks >= self.struck_look
        if strikes and self.disruption == "lost_result":
            self.struck = True
            self.executions += 1
        if strikes and self.disruption == "flaky":
            self.struck, result = True, replace(result, passed=not result.passed)
        self.executions += 1
        kept = self.kept[name]
        self.over_run += bool(kept) and kept[-1].passed == result.passed
        kept.append(result)
        return result

    def _patch(self, number: int, passing: frozenset[str]) -> None:
        """Ask the proposer for a patch, and apply it to the tree."""
        draw = draw_for(self.seed, self.case.name, "patch", number)
        standing = [slip for slip in self.case.slips if slip in self.changes]
        unmended = [fix for fix in self.case.fixes if fix not in self.changes]
        free = [slip for slip in self.case.slips if slip not in self.changes]
        errs, at = draw.random() < ERRS, draw.random()
        patch = [free[int(at * len(free))]] if errs and free else [*unmended, *standing][:AT_ONCE]
        arriving = patch
        if self.disruption == "half_patch" and not self.struck and number >= self.struck_patch and patch:
            self.struck, arriving = True, patch[: len(patch) // 2]
        before = self.case.files(self.changes)
        after = self.case.files(self.changes ^ frozenset(patch))
        failing = [vars(test) for test in self.case.suite.tests if test.name not in passing]
        told = [LineChange(line.file, line.replace, line.find) if line in self.changes else line for line in patch]
        written = count_tokens(patch_text(told, after, self.arm.whole_files))
        self.written += written
        self.tokens += written + count_tokens(json.dumps([before, failing]))
        self.changes ^= frozenset(arriving)
