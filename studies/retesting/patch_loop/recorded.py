"""Patches that a model wrote, and what each arm makes of them: which tests it runs again, and what it believes.

The patches come from a recorded run of `repairs:patch` or `repairs:rewrite`. Each is a change of the broken repository. So all
arms meet the same patches, and differ only in their books and in when they hand in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.common.errors import ResultsError
from bench.common.registry import attribute_at
from bench.record.events import Called, of_kind
from bench.record.formats import AnswerFormat
from bench.record.reading import read_texts, read_trials
from bench.record.record import latest
from bench.run.trial.reply import parts_of
from bench.run.trial.verification import Rejected, validate
from bench.scenario import Scenario, scenario_key

from .arms import ARMS, RetestArm, nothing
from .results import FORMS, PatchedCase
from .suite import CallResult, CallTest, FileTexts, Suite


@dataclass(frozen=True)
class RecordedPatch:
    """A patch as a model wrote it.

    files    the repository with it; None if it did not fit, so that nothing changed
    tokens   read and written for it
    """

    files: FileTexts | None
    tokens: int


def recorded_cases(
    folder: Path, scenarios: Mapping[str, Scenario], answer_format: AnswerFormat
) -> Iterator[tuple[str, str, list[PatchedCase]]]:
    """Yield (form of the patch, arm, result of each case) for the trials of a recorded run.

    Args:
        folder: The recorded run.
        scenarios: The instances of the pack, by `Scenario.key`.
        answer_format: The form in which its model answered.

    Raises:
        ResultsError: The folder holds no run, or lacks the text of a reply.
    """
    texts = read_texts(folder)
    cases: defaultdict[str, list[tuple[str, Suite, FileTexts, list[RecordedPatch]]]] = defaultdict(list)
    for trial in latest(read_trials(folder)):
        scenario = scenarios.get(scenario_key(trial.scenario, trial.instance))
        if scenario is None or trial.scenario not in FORMS or trial.outcome == "error":
            continue
        patches = [_patch(call, scenario, texts, answer_format) for call in of_kind(trial.events, Called) if call.reply]
        suite = Suite([CallTest(*test) for test in scenario.truth["tests"]])
        cases[trial.scenario].append((trial.instance, suite, scenario.truth["files"], patches))
    for name, form in FORMS.items():
        for arm in (arm for arm in ARMS if arm.trusts is not nothing or arm.whole_files == (form == "whole files")):
            if cases[name]:
                yield form, arm.name, [replayed(*case, arm) for case in cases[name]]


def _patch(call: Called, scenario: Scenario, texts: Mapping[str, str], answer_format: AnswerFormat) -> RecordedPatch:
    [fix], tokens, text = scenario.task.subtasks, call.tokens_in + call.tokens_out, texts.get(call.reply or "")
    if text is None:
        raise ResultsError(f"the recording lacks the text {call.reply}; restore it from a copy")
    output = validate(fix, parts_of(text, call.finish or "", [fix], answer_format)[fix.name].value)
    if isinstance(output, Rejected):
        return RecordedPatch(None, tokens)
    edits = attribute_at(f"{fix.output.__module__.rpartition('.')[0]}.edits")
    try:
        return RecordedPatch(edits.patched(scenario.truth["files"], output), tokens)
    except edits.Unfit:
        return RecordedPatch(None, tokens)


def replayed(case: str, suite: Suite, broken: FileTexts, patches: Sequence[RecordedPatch], arm: RetestArm) -> PatchedCase:
    """Follow a case's patches with the books of an arm, until it believes that all tests pass.

    Args:
        case: The case's name.
        suite: Its tests.
        broken: The files before any patch.
        patches: The patches in the order in which they were written.
        arm: What it trusts.

    Returns:
        The result.
    """
    kept: defaultdict[str, list[CallResult]] = defaultdict(list)
    executions = believed = wrong = 0
    asked: list[RecordedPatch] = []
    outcome: Literal["solved", "wrong", "gave_up"] = "gave_up"
    for patch in (RecordedPatch(broken, 0), *patches):
        asked.append(patch)
        if patch.files is None:
            continue
        run, passing = suite.run(patch.files), 0
        for test in suite.tests:
            result, results = run.results[test.name], kept[test.name]
            if arm.trusts(results, run.version):
                believed, wrong, passing = believed + 1, wrong + (not result.passed), passing + 1
            else:
                executions, passing = executions + 1, passing + result.passed
                results.append(result)
        if passing == len(suite.tests):
            outcome = "solved" if run.passes else "wrong"
            break
    fitting, tokens = sum(patch.files is not None for patch in asked) - 1, sum(patch.tokens for patch in asked)
    return PatchedCase(case, outcome, len(asked) - 1, fitting, tokens, executions, believed, wrong)
