"""Make reports/strong_models/report.md of files that others published: numbers only, and none of their text.

    python tools/strong_models.py FOLDER [REEXECUTED ...]

FOLDER holds the files, wherever in it; each is known by its SHA-256, and docs/results/strong_models.md says where they are.
REEXECUTED are what `bench reexecute --json` printed of them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean, median

from bench.common.files import content_of, write_whole
from bench.read.analysis.statistics.rates import Share, share_by_instance
from bench.rerun.elsewhere.counting import ErrorRepair, partings, repairs, repeated
from bench.rerun.elsewhere.reading import LARGEST, recorded_run
from bench.rerun.elsewhere.trials import RecordedRun, RecordedTrial

REPORT = Path(__file__).parents[1] / "reports" / "strong_models" / "report.md"
FILES = {
    "e9e6c0297660c537f83d4fd9c476ce7a9a86ecd2784874b7bfc13be598e37bfa": "GPT-4o airline, 4 trials a task",
    "c468c9b959548d966f773585bafb8c5a761705f91bb0e920be1da5fe5bbced9e": "Grok-3 retail, 503 drawn",
    "cbc4f9cec3de97e4ecf3908005ad62d4e309c767e0afc23a898425f5d56e6a33": "GPT-4o retail (by the code)",
    "0c837d833ee09fc5ba552dbd3c143922cf8adaafadddfdabe187136897bcb659": "the same, with precondition advice",
    "ae6720f50b64e0e28a3fda014fed084066bebf62011fd1d1c0efd2e4d2ab0b76": "GPT-4.1 retail",
    "57f7bba1fd0366019867f5c0af877e73b98e68040e36d0e7b064df7f7bb1c289": "GPT-4.1 airline",
    "72fa1a9c3488e6338c41a1fee98fe6aa48827ce195e14df354385dd6ac6285fa": "GPT-4.1 telecom",
    "a72859d0bf7fffc46a55a92098aa720a02e3eabf423e82160634fc1b37bbc57c": "GPT-4.1 telecom, solo",
    "03019640ccbd4c52c5d92d5ecae570ee0c0567d314844f8a3255b7f469bc669e": "GPT-4o of November 2024 airline",
    "aca69dd3e28e216e35d2ee484d8f289ed2110f1b2ba400bee13c61118ca1690e": "Sonnet 4.5 airline",
    "6dacfe6a778ff74375683cba3cf4970e83a1c726855c8e370dc634463d56ac92": "Opus 4.6 airline",
    "c597a057a4b4e7c9f04a9d0bd730a3309d9929bdba36a9eabee3f891ffd3d671": "Opus 4.6 airline, own scaffold",
    "9cd99d0439e648c95f9ca5d25a51528d66ee14e5023aed2d223d267d5e61727b": "GPT-5.4 airline",
    "b6e7ee5cb6d67037d62d513dabb4717a17c3aa7d87caae014c214b4d62593c04": "gpt-oss-120b airline",
    "2f4ae8f34d0d5e82cc38d96239693cdbb00fe6b43c92c38abd2f67e61322c15f": "Qwen2.5-7B airline",
}
"""SHA-256 of a file's content -> its name in the report, in the report's order."""
DRAWN = "Error: 503"
"""How the errors begin that were drawn at random, in the file of Grok-3."""
READS = frozenset({"calculate", "get_reservation_details", "get_user_details", "list_all_airports", "search_direct_flight"}) | {
    "search_onestop_flight",
    "think",
    "transfer_to_human_agents",
}
"""The tools of the airline that change nothing."""
PRICE = ("Repaired", "Never", "Calls, median and mean", "Tokens, median and mean")
SETS = (
    *("Set", "Trials", "Calls", "Errors", "Trials with an error, solved", "Trials without, solved"),
    *(*PRICE, "Same call again", "behind its error"),
)
CAUSES = ("Who caused the error", "Errors", *PRICE, "Solved with", "Solved without")
PARTINGS = (
    *("Tasks", "Always solved", "Never", "Mixed", "Pairs of trials", "Same calls", "Same effects"),
    *("First differing call, median", "at call 0"),
)
DANGER = (
    *("Set", "Answers equal", "Ends equal", "Tool", "Delivered", "Effects", "Refused", "Absorbed", "Store changed"),
    *("In solved trials", "Turned wrong"),
)


def main(folder: Path, reexecuted: Sequence[Path]) -> None:
    """Write the report. Ends with a line that names the files that are not in the folder."""
    paths = {}
    for path in sorted(each for each in folder.rglob("*.json") if each.is_file() and each.stat().st_size <= LARGEST):
        paths[hashlib.sha256(content_of(path, LARGEST)).hexdigest()] = path
    if lacking := [name for digest, name in FILES.items() if digest not in paths]:
        sys.exit(f"{folder}: has no file with the SHA-256 of: {', '.join(lacking)}")
    runs = {name: recorded_run(paths[digest]) for digest, name in FILES.items()}
    parts = (_head(), _sets(runs), _drawn(runs["Grok-3 retail, 503 drawn"]), _parting(runs["GPT-4o airline, 4 trials a task"]))
    lines = [line for part in (*parts, _danger(reexecuted), _inputs()) for line in (*part, "")]
    REPORT.parent.mkdir(exist_ok=True)
    write_whole(REPORT, "\n".join(lines[:-1]).encode() + b"\n")


def _head() -> Iterator[str]:
    yield "# What failures cost strong models: runs that others recorded"
    yield ""
    yield "All trials were RECORDED ELSEWHERE, and are pooled with no run of ours. `tools/strong_models.py` makes this page."


def _table(columns: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + " --- |" * len(columns)
    yield from (f"| {row} |" for row in rows)


def _sets(runs: dict[str, RecordedRun]) -> Iterator[str]:
    yield "## Natural errors, and what their repair took"
    yield ""
    yield "A tool is repaired if it succeeds later in the trial. Tokens are those of the error's own message and of those"
    yield "up to that success. Hard tasks cause errors and failures, so two columns of one row are no price of an error."
    yield ""
    yield from _table(SETS, (_set(name, run.trials) for name, run in runs.items()))


def _set(name: str, trials: Sequence[RecordedTrial]) -> str:
    every = [repair for trial in trials for repair in repairs(trial)]
    struck = [trial for trial in trials if any(call.failed for call in trial.calls)]
    spared = [trial for trial in trials if trial not in struck]
    again = [repeated(trial) for trial in trials]
    calls = sum(len(trial.calls) for trial in trials)
    cells = [
        name,
        f"{len(trials)}",
        f"{calls:,}",
        f"{len(every)} ({len(every) / calls:.1%})",
        _solved(struck),
        _solved(spared),
        *_price(every),
        f"{sum(first for first, _ in again)}",
        f"{sum(second for _, second in again)}",
    ]
    return " | ".join(cells)


def _price(every: Sequence[ErrorRepair]) -> tuple[str, ...]:
    calls = [repair.calls for repair in every if repair.calls is not None]
    tokens = [repair.tokens for repair in every if repair.tokens is not None]
    if not calls:
        return "0", f"{len(every)}", "–", "–"
    prices = (f"{median(each):g}, {mean(each):.1f}" for each in (calls, tokens))
    return (f"{len(calls)}", f"{len(every) - len(calls)}", *prices)


def _solved(trials: Sequence[RecordedTrial]) -> str:
    return f"{sum(bool(trial.solved) for trial in trials)} of {len(trials)}"


def _drawn(run: RecordedRun) -> Iterator[str]:
    yield "## One read answers 503 by chance (Grok-3, 115 tasks, p = 0.3)"
    yield ""
    every = [repair for trial in run.trials for repair in repairs(trial)]
    drawn = [repair for repair in every if repair.call.answer.startswith(DRAWN)]
    natural = [repair for repair in every if not repair.call.answer.startswith(DRAWN)]
    reads = sum(call.tool == "get_order_details" for trial in run.trials for call in trial.calls)
    same = [repair.same for repair in drawn if repair.same is not None]
    again = sum(repair.again for repair in drawn)
    yield f"- {len(drawn)} of {reads} reads were struck. In {again} of {len(drawn)} cases the next call is the same call."
    after = f"after {mean(same):.2f} calls in the mean, at most {max(same)}"
    yield f"- The same call succeeded later in {len(same)} of {len(drawn)} cases, {after}."
    yield ""
    yield from _table(CAUSES, (_cause(run, name, these) for name, these in (("chance", drawn), ("the model", natural))))
    yield ""
    yield "Brackets hold 95% intervals over tasks. Where the model caused the error, hard tasks cause both, and the difference"
    yield "is no price. Where chance caused it, a trial with more reads is still struck more often."


def _cause(run: RecordedRun, name: str, these: Sequence[ErrorRepair]) -> str:
    calls = {id(repair.call) for repair in these}
    struck = [trial for trial in run.trials if any(id(call) in calls for call in trial.calls)]
    spared = [trial for trial in run.trials if trial not in struck]
    shares = (_interval(share_by_instance([t.task for t in each], [bool(t.solved) for t in each])) for each in (struck, spared))
    return " | ".join((name, f"{len(these)}", *_price(these), *shares))


def _interval(share: Share) -> str:
    return f"{share.k} of {share.n} ({share.rate or 0:.0%} [{share.low or 0:.0%}, {share.high or 0:.0%}])"


def _parting(run: RecordedRun) -> Iterator[str]:
    tasks = [
        list(trials) for _, trials in groupby(sorted(run.trials, key=lambda trial: int(trial.task)), lambda trial: trial.task)
    ]
    pairs = [parting for trials in tasks for parting in partings(trials, READS)]
    rates = [{bool(trial.solved) for trial in trials} for trials in tasks]
    firsts = [parting.first for parting in pairs if parting.first is not None]
    yield "## How far four runs of GPT-4o part on the same task"
    yield ""
    cells = (
        *(len(tasks), rates.count({True}), rates.count({False}), sum(len(each) > 1 for each in rates), len(pairs)),
        *(sum(parting.first is None for parting in pairs), sum(parting.same_effects for parting in pairs)),
        *(f"{median(firsts):g}", f"{firsts.count(0)} of {len(pairs)}"),
    )
    yield from _table(PARTINGS, [" | ".join(map(str, cells))])


def _danger(reexecuted: Sequence[Path]) -> Iterator[str]:
    yield "## Effects delivered in another way, with the recorded suffix behind them"
    yield ""
    documents = [json.loads(content_of(path, LARGEST)) for path in reexecuted]
    if not documents:
        yield "Not measured in this version of the page: `nox -s reexecute` counts it on the reader's machine."
        return
    yield from _table(DANGER, (row for document in documents for row in _danger_rows(document)))


def _danger_rows(document: dict[str, object]) -> Iterator[str]:
    first = f"{FILES[str(document['sha256'])]} | {document['equal_answers']} of {document['answers']}"
    first += f" | {document['equal_ends']} of {document['checked_ends']}"
    danger = document["danger"]
    assert isinstance(danger, list)
    for each in danger:
        counts = " | ".join(str(each[name]) for name in ("effects", "refused", "absorbed", "changed", "solved", "wrong"))
        yield f"{first} | {each['tool']} | {each['delivered']} | {counts}"


def _inputs() -> Iterator[str]:
    yield "## The files"
    yield ""
    yield from _table(("Set", "SHA-256"), (f"{name} | `{digest}`" for digest, name in FILES.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
