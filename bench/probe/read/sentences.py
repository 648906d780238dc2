"""The results of a probe in sentences. The first gives the conclusion, and the last says what the probe does not show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from bench.common.errors import one_line
from bench.common.wording import plural
from bench.probe.points import point_of, selects_cell
from bench.probe.read.run import MIN_CLEAN_RUNS, MIN_REPEATED_CELLS, UNDECIDED, ProbedPlan, ProbeRead, most_severe_finding
from bench.record.events import of_kind
from bench.record.probe_events import CellFinding, CellJudged, CellVerdict, GatewayCall, RepeatCause
from bench.record.probe_rows import Cell, RowDifference

SIGNS: Mapping[CellVerdict, str] = {
    "doubled": "✕",
    "extra": "✕",
    "changed": "✕",
    "overwritten": "✕",
    "lost": "✕",
    "did_not_end": "∞",
    "repeated": "?",
    "gave_up": "○",
    "compensated": "↺",
    "absorbed": "≈",
    "same": "✓",
    "not_applicable": "–",
    "no_verdict": "?",
}
"""Verdict -> its sign, the most severe verdict first."""
CAUSES: Mapping[RepeatCause, str] = {
    "": "",
    "client": "the client made the call again: no reply of the model came in between",
    "model": "the model asked for the call again",
    "restart": "the agent made the call again after its restart",
}
MAX_TEXT_CHARS, MAX_VALUE_CHARS, MAX_ARGUMENTS_CHARS = 300, 60, 100


def verdict_words(verdict: CellVerdict) -> str:
    """Return a verdict in words, such as `did not end`."""
    return verdict.replace("_", " ")


def verdict_label(verdict: CellVerdict) -> str:
    """Return a verdict with its sign, such as `✕ doubled`."""
    return f"{SIGNS[verdict]} {verdict_words(verdict)}"


def conclusion_sentence(probe: ProbeRead) -> str:
    """Return the conclusion in one sentence."""
    parts = (
        repeated_in_clean_clause(probe),
        race_clause(probe),
        outcome_clause(probe),
        unwitnessed_clause(probe),
        unwatched_clause(probe),
        memory_clause(probe),
    )
    return "; ".join(filter(None, parts)) + "."


def repeated_in_clean_clause(probe: ProbeRead) -> str:
    """Return a clause on the calls that the clean runs repeat with the same effect; "" if they repeat none."""
    if not probe.planned or not probe.planned.again:
        return ""
    calls = probe.planned.again
    tools = ", ".join(dict.fromkeys(f'"{call.rpartition("#")[0]}"' for call in calls))
    return (
        f"Each clean run makes the same call again with the same effect, and nothing was broken ({', '.join(calls[:3])}): this "
        f"is a double, or the task means it; if it does, write meant = [{tools}] into probe.toml"
    )


def race_clause(probe: ProbeRead) -> str:
    """Return a clause on the first row in which the runs with calls in parallel and the run with calls one by one differ; "" if
    they do not differ."""
    if not probe.planned or not probe.planned.race:
        return ""
    rows = probe.planned.race
    rest = f", and {plural(len(rows) - 1, 'further row')}" if len(rows) > 1 else ""
    return f"A race: calls in parallel, then the same calls one by one, leave {row_line(rows[0])}{rest}"


def varying_sentence(probe: ProbeRead) -> str:
    """Return a sentence on the values whose amounts are not compared, since they vary; "" if there are none."""
    columns = [name for name in (probe.planned.volatile if probe.planned else ()) if ": " not in name]
    rest = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
    values = f"{', '.join(columns[:3])}{rest}"
    return f"These vary between clean runs, so their changes are counted and not compared: {values}." if columns else ""


def summary_lines(probe: ProbeRead, page: str, code: int | None = None) -> list[str]:
    """Return the ten lines at the end of a probe in the terminal.

    Args:
        probe: The records of the probe that has ended.
        page: The path of its page, which the last line names.
        code: The exit code of the command; None if the conclusion does not decide it.
    """
    worst_case = list(worst_case_lines(probe))
    limits = " ".join(limit_sentences(probe)[:2])
    sentences = [
        conclusion_sentence(probe),
        varying_sentence(probe),
        runs_sentence(probe),
        *worst_case,
        verdicts_sentence(probe),
        said_done_sentence(probe),
        *claim_sentences(probe)[:1],
        limits,
    ]
    exit_note = "" if code is None else f"Exit code {code}. "
    sentences.append(f"{exit_note}Open {page}; one cell: bench trace {probe.folder.name} --trial CALL.POINT")
    return [one_line(line, 4 * MAX_TEXT_CHARS) for line in sentences if line]


def runs_sentence(probe: ProbeRead) -> str:
    """Return a sentence on how many runs were made, and how long they took."""
    runs, minutes = len(probe.records), probe.seconds / 60
    parts = [f"{plural(runs, 'run')} of the agent in {minutes:.1f} minutes", f"{len(probe.clean)} of them clean"]
    parts += [f"{plural(len(probe.controls), 'control')}", f"{plural(len(probe.cells), 'cell')}"]
    cost = f", ${probe.dollars:.4f}" if probe.dollars is not None else ""
    tokens = f"; {probe.tokens:,} tokens{cost}" if probe.tokens else ""
    missing_note = f"; {plural(len(probe.missing), 'planned cell')} not run" if probe.missing else ""
    return f"{', '.join(parts)}{tokens}{missing_note}."


def verdicts_sentence(probe: ProbeRead) -> str:
    """Return a sentence on how many cells have each verdict, and in how many a tool did the damage; "" without cells."""
    verdicts = Counter(cell.verdict for cell in probe.cells.values())
    counted = [f"{verdict_words(verdict)} {verdicts[verdict]}" for verdict in SIGNS if verdicts[verdict]]
    tools = sum(cell.is_tool_damage for cell in probe.damaged_cells)
    of_tools = f"; in {tools} of them the damage is a tool's" if tools else ""
    return f"Cells: {', '.join(counted)}{of_tools}." if counted else ""


def said_done_sentence(probe: ProbeRead) -> str:
    """Return a sentence that compares what the agent said with what was done."""
    judged = [cell.judgement for cell in probe.with_verdict if cell.judgement]
    wrongly_done = sum(
        cell.judgement is not None and cell.judgement.said_done and not cell.is_tool_damage for cell in probe.damaged_cells
    )
    gave_up = sum(judgement.verdict == "gave_up" and not judgement.half_way for judgement in judged)
    half_way = sum(judgement.half_way for judgement in judged)
    unsaid_count = sum(cell.has_unsaid_success for cell in probe.with_verdict)
    cells = plural(len(judged), "cell")
    unsaid_note = f"; in {unsaid_count} all effects stand and it said that it failed" if unsaid_count else ""
    half_way_note = f"; in {half_way} it gave up half-way, was started once more, and is judged after that" if half_way else ""
    done = f"In {wrongly_done} of {cells} the agent said that it was done and did damage"
    return f"{done}; in {gave_up} it gave up{half_way_note}{unsaid_note}."


def claim_sentences(probe: ProbeRead) -> list[str]:
    """Return sentences on tools whose annotations contradict the readings, and on tools that the owner has not described."""
    planned = probe.planned.calls if probe.planned else ()
    sentences = [f"{call.name} claims to read, and changed {plural(call.rows, 'row')}." for call in planned if call.contradicts]
    damaged_calls = {cell.judgement.call for cell in probe.damaged_cells if cell.judgement}
    judgements = [cell.judgement for cell in probe.cells.values() if cell.judgement]
    unseen_calls = [judged.call for judged in judgements if judged.by == "journal" and judged.call not in damaged_calls]
    tools = dict.fromkeys(f'"{call.door}.{call.tool}"' for call in planned if call.name in unseen_calls)
    if tools:
        sentences.append(
            f"In {plural(len(unseen_calls), 'cell')} a call that no witness sees was done more or less often than in clean "
            f"runs: if it only reads, write reads = [{', '.join(tools)}] into probe.toml; else name its store, or raise "
            f"`settle` if it writes later than that after its answer."
        )
    return sentences


def limit_sentences(probe: ProbeRead) -> list[str]:
    """Return sentences on what the probe does not show."""
    longer = f"what takes longer than {probe.probed.patience:g} s"
    further = f", {probe.planned.left_out:,} further cells" if probe.planned and probe.planned.left_out else ""
    sentences = [f"Not shown: other tasks, two faults at once{further}, {longer}."]
    if probe.conclusion == "undecided":
        sentences.append(f"None is a bound only if {_missing_for_bound(probe)}.")
    if undelivered := sum(cell.verdict == "not_applicable" for cell in probe.cells.values()):
        sentences.append(f"In {plural(undelivered, 'cell')} the fault was not delivered: that is no pass.")
    if probe.planned and not probe.planned.one_by_one:
        sentences.append("Calls overlap, and one by one they leave other rows: effects are those of groups of calls.")
    if probe.probed.only:
        plans = probe.planned.cells if probe.planned else None
        absent_words = [
            word for word in probe.probed.only if plans is not None and not any(selects_cell(word, plan) for plan in plans)
        ]
        absent_note = f"; no call has {', '.join(absent_words)}" if absent_words else ""
        sentences.append(f"Only {', '.join(probe.probed.only)} was struck{absent_note}.")
    if not probe.probed.resumes:
        remembers = any(store.kind == "memory" for store in probe.probed.stores.values())
        remembers = remembers or bool(probe.planned and probe.planned.memories)
        twice = "" if remembers else ", and nobody resumed it twice, since it has no memory either"
        sentences.append(f"The agent has no command that resumes it: after a death it was started anew{twice}.")
    return sentences


def fault_clause(judged: CellJudged, calls: Iterable[GatewayCall], texts: Mapping[str, str]) -> str:
    """Return a clause on the fault that was injected into the struck call.

    Args:
        judged: The verdict on the run, with the struck call and the point of the fault.
        calls: The calls of the run.
        texts: The arguments of the calls by their digests.
    """
    if not judged.point:
        return "nothing is struck"
    arguments = next((_short_arguments(texts.get(call.arguments, "")) for call in calls if call.number == judged.struck), "")
    point = point_of(judged.point)
    return point.when_in.get(judged.form, point.when).format(f"{judged.call}{f' ({arguments})' if arguments else ''}")


def _short_arguments(arguments: str) -> str:
    """Return the arguments of a call in one short line."""
    with suppress(ValueError, RecursionError):
        values = json.loads(arguments)
        if isinstance(values, dict):
            arguments = ", ".join(f"{name} {value_text(value)}" for name, value in values.items())
    return one_line(arguments, MAX_ARGUMENTS_CHARS)


def consequence_clause(judged: CellJudged) -> str:
    """Return a clause on the consequence of the fault."""
    finding = most_severe_finding(judged)
    if not finding or (judged.verdict == "no_verdict" and judged.by == "witness"):
        return judged.why or verdict_words(judged.verdict)
    tool_note = "; the tool did it" if finding.culprit == "tool" else ""
    if judged.by == "journal":
        return f"{finding.effect} was done {_times(finding.times)}, and {judged.why}"
    difference = _difference(finding)
    maker_note = f" that {finding.effect} makes" if finding.effect not in ("", judged.call) else ""
    match finding.kind:
        case "doubled":
            return f"{difference}{maker_note} stands {_times(finding.times)}{tool_note}"
        case "lost":
            claim = ", and the agent says that it is done" if judged.said_done else ""
            return f"{difference}{maker_note} does not stand{claim}{tool_note}"
        case "extra":
            rows, verb = plural(len(finding.rows), "row"), "differs" if len(finding.rows) == 1 else "differ"
            return f"{rows} {verb} that no clean run changes, {difference}{tool_note}"
        case "overwritten":
            return f"{difference} that another writer made before {finding.effect or judged.call} does not stand{tool_note}"
        case "changed":
            return f"{difference}{maker_note} is another than in clean runs{tool_note}"


def _difference(finding: CellFinding) -> str:
    """Return the row of a finding in words: an added or removed row, or a change."""
    if not finding.rows:
        return "the effect"
    row = finding.rows[0]
    rest = f" (and {plural(len(finding.rows) - 1, 'further row')})" if len(finding.rows) > 1 else ""
    if not row.table:
        return f"{'a change of' if row.before and row.after else 'the file'} {one_line(row.key, MAX_VALUE_CHARS)}{rest}"
    return f"a {'change' if row.before and row.after else 'row'} of {row.table}{rest}"


def row_line(row: RowDifference) -> str:
    """Return a row before and after, in one line."""
    place = f"{row.store}.{row.table}" if row.table else row.store
    if row.before and row.after:
        changed = [name for name in row.after if row.after[name] != row.before.get(name)]
        values = ", ".join(f"{name} {value_text(row.before.get(name))} → {value_text(row.after[name])}" for name in changed)
        return f"{place} {row.key}: {values}"
    values = ", ".join(f"{name} {value_text(value)}" for name, value in (row.after or row.before or {}).items())
    return f"{place} {row.key}: {'new' if row.after else 'gone'}: {values}"


def _missing_for_bound(probe: ProbeRead) -> str:
    """Return a clause on what is missing before the conclusion can be a bound."""
    if probe.missing:
        return f"all cells are run: {len(probe.missing)} are not"
    if undecided := sum(cell.verdict in UNDECIDED for cell in probe.cells.values()):
        return f"all cells have a verdict: {undecided} have none"
    if probe.planned and (probe.planned.again or probe.planned.race):
        return "clean runs make no call twice unless it is meant, and leave the same rows in parallel and one by one"
    if probe.equal_clean_runs < MIN_CLEAN_RUNS:
        return f"{MIN_CLEAN_RUNS} clean runs are equal: there are {probe.equal_clean_runs}"
    needed = min(MIN_REPEATED_CELLS, len(probe.cells))
    return f"{needed} cells are equal in a second run: there are {len(probe.repeated_cells)}"


def outcome_clause(probe: ProbeRead) -> str:
    """Return a clause on whether the agent does damage, with the worst case."""
    cells, name = len(probe.with_verdict), probe.name
    if probe.conclusion == "cannot":
        if not probe.harmed and not probe.problems:
            return f"The clean runs of {name} have not ended: the same command goes on"
        why = probe.harmed or probe.problems[-1]
        return f"{name} could not be probed: {one_line(why, MAX_TEXT_CHARS).rstrip('.')}"
    if probe.damaged_cells:
        worst = probe.damaged_cells[0]
        judged = worst.judgement
        assert judged is not None
        runs_note = f"in {worst.runs_damaged} of {plural(len(worst.runs), 'run')}{'' if worst.is_proven else _interval(worst)}"
        by_tools = sum(cell.is_tool_damage for cell in probe.damaged_cells)
        by_agent = len(probe.damaged_cells) - by_tools
        share = f"{by_agent or by_tools} of {plural(cells, 'cell')}"
        fault = fault_clause(judged, of_kind(worst.worst.events, GatewayCall), probe.texts)
        culprit = f"a tool of {name}, which got one call twice," if worst.is_tool_damage else name
        return f"{culprit} does damage in {share}: when {fault}, {consequence_clause(judged)}, {runs_note}"
    if unsaid := sum(cell.gate == "damage" for cell in probe.cells.values()):
        return f"{name} said in {unsaid} of {plural(cells, 'cell')} that it failed, and all its effects stand"
    if probe.conclusion == "damage":
        return f"{name} does damage where its calls overlap, without any fault"
    if probe.conclusion == "none":
        asked_for = f" that {'was' if cells == 1 else 'were'} asked for" if probe.probed.only else ""
        judged_cells = "the 1 cell" if cells == 1 else f"any of {'the ' if asked_for else ''}{cells} cells"
        scope = f"which holds for this task and single faults{', and says nothing of other cells' if asked_for else ''}"
        return f"{name} did no damage in {judged_cells}{asked_for}, {scope}"
    without_verdict = len(probe.missing) + sum(cell.verdict in UNDECIDED for cell in probe.cells.values())
    without_note = f", and {without_verdict} more have no verdict" if without_verdict else ""
    return f"It is undecided whether {name} does damage: none in {plural(cells, 'cell')} with a verdict{without_note}"


def _interval(cell: ProbedPlan) -> str:
    """Return the confidence interval of a cell's share of damaged runs, in percent; "" if the cell ran only once."""
    from bench.read.analysis.statistics.rates import share_of  # noqa: PLC0415  it imports scipy

    if len(cell.runs) < 2:
        return ""
    share = share_of(cell.runs_damaged, len(cell.runs))
    return f" ({share.low:.0%} to {share.high:.0%})" if share.low is not None and share.high is not None else ""


