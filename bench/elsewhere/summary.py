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
    named = f"model {one_line(run.model, 80)}" if run.model else "the file names no model"
    yield f"{path}: {run.form}, {named}, {MARK} (SHA-256 {run.sha256})"
    graded = [trial.solved for trial in trials if trial.solved is not None]
    outcome = f"{sum(graded)} of {len(graded)} solved" if graded else "no outcome"
    yield f"{len(trials)} trials of {len({trial.task for trial in trials})} tasks, {outcome}"
    provider = [tokens for trial in trials if (tokens := trial.provider_tokens) is not None]
    counted = f"; {sum(provider):,} with every prompt, as the provider counted them" if provider else ""
    yield f"{sum(trial.tokens for trial in trials):,} tokens, each message counted once{counted}"
    judged = [call for call in calls if call.failed is not None]
    failed = sum(bool(call.failed) for call in judged)
    yield f"{len(calls)} calls of tools" + (f", {failed} answered by an error ({failed / len(judged):.1%})" if judged else "")
    by_kind = defaultdict[str, list[ErrorRepair]](list)
    for repair in (repair for trial in trials for repair in repairs(trial)):
        by_kind[repair.kind].append(repair)
    for kind, those in sorted(by_kind.items()):
        mended = [repair for repair in those if repair.calls is not None]
        took = ""
        if mended:
            took = f", in {median(r.calls or 0 for r in mended):g} calls and {median(r.tokens or 0 for r in mended):g} tokens"
            took += " (medians)"
        yield f"  {kind}: {len(those)} errors, then the tool succeeded in {len(mended)}{took}"
