"""Whether a system recovers to a right answer is shown where a control solved something, once, and with its denominators."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import recovered, run_of, smooth, trial

from bench.read.analysis.arms import arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.render.drawing import MAX_WIDTH_INCHES, style
from bench.read.render.table import Table, markdown
from bench.read.report.summary import summary_of
from bench.read.report.tables import all_tables
from bench.read.tables.recovery_rates import recovery_figures, recovery_tables
from bench.record.record import Outcome, TrialRecord


def records(outcomes: dict[str, tuple[Outcome, Outcome]], scenario: str = "demo") -> list[TrialRecord]:
    """By architecture the outcome without faults, and that under them, of each of four instances."""
    return [
        trial(name, plan, 1, outcome, events, instance=instance, scenario=scenario, id=f"{scenario}-{name}-{plan}-{instance}")
        for name, both in outcomes.items()
        for instance in "abcd"
        for plan, outcome, events in (("none", both[0], smooth()), ("paper", both[1], recovered()))
    ]


def table(run: Run) -> Table | None:
    return next(iter(recovery_tables(run, arms_of(run))), None)


def test_its_row_has_the_two_by_two_and_the_rate_with_its_denominator(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", records({"static": ("solved", "wrong"), "mine": ("solved", "solved")}))
    shown = table(run)
    assert shown
    [static, mine] = [line for line in markdown(shown).splitlines() if line.startswith(("| static", "| mine"))]
    assert static.startswith("| static | 4 | 0 | 4 | 0 | 0 | -100.0% [") and "| 0/4 = 0.0% [0.0%, 49.0%]† | 4 |" in static
    assert mine.startswith("| mine | 4 | 4 | 0 | 0 | 0 | 0.0% [") and "| 4/4 = 100.0% [51.0%, 100.0%]† | 4 |" in mine


def test_a_scenario_without_a_solved_control_has_no_rate(tmp_path: Path) -> None:
    hard = records({"static": ("wrong", "solved")}, "hard")
    some, none = (
        run_of(tmp_path / name, records_of)
        for name, records_of in (("a", [*records({"static": ("solved", "solved")}), *hard]), ("b", hard))
    )
    shown = table(some)
    assert shown and {row[0] for row in shown.rows} == {"demo"} and table(none) is None
    text = "Whether a failure is recovered to a right answer: no trial without faults was solved."
    assert text in summary_of(none, arms_of(none)).limits and text not in summary_of(some, arms_of(some)).limits


def test_the_summary_tells_the_rate_of_each_architecture_the_highest_first(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", records({"static": ("solved", "wrong"), "mine": ("solved", "solved")}))
    [text] = [finding.text for finding in summary_of(run, arms_of(run)).findings if finding.table == "recovery"]
    assert text == "On demo under paper, of 4 trials that every architecture solves without faults, mine solved 4 and static 0."


def test_no_rate_of_it_stands_in_another_table(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", records({"static": ("solved", "wrong")}))
    titles = [name for each in all_tables(Results(run)) for name in each.columns]
    assert titles.count("Silent corruption") == 1 and not [name for name in titles if name.startswith("Silent corruption,")]


@pytest.mark.usefixtures("undrawn")
def test_its_figure_is_drawn_for_each_model_of_which_a_control_solved_something(tmp_path: Path) -> None:
    hard = records({"static": ("wrong", "solved")}, "hard")
    with style():
        none, some = (
            list(recovery_figures(run, arms_of(run)))
            for run in (
                run_of(tmp_path / "none", hard),
                run_of(tmp_path / "some", [*hard, *records({"static": ("solved", "wrong"), "mine": ("wrong", "solved")})]),
            )
        )
    assert none == [] and [each.name for each in some] == ["recovery-m"]
    assert some[0].caption.startswith(
        "On demo, architectures solved 0/4 to 4/4 without faults and 0/4 to 4/4 under paper (m, SIMULATED). "
    )


@pytest.mark.usefixtures("undrawn")
def test_a_figure_of_many_architectures_is_no_wider_than_a_page(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", records({f"architecture_{number}": ("solved", "wrong") for number in range(30)}))
    with style():
        [picture] = recovery_figures(run, arms_of(run))
    assert picture.width <= MAX_WIDTH_INCHES
