"""The results of a probe in sentences. The first sentence gives the conclusion, and the last says what the probe does not
show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from bench.common.errors import one_line
from bench.common.wording import plural
from bench.probe.points import is_meant, point_of
from bench.probe.read.run import CELLS_AGAIN, CLEAN_RUNS, UNDECIDED, CellRead, ProbeRead, gravest
from bench.record.events import of_kind
from bench.record.probe_events import CellFinding, CellJudged, CellVerdict, GatewayCall, RepeatCause
from bench.record.probe_rows import Cell, RowDifference

SIGNS: Mapping[CellVerdict, tuple[str, str]] = {
    "doubled": ("✕", "doubled"),
    "extra": ("✕", "extra"),
    "changed": ("✕", "changed"),
    "overwritten": ("✕", "overwritten"),
    "lost": ("✕", "lost"),
    "did_not_end": ("∞", "did not end"),
    "repeated": ("?", "repeated"),
    "gave_up": ("○", "gave up"),
    "compensated": ("↺", "compensated"),
    "absorbed": ("≈", "absorbed"),
    "same": ("✓", "same"),
    "not_applicable": ("–", "not applicable"),
    "no_verdict": ("?", "no verdict"),
}
"""Of each verdict: its sign, and its word."""
CAUSES: Mapping[RepeatCause, str] = {
    "": "",
    "client": "the client made the call again: no reply of the model came in between",
    "model": "the model asked for the call again",
    "restart": "the agent made the call again after its restart",
}
LONGEST, LONGEST_VALUE, LONGEST_ASKED = 300, 60, 100


def sentence(probe: ProbeRead) -> str:
    """Return the conclusion in one sentence."""
    parts = (clean_doubles(probe), clean_race(probe), outcome(probe), unseen(probe), elsewhere(probe), knows(probe))
    return "; ".join(filter(None, parts)) + "."


def clean_doubles(probe: ProbeRead) -> str:
    """Return which calls the clean runs make again with the same effect, or ""."""
    if not probe.planned or not probe.planned.again:
        return ""
    calls = probe.planned.again
    tools = ", ".join(dict.fromkeys(f'"{call.rpartition("#")[0]}"' for call in calls))
    return (
        f"Each clean run makes the same call again with the same effect, and nothing was broken ({', '.join(calls[:3])}): this "
        f"is a double, or the task means it; if it does, write meant = [{tools}] into probe.toml"
    )


def clean_race(probe: ProbeRead) -> str:
    """Return in which row calls in parallel differ from calls one by one, or ""."""
    if not probe.planned or not probe.planned.race:
        return ""
    rows = probe.planned.race
    more = f", and {plural(len(rows) - 1, 'further row')}" if len(rows) > 1 else ""
    return f"A race: calls in parallel, then the same calls one by one, leave {row_line(rows[0])}{more}"


def varying(probe: ProbeRead) -> str:
    """Return a sentence on the values of rows that are not compared by their amount, or ""."""
    columns = [name for name in (probe.planned.volatile if probe.planned else ()) if ": " not in name]
    named = f"{', '.join(columns[:3])}{f' and {len(columns) - 3} more' if len(columns) > 3 else ''}"
    return f"These vary between clean runs, so their changes are counted and not compared: {named}." if columns else ""


def lines(probe: ProbeRead, page: str, code: int | None = None) -> list[str]:
    """Return the ten lines that a terminal shows at the end.

    Args:
        probe: The probe.
        page: The file to open.
        code: With what the command exits; None if the conclusion does not decide it.
    """
    about = list(worst(probe))
    limits = " ".join(not_shown(probe)[:2])
    made = [
        sentence(probe),
        varying(probe),
        ran(probe),
        *about,
        counts(probe),
        share_gave_up(probe),
        *claims(probe)[:1],
        limits,
    ]
    exits = "" if code is None else f"Exit code {code}. "
    made.append(f"{exits}Open {page}; one cell: bench trace {probe.folder.name} --trial CALL.POINT")
    return [one_line(line, 4 * LONGEST) for line in made if line]


def ran(probe: ProbeRead) -> str:
    """Return a sentence on what was run, and on what this took."""
    runs, minutes = len(probe.records), probe.seconds / 60
    parts = [f"{plural(runs, 'run')} of the agent in {minutes:.1f} minutes", f"{len(probe.clean)} of them clean"]
    parts += [f"{plural(len(probe.controls), 'control')}", f"{plural(len(probe.cells), 'cell')}"]
    cost = f", ${probe.dollars:.4f}" if probe.dollars is not None else ""
    tokens = f"; {probe.tokens:,} tokens{cost}" if probe.tokens else ""
    more = f"; {plural(len(probe.missing), 'planned cell')} not run" if probe.missing else ""
    return f"{', '.join(parts)}{tokens}{more}."


def counts(probe: ProbeRead) -> str:
    """Return how many cells have each verdict, and in how many of them a tool did the damage."""
    verdicts = Counter(cell.verdict for cell in probe.cells.values())
    counted = [f"{word} {verdicts[verdict]}" for verdict, (_, word) in SIGNS.items() if verdicts[verdict]]
    tools = sum(cell.is_tools for cell in probe.damaged_cells)
    of_tools = f"; in {tools} of them the damage is a tool's" if tools else ""
    return f"Cells: {', '.join(counted)}{of_tools}." if counted else ""


def share_gave_up(probe: ProbeRead) -> str:
    """Return a sentence that compares the agent's word with what was done."""
    judged = [cell.judgement for cell in probe.with_verdict if cell.judgement]
    false_word = sum(
        cell.judgement is not None and cell.judgement.said_done and not cell.is_tools for cell in probe.damaged_cells
    )
    gave_up = sum(each.verdict == "gave_up" and not each.half_way for each in judged)
    half_way = sum(each.half_way for each in judged)
    unsaid = sum(cell.is_unsaid for cell in probe.with_verdict)
    of = plural(len(judged), "cell")
    failed = f"; in {unsaid} all effects stand and it said that it failed" if unsaid else ""
    again = f"; in {half_way} it gave up half-way, was started once more, and is judged after that" if half_way else ""
    return f"In {false_word} of {of} the agent said that it was done and did damage; in {gave_up} it gave up{again}{failed}."


