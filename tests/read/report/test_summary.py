"""The first screen: sentences that the run's data support, each with its table, and what they do not show."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import recovered, run_of, smooth, trial, undamaged
from scorecards import CRASH, lived

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.render.finding import SummaryFinding
from bench.read.report.summary import Summary, summary_of
from bench.read.report.written_report import report_of
from bench.record.record import TrialRecord


def trials(retry: int = 100, masked: bool = False, outcome: str = "solved", n: int = 6) -> list[TrialRecord]:
    records = []
    for repetition in range(1, n + 1):
        events = recovered(retry + repetition)
        if masked:
            events[6] = undamaged(2, "b", reason="check")
        records += [trial("static", "none", repetition), trial("static", "paper", repetition, events=events)]
    if outcome == "wrong":
        records = [trial(record.architecture, record.plan, record.repetition, "wrong", record.events) for record in records]
    return records


def of(run: Run) -> Summary:
    return summary_of(run, arms_of(run))


def finding(summary: Summary, table: str) -> str:
    [text] = [each.text for each in summary.findings if each.table == table]
    return text


def test_it_says_what_was_run(tmp_path: Path) -> None:
    ran = of(run_of(tmp_path / "run", trials())).ran
    assert ran == "12 trials: static on demo, answered by m (SIMULATED), under 1 fault plan (paper) and without faults."


def test_of_a_single_architecture_the_tokens_of_a_repair_and_of_a_pass_are_told(tmp_path: Path) -> None:
    summary = of(run_of(tmp_path / "run", trials(retry=1000)))
    assert finding(summary, "first_round") == (
        "The first repair of a failure took 1,024 [1,022, 1,025]† tokens with static on demo (mean of 6 trials). †: too narrow."
    )
    assert finding(summary, "first_pass") == (
        "A pass without a failure took 240 [240, 240]† tokens with static on demo (mean of 6 trials). †: too narrow."
    )


def repaired(**costs: tuple[int, ...]) -> list[TrialRecord]:
    """Trials of each architecture, in each of which a repair took so many tokens more than 20."""
    return [
        trial(name, "paper", repetition, events=recovered(cost))
        for name, each in costs.items()
        for repetition, cost in enumerate(each, 1)
    ]


def test_the_cheapest_repair_is_told_as_a_share_of_the_dearest(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", repaired(c=(300, 300), b=(200, 200), a=(100, 100)))
    assert finding(of(run), "first_round") == (
        "The first repair of a failure took the fewest tokens with a: 38% [38%, 38%]† of the tokens with c, the dearest of 3, "
        "on demo (2 pairs). †: too narrow."
    )


def test_repairs_whose_ratio_may_be_one_are_said_to_show_no_clear_difference(tmp_path: Path) -> None:
    text = finding(of(run_of(tmp_path / "run", repaired(a=(100, 300, 200), b=(310, 110, 190)))), "first_round")
    assert text.startswith("The first repair of a failure shows no clear difference: with a it took 99% [10%, ")
    assert text.endswith("]† of the tokens with b on demo (3 pairs). †: too narrow.")


def test_repairs_in_no_common_pair_have_no_share(tmp_path: Path) -> None:
    apart = [record for record in repaired(a=(100, 100), b=(200, 200)) if record.repetition == 1 + (record.architecture == "b")]
    text = "The first repair of a failure took the fewest tokens with a and the most with b on demo (0 pairs)."
    assert finding(of(run_of(tmp_path / "run", apart)), "first_round") == text


def test_packs_on_which_the_same_two_are_cheapest_and_dearest_share_a_sentence(tmp_path: Path) -> None:
    records = [
        trial(name, "paper", repetition, events=recovered(cost), scenario=pack)
        for pack in ("demo", "other")
        for name, cost in (("a", 100), ("b", 200))
        for repetition in (1, 2)
    ]
    assert finding(of(run_of(tmp_path / "run", records)), "first_round") == (
        "The first repair of a failure took the fewest tokens with a: 55% [55%, 55%]† of the tokens with b on demo (2 pairs) "
        "and 55% [55%, 55%]† on other (2 pairs). †: too narrow."
    )


def test_of_several_models_the_table_says_what_each_solved_and_took_and_no_sentence_repeats_it(tmp_path: Path) -> None:
    records = [
        trial("static", plan, repetition, events=recovered(cost), model=model)
        for plan in ("none", "paper")
        for model, cost in (("small", 200), ("big", 100))
        for repetition in (1, 2)
    ]
    summary = of(run_of(tmp_path / "run", records))
    assert not {"first_round", "first_pass", "outcomes"} & {each.table for each in summary.findings}
    assert "- big (SIMULATED) solved as many as small (SIMULATED)" in "\n".join(summary.lines())


def test_masked_faults_are_told_apart_from_those_that_mattered(tmp_path: Path) -> None:
    masked, effective = (of(run_of(tmp_path / str(each), trials(masked=each))) for each in (True, False))
    assert finding(masked, "receipts") == (
        "6 failures were injected; 6 hit answers that were bad anyway, so 0 tell what a failure costs."
    )
    assert finding(effective, "receipts") == ("6 failures were injected, and none hit an answer that was bad anyway.")
    price = "The whole price of a failure for static on demo: fewer than 5 trials had an effective fault"
    assert any(limit.startswith(price) for limit in masked.limits)
    assert not any(limit.startswith(price) for limit in effective.limits)


def test_of_several_plans_the_one_is_named_whose_failures_have_no_price(tmp_path: Path) -> None:
    few = [trial("static", "late", 1, events=recovered(500))]
    limits = of(run_of(tmp_path / "run", [*trials(), *few])).limits
    price = "The whole price of a failure for static on demo under late: fewer than 5 trials had an"
    assert any(limit.startswith(price) for limit in limits)


def test_where_nothing_is_solved_nothing_is_said_of_recovering_to_a_right_answer(tmp_path: Path) -> None:
    wrong, solved = (of(run_of(tmp_path / outcome, trials(outcome=outcome))) for outcome in ("wrong", "solved"))
    text = "Whether a failure is recovered to a right answer: no trial was solved."
    assert text in wrong.limits and text not in solved.limits
    assert finding(wrong, "outcomes") == "No trial was solved, 0 of 12, so nothing is said about right answers."
    floor = "That a model is needed for demo: keyword rules without any model score 0.125, the best arm 0.000."
    assert floor in wrong.limits and floor not in solved.limits


def test_what_is_solved_is_told_of_each_architecture_the_best_first(tmp_path: Path) -> None:
    records = [
        trial(name, "none", n, "solved" if n <= count else "wrong", smooth())
        for name, count in (("static", 3), ("mine", 5))
        for n in range(1, 7)
    ]
    summary = of(run_of(tmp_path / "run", records))
    assert finding(summary, "outcomes") == "On demo without faults, mine solved 5 of 6 trials and static 3 of 6."


def test_without_faults_there_is_nothing_about_failures(tmp_path: Path) -> None:
    summary = of(run_of(tmp_path / "run", [trial("static", "none", 1, events=smooth())]))
    assert {each.table for each in summary.findings} == {"first_pass", "outcomes"}
    assert summary.ran.endswith("answered by m (SIMULATED), without faults.")


def test_at_most_five_sentences_are_said_the_verdicts_last(tmp_path: Path) -> None:
    claims = [SummaryFinding("Of the claims all hold.", "claims")]
    wrong, solved = (run_of(tmp_path / outcome, trials(outcome=outcome)) for outcome in ("wrong", "solved"))
    shown = [[each.table for each in summary_of(run, arms_of(run), claims).findings] for run in (wrong, solved)]
    assert shown == [
        ["first_round", "outcomes", "receipts", "claims", "first_pass"],
        ["first_round", "outcomes", "recovery", "receipts", "claims"],
    ]
    assert [each.table for each in of(solved).findings] == ["first_round", "outcomes", "recovery", "receipts", "first_pass"]


def test_a_terminal_is_shown_eight_lines_of_a_hundred_characters(tmp_path: Path) -> None:
    records = [
        trial(name, plan, n, events=recovered(cost) if plan != "none" else smooth(), scenario=pack)
        for pack in ("one_long_name_of_a_pack", "another_long_name_of_a_pack", "third")
        for plan in ("none", "a_plan_with_a_long_name", "paper")
        for name, cost in (("an_architecture_with_a_long_name", 200), ("another_architecture_with_one", 100))
        for n in (1, 2)
    ]
    summary = of(run_of(tmp_path / "run", records))
    lines = summary.lines()
    assert len(lines) <= 8 and max(map(len, lines)) <= 100
    assert " ".join(lines).startswith(summary.ran)
    assert any(line.startswith("- The first repair of a failure took the fewest tokens") for line in lines)
    assert any(line.startswith("Not shown: other tasks") for line in lines)
    assert summary.lines(["One differs."]) == ("One differs.", *lines)
    assert summary.lines(["One differs."] * 4)[0].startswith("4 notes say what is left out")


def test_in_a_world_the_damage_is_told_first_and_stands_in_the_terminal(tmp_path: Path) -> None:
    records = [
        *(lived(system=name) for name in ("agent", "other")),
        lived("crash", system="agent", by=(CRASH,)),
        lived("crash", system="other", by=(CRASH,), damage={"doubled": 1}),
    ]
    summary = of(run_of(tmp_path / "run", records))
    assert summary.findings[0].table == "world_damage"
    assert "damage was done in 0 of 1 trials of agent and 1 of 1 trials of other" in " ".join(summary.lines())
    controls = [lived(system="agent"), lived(system="other", damage={"doubled": 1})]
    summary = of(run_of(tmp_path / "damaged_controls", [*controls, *records[2:]]))
    assert "1 of 1 trials of other (without faults in 1 of 1)" in summary.findings[0].text


@pytest.mark.usefixtures("unmade")
def test_the_page_begins_with_it_and_each_sentence_leads_to_a_table_that_is_there(tmp_path: Path) -> None:
    report = report_of(run_of(tmp_path / "run", trials()))
    page, html = report.files["report.md"].decode(), report.files["report.html"].decode()
    for finding in report.summary.findings:
        assert f"- {finding.text} ([table](#{finding.table}))\n" in page
        assert f"tables/{finding.table}.md" in report.files
        assert f'<a href="#table-{finding.table}">' in html and f'id="table-{finding.table}"' in html
    assert page.index(report.summary.ran) < page.index("![") < page.index(report.summary.findings[0].text) < page.index("## ")