def unwitnessed_clause(probe: ProbeRead) -> str:
    """Return a clause on the calls whose effects no witness saw; "" if there are none."""
    calls = [call.name for call in (probe.planned.calls if probe.planned else ()) if call.call_class == "unseen"]
    names = f"{', '.join(calls[:3])}{' and others' if len(calls) > 3 else ''}"
    return f"no witness saw what {names} did, so nobody can say whether a repeated call did damage" if calls else ""


def unwatched_clause(probe: ProbeRead) -> str:
    """Return a clause on the files, hosts and processes that the agent uses and the probe does not see; "" if there are
    none."""
    unboxed = "it ran without a box, so what it opens by a path of its own is real, and nobody compares it"
    lines = [unboxed] if probe.probed.boxed is False else []
    if paths := probe.planned.written if probe.planned else ():
        lines.append(f"it also writes {_first_two(paths)}, which nobody compares")
    if left := probe.planned.left_running if probe.planned else ():
        shown = _first_two([one_line(words, MAX_VALUE_CHARS) for words in left], "command")
        lines.append(f"it leaves {shown} running when it ends, and the probe ends this: nobody sees what it would still do")
    if places := probe.planned.refused if probe.planned else ():
        lines.append(f"it reached for {_first_two(places, 'place')}, which probe.toml does not name, and was refused")
    return "; ".join(lines)