def claims(probe: ProbeRead) -> list[str]:
    """Return sentences on tools whose claim contradicts what was seen, and on tools that the owner has not described."""
    planned = probe.planned.calls if probe.planned else ()
    each = [f"{call.name} claims to read, and changed {plural(call.rows, 'row')}." for call in planned if call.contradicts]
    unclaimed = [cell.judgement.call for cell in probe.cells.values() if cell.judgement and cell.judgement.by == "journal"]
    unclaimed = [
        call for call in unclaimed if call not in {cell.judgement.call for cell in probe.damaged_cells if cell.judgement}
    ]
    tools = dict.fromkeys(f'"{call.door}.{call.tool}"' for call in planned if call.name in unclaimed)
    if tools:
        each.append(
            f"In {plural(len(unclaimed), 'cell')} a call that no witness sees was done more or less often than in clean runs: "
            f"if it only reads, write reads = [{', '.join(tools)}] into probe.toml; else name its store, or raise `settle` "
            f"if it writes later than that after its answer."
        )
    return each


def not_shown(probe: ProbeRead) -> list[str]:
    """Return a sentence on what the probe does not show."""
    longer = f"what takes longer than {probe.probed.patience:g} s"
    further = f", {probe.planned.left_out:,} further cells" if probe.planned and probe.planned.left_out else ""
    each = [f"Not shown: other tasks, two faults at once{further}, {longer}."]
    if probe.conclusion == "undecided":
        each.append(f"None is a bound only if {_lacking(probe)}.")
    if waits := sum(cell.verdict == "not_applicable" for cell in probe.cells.values()):
        each.append(f"In {plural(waits, 'cell')} the fault was not delivered: that is no pass.")
    if probe.planned and not probe.planned.one_by_one:
        each.append("Calls overlap, and one by one they leave other rows: effects are those of groups of calls.")
    if probe.probed.only:
        plans = probe.planned.cells if probe.planned else None
        none = [word for word in probe.probed.only if plans is not None and not any(is_meant(word, plan) for plan in plans)]
        lacks = f"; no call has {', '.join(none)}" if none else ""
        each.append(f"Only {', '.join(probe.probed.only)} was struck{lacks}.")
    if not probe.probed.resumes:
        remembers = any(store.kind == "memory" for store in probe.probed.stores.values())
        remembers = remembers or bool(probe.planned and probe.planned.memories)
        twice = "" if remembers else ", and nobody resumed it twice, since it has no memory either"
        each.append(f"The agent has no command that resumes it: after a death it was started anew{twice}.")
    return each


