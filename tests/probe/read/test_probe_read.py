"""What a probe showed follows from its records: the conclusion, the sentences, the lines, the page, the comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_probe import PAY, PLANNED, PROBED, cell, cells, row, write

from bench.common.errors import ConfigError, ResultsError
from bench.probe.points import points_of
from bench.probe.read.compare import compare_probes
from bench.probe.read.page import page_of
from bench.probe.read.run import EXIT_CODES, ProbeRead, read_probe
from bench.probe.read.sentences import (
    conclusion_sentence,
    consequence_clause,
    limit_sentences,
    row_line,
    runs_sentence,
    said_done_sentence,
    summary_lines,
    verdicts_sentence,
)
from bench.probe.read.steps import text_of_cell
from bench.probe.run.writing import CellRun
from bench.record.events import of_kind
from bench.record.probe_events import EARLY, CellFinding, CellJudged, CellsPlanned
from bench.record.probe_rows import RowDifference

NONE = frozenset[str]()
COUNT = sum(len(points_of(call.call_class)) for call in PLANNED)


def probe(folder: Path, *runs: CellRun, **changed: object) -> ProbeRead:
    return read_probe(write(folder / "results" / "shop-probe", *runs, probed=PROBED.model_copy(update=changed)))


def judged_anew(run: CellRun, **changed: object) -> CellRun:
    events = [replace(event, **changed) if isinstance(event, CellJudged) else event for event in run.events]  # type: ignore[arg-type]
    return replace(run, events=events)


def of_bound() -> list[CellRun]:
    """A probe without damage that has all that a bound needs."""
    each = list(cells(frozenset(), clean=5))
    return [*each, *(replace(run, repetition=1) for run in each if run.plan.startswith("shop.") or ".model" in run.plan)]


def test_damage_that_came_again_is_the_conclusion_and_the_first_words(tmp_path: Path) -> None:
    read = probe(tmp_path)
    assert read.conclusion == "damage" and EXIT_CODES[read.conclusion] == 1
    assert conclusion_sentence(read) == (
        f"shop does damage in 2 of {COUNT} cells: when the answer of shop.pay#1 (order 7) is lost, a row of payments stands "
        "twice, in 2 of 2 runs."
    )
    assert [worst.plan for worst in read.damaged_cells] == [f"{PAY}.lost", f"{PAY}.unacknowledged"]


def test_a_run_that_shows_what_a_call_overwrites_is_counted_and_is_no_cell(tmp_path: Path) -> None:
    each = list(cells(frozenset()))
    without, read = probe(tmp_path / "without", *each), probe(tmp_path, *each, cell(EARLY, 0, PLANNED[1], "meanwhile"))
    assert list(read.cells) == list(without.cells) and read.conclusion == without.conclusion
    assert runs_sentence(read).startswith(f"{len(each) + 1} runs of the agent") and read.seconds > without.seconds


def test_the_first_sentence_names_what_the_agent_left_running(tmp_path: Path) -> None:
    def with_left(run: CellRun, *left: str) -> CellRun:
        events = [replace(event, left_running=left) if isinstance(event, CellsPlanned) else event for event in run.events]
        return replace(run, events=events)

    read = probe(tmp_path, *(with_left(run, "python send.py", "sleep 9") for run in of_bound()))
    assert conclusion_sentence(read).endswith(
        "; it leaves python send.py, sleep 9 running when it ends, and the probe ends this: nobody sees what it would still do."
    )


def test_damage_that_did_not_come_again_is_a_rate_with_its_interval(tmp_path: Path) -> None:
    runs = [run for run in cells(frozenset(("lost",))) if not (run.plan == f"{PAY}.lost" and run.repetition == 1)]
    read = probe(tmp_path, *runs, cell(f"{PAY}.lost", 1, PLANNED[1], "lost"))
    assert re.search(r"in 1 of 2 runs \(\d+% to \d+%\)", conclusion_sentence(read)) and read.conclusion == "damage"


def test_none_is_a_bound_only_after_five_clean_runs_and_ten_cells_run_again(tmp_path: Path) -> None:
    read = probe(tmp_path, *of_bound())
    assert read.conclusion == "none" and EXIT_CODES[read.conclusion] == 0
    assert conclusion_sentence(read).startswith(f"shop did no damage in any of {COUNT} cells")


def test_effects_that_stand_where_it_said_that_it_failed_are_damage_only_if_the_owner_says_so(tmp_path: Path) -> None:
    runs = [judged_anew(run, said_done=False) if run.plan == f"{PAY}.lost" else run for run in of_bound()]
    told = probe(tmp_path / "told", *runs)
    assert told.conclusion == "none" and "in 1 all effects stand and it said that it failed" in " ".join(
        summary_lines(told, "p.html")
    )
    fails = probe(tmp_path / "fails", *runs, unsaid_fails=True)
    assert fails.conclusion == "damage" and EXIT_CODES[fails.conclusion] == 1
    assert conclusion_sentence(fails) == f"shop said in 1 of {COUNT} cells that it failed, and all its effects stand."
    assert [plan for plan, read in fails.cells.items() if read.gate == "damage"] == [f"{PAY}.lost"]


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        ("clean", "5 clean runs are equal: there are 4"),
        ("again", "10 cells are equal in a second run: there are 0"),
        ("cell", "all cells are run: 1 are not"),
        ("verdict", "all cells have a verdict: 1 have none"),
    ],
)
def test_without_one_of_these_it_is_undecided_and_says_what_a_bound_lacks(tmp_path: Path, lacking: str, reason: str) -> None:
    runs = of_bound()
    if lacking == "clean":
        runs = [run for run in runs if (run.plan, run.repetition) != ("clean", 4)]
    elif lacking == "again":
        runs = [run for run in runs if run.plan == "clean" or run.repetition == 0]
    elif lacking == "cell":
        runs = [run for run in runs if run.plan != f"{PAY}.late"]
    elif lacking == "verdict":
        runs = [judged_anew(run, verdict="no_verdict") if run.plan == f"{PAY}.late" else run for run in runs]
    read = probe(tmp_path, *runs)
    assert read.conclusion == "undecided" and EXIT_CODES[read.conclusion] == 3
    assert conclusion_sentence(read).startswith("It is undecided")
    assert any(line.startswith(f"None is a bound only if {reason}") for line in limit_sentences(read))


def test_the_cells_that_were_asked_for_come_to_a_verdict_of_their_own(tmp_path: Path) -> None:
    read = probe(tmp_path, *of_bound(), only=("pay",))
    assert EXIT_CODES[read.conclusion] == 0
    assert conclusion_sentence(read).startswith(
        f"shop did no damage in any of the {COUNT} cells that were asked for, which holds for this task"
    )
    assert "Only pay was struck." in limit_sentences(read)
    read = probe(tmp_path / "more", *of_bound(), only=("pay", "resumed_thrice"))
    assert "Only pay, resumed_thrice was struck; no call has resumed_thrice." in limit_sentences(read)
    read = probe(tmp_path / "point", *of_bound(), only=("p*1.l*", "ost"))
    assert "Only p*1.l*, ost was struck." in limit_sentences(read)


def planned_anew(run: CellRun, **changed: object) -> CellRun:
    events = [replace(event, **changed) if isinstance(event, CellsPlanned) else event for event in run.events]  # type: ignore[arg-type]
    return replace(run, events=events)


def test_what_only_a_tool_does_with_one_call_has_an_exit_code_and_a_sentence_of_its_own(tmp_path: Path) -> None:
    by_tool = CellFinding("doubled", PAY, 2, (row(2),), (3,), "tool")
    runs = [
        judged_anew(run, verdict="doubled", findings=(by_tool,)) if run.plan == f"{PAY}.twice" else run for run in of_bound()
    ]
    read = probe(tmp_path, *runs)
    assert (read.conclusion, EXIT_CODES[read.conclusion]) == ("tool", 4)
    assert conclusion_sentence(read).startswith(
        f"a tool of shop, which got one call twice, does damage in 1 of {COUNT} cells: when"
    )
    assert "doubled 1" in verdicts_sentence(read) and verdicts_sentence(read).endswith("; in 1 of them the damage is a tool's.")
    assert said_done_sentence(read).startswith("In 0 of ")  # the agent did not do what the tool did


def test_a_repeated_call_that_nobody_saw_is_no_damage_and_no_pass(tmp_path: Path) -> None:
    again = CellFinding("doubled", PAY, 2, (), (3, 4))
    changed = {
        "verdict": "repeated",
        "by": "journal",
        "findings": (again,),
        "why": "nobody saw what it did; its key stayed the same",
    }
    read = probe(tmp_path, *(judged_anew(run, **changed) if run.plan == f"{PAY}.lost" else run for run in of_bound()))
    assert (read.conclusion, read.damaged_cells) == ("undecided", [])
    assert (
        consequence_clause(read.cells[f"{PAY}.lost"].runs[0][1])
        == "shop.pay#1 was done twice, and nobody saw what it did; its key stayed the same"
    )


def test_a_call_that_clean_runs_make_twice_comes_first_and_is_undecided_until_it_is_meant(tmp_path: Path) -> None:
    read = probe(tmp_path, *(planned_anew(run, again=(f"{PAY[:-1]}2",)) for run in of_bound()))
    assert read.conclusion == "undecided"
    assert conclusion_sentence(read).startswith("Each clean run makes the same call again with the same effect")
    assert 'write meant = ["shop.pay"] into probe.toml' in conclusion_sentence(read)


@pytest.mark.parametrize(("after", "conclusion"), [(None, "damage"), ({"id": 1, "amount": 60}, "undecided")])
def test_a_race_is_told_and_a_row_that_one_order_lacks_is_damage(
    tmp_path: Path, after: dict[str, int] | None, conclusion: str
) -> None:
    lost = RowDifference("orders", "payments", "[1]", {"id": 1, "amount": 30}, after)
    read = probe(tmp_path, *(planned_anew(run, race=(lost,)) for run in of_bound()))
    assert read.conclusion == conclusion
    assert conclusion_sentence(read).startswith(
        "A race: calls in parallel, then the same calls one by one, leave orders.payments [1]"
    )


def test_an_agent_that_says_it_failed_where_all_stands_is_counted(tmp_path: Path) -> None:
    read = probe(tmp_path, *(judged_anew(run, said_done=False) if run.plan == f"{PAY}.late" else run for run in of_bound()))
    assert any("in 1 all effects stand and it said that it failed" in line for line in summary_lines(read, "page"))


def test_without_a_plan_it_could_not_be_probed_and_says_why(tmp_path: Path) -> None:
    read = probe(tmp_path, CellRun("clean", 0, (), {}, 0.0, problem="the agent ended with code 1"))
    assert (read.conclusion, EXIT_CODES[read.conclusion]) == ("cannot", 2)
    assert conclusion_sentence(read) == "shop could not be probed: the agent ended with code 1."


def test_a_probe_that_was_stopped_in_its_clean_runs_does_not_say_that_it_cannot_be_probed(tmp_path: Path) -> None:
    read = probe(tmp_path, next(iter(cells(frozenset(), clean=5))))
    assert conclusion_sentence(read) == "The clean runs of shop have not ended: the same command goes on."


def test_a_control_that_is_not_the_same_takes_the_verdicts_since_the_last(tmp_path: Path) -> None:
    runs = [
        judged_anew(run, verdict="extra", voids=((f"{PAY}.lost", 0), (f"{PAY}.lost", 1))) if run.plan == "control" else run
        for run in cells()
    ]
    read = probe(tmp_path, *runs)
    assert read.cells[f"{PAY}.lost"].verdict == "no_verdict" and [worst.plan for worst in read.damaged_cells] == [
        f"{PAY}.unacknowledged"
    ]


def test_what_no_witness_saw_stands_in_the_first_sentence(tmp_path: Path) -> None:
    runs = []
    for run in cells():
        events = [
            replace(
                event, calls=tuple(replace(call, call_class="unseen") if call.name == PAY else call for call in event.calls)
            )
            if isinstance(event, CellsPlanned)
            else event
            for event in run.events
        ]
        runs.append(replace(run, events=events))
    read = probe(tmp_path, *runs)
    assert "no witness saw what shop.pay#1 did" in conclusion_sentence(read)
    assert "</h1>" in page_of(read).partition("No witness saw what shop.pay#1 did")[0]


def test_where_an_unseen_call_was_repeated_the_owner_is_asked_for_a_word(tmp_path: Path) -> None:
    runs = [judged_anew(run, verdict="no_verdict", by="journal") if run.plan == f"{PAY}.late" else run for run in of_bound()]
    told = summary_lines(probe(tmp_path, *runs), "probe.html")
    assert len(told) <= 10 and any('if it only reads, write reads = ["shop.pay"] into probe.toml' in line for line in told)


def test_the_terminal_ends_in_at_most_ten_lines_of_which_the_last_names_the_file(tmp_path: Path) -> None:
    read = probe(tmp_path)
    told = summary_lines(read, "reports/shop-probe/probe.html", 1)
    assert told[-1].startswith("Exit code 1. Open ") and summary_lines(read, "probe.html")[-1].startswith("Open probe.html; ")
    assert len(told) <= 10 and told[0] == conclusion_sentence(read) and "reports/shop-probe/probe.html" in told[-1]
    assert "orders.payments [2]: new: id 2, order 7, amount 30" in told[4] and all("\n" not in line for line in told)


def test_a_row_is_shown_by_what_changed_in_it() -> None:
    assert row_line(row(3)) == "orders.payments [3]: new: id 3, order 7, amount 30"
    changed = RowDifference("orders", "accounts", "[1]", {"id": 1, "sum": 5}, {"id": 1, "sum": None})
    assert row_line(changed) == "orders.accounts [1]: sum 5 → null"
    assert row_line(RowDifference("notes", "", "a.txt", {"size": 3}, None)) == "notes a.txt: gone: size 3"


def test_a_cell_is_traced_by_its_plan_its_run_or_its_id(tmp_path: Path) -> None:
    read = probe(tmp_path)
    whole = text_of_cell(read.folder, f"{PAY}.lost")
    assert "shop.pay#1: arrived 0.50, passed on 0.51, answered 0.60, given no" in whole and "call 3 again" in whole
    assert "verdict: doubled" in whole and "the agent said that it was done: Order 7 is paid." in whole
    assert text_of_cell(read.folder, f"{PAY}.lost/#1").splitlines()[1].endswith("run 1: wrong")
    assert text_of_cell(read.folder, read.damaged_cells[0].worst.id[:8]) == "\n".join(
        line.partition("; it ran")[0] for line in whole.splitlines()
    )
    with pytest.raises(ConfigError, match=r"did you mean 'shop.pay#1.lost'"):
        text_of_cell(read.folder, f"{PAY}.lsot")


def test_the_page_has_the_sentence_the_worst_cell_and_a_word_for_each_cell(tmp_path: Path) -> None:
    read = probe(tmp_path)
    page = page_of(read)
    assert conclusion_sentence(read) in page and "The worst: shop.pay#1.lost" in page
    assert len(re.findall(r'<span class="verdict bad">✕ doubled</span> <span class="times">2 of 2', page)) == 2
    assert len(re.findall(r'<span class="verdict fine">✓ same</span>', page)) == COUNT - 2
    assert page.count("<script") == 0 and "default-src 'none'" in page.replace("&#39;", "'")
    in_order = ("<h1", 'id="worst"', "What was done", 'class="steps"', 'id="cells"')
    assert sorted(map(page.index, in_order)) == list(map(page.index, in_order))


def test_what_strangers_write_is_text_on_the_page(tmp_path: Path) -> None:
    run = cell(f"{PAY}.lost", 0, PLANNED[1], "lost", doubled=True)
    texts = dict.fromkeys(run.texts, "<script>alert(1)</script>\x1b[2J")
    page = page_of(probe(tmp_path, *cells(frozenset()), replace(run, texts=texts, repetition=7)))
    assert "<script>" not in page and "\x1b" not in page and "&lt;script&gt;" in page


def test_an_empty_probe_has_a_page(tmp_path: Path) -> None:
    read = probe(tmp_path, CellRun("clean", 0, (), {}, 0.0, problem="no call came through the gateway"))
    assert "could not be probed: no call came through the gateway" in page_of(read)


def test_two_probes_are_compared_cell_by_cell(tmp_path: Path) -> None:
    damaged, mended = probe(tmp_path / "a"), probe(tmp_path / "b", *cells(frozenset()))
    other = probe(tmp_path / "c", *cells(frozenset(("late",))))
    assert compare_probes(damaged, mended).verdict == "better" and compare_probes(mended, damaged).verdict == "worse"
    assert compare_probes(damaged, damaged).verdict == "no worse" and compare_probes(damaged, other).verdict == "trade-off"
    undelivered = [
        judged_anew(run, verdict="not_applicable") if run.plan == f"{PAY}.lost" else run for run in cells(frozenset())
    ]
    assert compare_probes(mended, probe(tmp_path / "d", *undelivered)).verdict == "inconclusive"
    assert len(compare_probes(damaged, mended).table.rows) == 2


def test_a_run_that_is_no_probe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError):
        read_probe(tmp_path)


def test_the_last_of_several_plans_holds(tmp_path: Path) -> None:
    read = probe(tmp_path)
    assert read.planned and len(read.planned.cells) == COUNT and read.missing == []
    assert [len(of_kind(record.events, CellsPlanned)) for record in read.clean] == [0, 0, 1]