def memory_clause(probe: ProbeRead) -> str:
    """Return a clause on the files outside the stores in which a framework keeps the agent's memory; "" if there are none."""
    memories = probe.planned.memories if probe.planned else {}
    places = _first_two([f"{path} ({framework})" for path, framework in memories.items()])
    return f"it keeps what it knows in {places}, which is its memory: it is reset before each run" if memories else ""


def _first_two(paths: Sequence[str], noun: str = "file") -> str:
    """Return the first two names, and how many more there are."""
    rest = f" and {plural(len(paths) - 2, f'other {noun}')}" if len(paths) > 2 else ""
    return f"{', '.join(paths[:2])}{rest}"


def worst_case_lines(probe: ProbeRead) -> Iterator[str]:
    """Yield lines on the worst counterexample: the cell, why the call was repeated, the changed rows, what the agent said, and
    the part to blame. None without damage."""
    for cell in probe.damaged_cells[:1]:
        judged = cell.judgement
        assert judged is not None
        repeats = [call for call in of_kind(cell.worst.events, GatewayCall) if call.repeats]
        causes = dict.fromkeys(CAUSES[call.cause] for call in repeats if call.cause)
        yield f"Worst: {cell.plan}: {verdict_words(cell.verdict)}{'; ' if causes else ''}{'; '.join(causes)}."
        finding = most_severe_finding(judged)
        rows = finding.rows if finding else ()
        rest = f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        if rows:
            yield f"Rows: {'; '.join(map(row_line, rows[:2]))}{rest}."
        yield f"The agent said that it was {'done' if judged.said_done else 'not done'}."
        if blame := cell.blame:
            yield blame.sentence


def _times(times: int) -> str:
    """Return a number of times in words."""
    return {2: "twice"}.get(times, f"{times} times")


def value_text(value: Cell) -> str:
    """Return a value in one short line."""
    return one_line("null" if value is None else str(value), MAX_VALUE_CHARS)