def when(judged: CellJudged, calls: Iterable[GatewayCall], texts: Mapping[str, str]) -> str:
    """Return a clause that says what was done to the struck call. `texts` has the arguments of the call by their digest."""
    if not judged.point:
        return "nothing is struck"
    asked = next((_short_arguments(texts.get(call.arguments, "")) for call in calls if call.number == judged.struck), "")
    point = point_of(judged.point)
    return point.when_in.get(judged.form, point.when).format(f"{judged.call}{f' ({asked})' if asked else ''}")


def _short_arguments(arguments: str) -> str:
    """Return the arguments of a call in short form."""
    with suppress(ValueError, RecursionError):
        values = json.loads(arguments)
        if isinstance(values, dict):
            arguments = ", ".join(f"{name} {value_text(value)}" for name, value in values.items())
    return one_line(arguments, LONGEST_ASKED)


def what(judged: CellJudged) -> str:
    """Return a clause that says what the strike led to."""
    finding = gravest(judged)
    if not finding or (judged.verdict == "no_verdict" and judged.by == "witness"):
        return judged.why or SIGNS[judged.verdict][1]
    whose = "; the tool did it" if finding.culprit == "tool" else ""
    if judged.by == "journal":
        return f"{finding.effect} was done {_times(finding.times)}, and {judged.why}"
    of = _difference(finding)
    by = f" that {finding.effect} makes" if finding.effect not in ("", judged.call) else ""
    match finding.kind:
        case "doubled":
            return f"{of}{by} stands {_times(finding.times)}{whose}"
        case "lost":
            return f"{of}{by} does not stand{', and the agent says that it is done' if judged.said_done else ''}{whose}"
        case "extra":
            rows = plural(len(finding.rows), "row")
            return f"{rows} {'differs' if len(finding.rows) == 1 else 'differ'} that no clean run changes, {of}{whose}"
        case "overwritten":
            return f"{of} that another writer made before {finding.effect or judged.call} does not stand{whose}"
        case "changed":
            return f"{of}{by} is another than in clean runs{whose}"


def _difference(finding: CellFinding) -> str:
    """Return the row that a finding is about, in words: it was added, removed or changed."""
    if not finding.rows:
        return "the effect"
    row = finding.rows[0]
    more = f" (and {plural(len(finding.rows) - 1, 'further row')})" if len(finding.rows) > 1 else ""
    if not row.table:
        return f"{'a change of' if row.before and row.after else 'the file'} {one_line(row.key, LONGEST_VALUE)}{more}"
    return f"a {'change' if row.before and row.after else 'row'} of {row.table}{more}"


def row_line(row: RowDifference) -> str:
    """Return a row before and after, in one line."""
    place = f"{row.store}.{row.table}" if row.table else row.store
    if row.before and row.after:
        changed = [name for name in row.after if row.after[name] != row.before.get(name)]
        values = ", ".join(f"{name} {value_text(row.before.get(name))} → {value_text(row.after[name])}" for name in changed)
        return f"{place} {row.key}: {values}"
    values = ", ".join(f"{name} {value_text(value)}" for name, value in (row.after or row.before or {}).items())
    return f"{place} {row.key}: {'new' if row.after else 'gone'}: {values}"


def _lacking(probe: ProbeRead) -> str:
    """Return what is missing before the conclusion can be a bound."""
    if probe.missing:
        return f"all cells are run: {len(probe.missing)} are not"
    if without := sum(cell.verdict in UNDECIDED for cell in probe.cells.values()):
        return f"all cells have a verdict: {without} have none"
    if probe.planned and (probe.planned.again or probe.planned.race):
        return "clean runs make no call twice unless it is meant, and leave the same rows in parallel and one by one"
    if probe.clean_alike < CLEAN_RUNS:
        return f"{CLEAN_RUNS} clean runs are equal: there are {probe.clean_alike}"
    again = min(CELLS_AGAIN, len(probe.cells))
    return f"{again} cells are equal in a second run: there are {len(probe.run_again)}"


