"""The output of `bench import` on trials that other people recorded, one fact per line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.common.errors import one_line
from bench.elsewhere.counting import ErrorRepair, repairs
from bench.elsewhere.trials import MARK, RecordedRun


def recorded_lines(path: Path, run: RecordedRun) -> Iterator[str]:
    """Yield lines that describe a file of recorded trials."""
    trials, calls = run.trials, [call for trial in run.trials for call in trial.calls]
    model_text = f"model {one_line(run.model, 80)}" if run.model else "the file names no model"
    yield f"{path}: {run.form}, {model_text}, {MARK} (SHA-256 {run.sha256})"
    graded = [trial.solved for trial in trials if trial.solved is not None]
    outcome = f"{sum(graded)} of {len(graded)} solved" if graded else "no outcome"
    yield f"{len(trials)} trials of {len({trial.task for trial in trials})} tasks, {outcome}"
    provider = [tokens for trial in trials if (tokens := trial.provider_tokens) is not None]
    by_provider = f"; {sum(provider):,} with every prompt, as the provider counted them" if provider else ""
    yield f"{sum(trial.tokens for trial in trials):,} tokens, each message counted once{by_provider}"
    checked = [call for call in calls if call.failed is not None]
    failed = sum(bool(call.failed) for call in checked)
    yield f"{len(calls)} calls of tools" + (f", {failed} answered by an error ({failed / len(checked):.1%})" if checked else "")
    by_kind = defaultdict[str, list[ErrorRepair]](list)
    for trial in trials:
        for repair in repairs(trial):
            by_kind[repair.kind].append(repair)
    for kind, repairs_of_kind in sorted(by_kind.items()):
        successes = [repair for repair in repairs_of_kind if repair.calls is not None]
        cost = ""
        if successes:
            calls_median = median(repair.calls or 0 for repair in successes)
            tokens_median = median(repair.tokens or 0 for repair in successes)
            cost = f", in {calls_median:g} calls and {tokens_median:g} tokens (medians)"
        yield f"  {kind}: {len(repairs_of_kind)} errors, then the tool succeeded in {len(successes)}{cost}"