def outcome(probe: ProbeRead) -> str:
    """Return whether the agent does damage, and the worst case."""
    cells, name = len(probe.with_verdict), probe.name
    if probe.conclusion == "cannot":
        if not probe.harmed and not probe.problems:
            return f"The clean runs of {name} have not ended: the same command goes on"
        why = probe.harmed or probe.problems[-1]
        return f"{name} could not be probed: {one_line(why, LONGEST).rstrip('.')}"
    if probe.damaged_cells:
        worst = probe.damaged_cells[0]
        judged = worst.judgement
        assert judged is not None
        again = f"in {worst.runs_damaged} of {plural(len(worst.runs), 'run')}{'' if worst.is_proven else _interval(worst)}"
        tools = sum(cell.is_tools for cell in probe.damaged_cells)
        where = f"{len(probe.damaged_cells) - tools or tools} of {plural(cells, 'cell')}"
        done = when(judged, of_kind(worst.worst.events, GatewayCall), probe.texts)
        whose = f"a tool of {name}, which got one call twice," if worst.is_tools else name
        return f"{whose} does damage in {where}: when {done}, {what(judged)}, {again}"
    if unsaid := sum(cell.gate == "damage" for cell in probe.cells.values()):
        return f"{name} said in {unsaid} of {plural(cells, 'cell')} that it failed, and all its effects stand"
    if probe.conclusion == "damage":
        return f"{name} does damage where its calls overlap, without any fault"
    if probe.conclusion == "none":
        of = f"the {plural(cells, 'cell')} that {'was' if cells == 1 else 'were'} asked for" if probe.probed.only else ""
        which = f"which holds for this task and single faults{', and says nothing of other cells' if of else ''}"
        return f"{name} did no damage in any of {of or plural(cells, 'cell')}, {which}"
    left = len(probe.missing) + sum(cell.verdict in UNDECIDED for cell in probe.cells.values())
    without = f", and {left} more have no verdict" if left else ""
    return f"It is undecided whether {name} does damage: none in {plural(cells, 'cell')} with a verdict{without}"


def _interval(cell: CellRead) -> str:
    from bench.read.analysis.statistics.rates import share_of  # noqa: PLC0415  it imports scipy

    if len(cell.runs) < 2:
        return ""
    share = share_of(cell.runs_damaged, len(cell.runs))
    return f" ({share.low:.0%} to {share.high:.0%})" if share.low is not None and share.high is not None else ""


def unseen(probe: ProbeRead) -> str:
    """Return which calls' effects no witness saw, or ""."""
    calls = [call.name for call in (probe.planned.calls if probe.planned else ()) if call.call_class == "unseen"]
    named = f"{', '.join(calls[:3])}{' and others' if len(calls) > 3 else ''}"
    return f"no witness saw what {named} did, so nobody can say whether a repeated call did damage" if calls else ""


def elsewhere(probe: ProbeRead) -> str:
    """Return what the agent writes that nobody compares, or that nobody would see, or ""."""
    if probe.probed.boxed is False:
        return "it ran without a box, so what it opens by a path of its own is real, and nobody compares it"
    paths = probe.planned.written if probe.planned else ()
    lines = [f"it also writes {_first_two(paths)}, which nobody compares"] if paths else []
    if places := probe.planned.refused if probe.planned else ():
        lines.append(f"it reached for {_first_two(places, 'place')}, which probe.toml does not name, and was refused")
    return "; ".join(lines)


def knows(probe: ProbeRead) -> str:
    """Return where the agent keeps what it knows, if a framework does that outside of the stores, or ""."""
    memories = probe.planned.memories if probe.planned else {}
    places = _first_two([f"{path} ({whose})" for path, whose in memories.items()])
    return f"it keeps what it knows in {places}, which is its memory: it is reset before each run" if memories else ""


def _first_two(paths: Sequence[str], what: str = "file") -> str:
    more = f" and {plural(len(paths) - 2, f'other {what}')}" if len(paths) > 2 else ""
    return f"{', '.join(paths[:2])}{more}"


def worst(probe: ProbeRead) -> Iterator[str]:
    """Yield the worst counterexample: the cell, who repeated the call, the changed rows, and what the agent said."""
    for cell in probe.damaged_cells[:1]:
        judged = cell.judgement
        assert judged is not None
        repeats = [call for call in of_kind(cell.worst.events, GatewayCall) if call.repeats]
        causes = dict.fromkeys(CAUSES[call.cause] for call in repeats if call.cause)
        yield f"Worst: {cell.plan}: {SIGNS[cell.verdict][1]}{'; ' if causes else ''}{'; '.join(causes)}."
        finding = gravest(judged)
        rows = finding.rows if finding else ()
        more = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        if rows:
            yield f"Rows: {'; '.join(map(row_line, rows[:2]))}{more}."
        yield f"The agent said that it was {'done' if judged.said_done else 'not done'}."
        if blame := cell.blame:
            yield blame.sentence


def _times(times: int) -> str:
    return {2: "twice"}.get(times, f"{times} times")


def value_text(value: Cell) -> str:
    return one_line("null" if value is None else str(value), LONGEST_VALUE)
