"""The report is a function of the results alone, says what it is, and can be made of any run."""

from __future__ import annotations

import html.parser
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pytest
from records import (
    called,
    config_in,
    edit_manifest,
    experiment,
    fault,
    recovered,
    rejected,
    run_of,
    smooth,
    trial,
    with_manifest,
    write_run,
)

import bench
from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.analysis.results import Results
from bench.read.render.table import markdown
from bench.read.report.page import page_of
from bench.read.report.summary import Summary
from bench.read.report.tables import all_tables
from bench.read.report.written_report import Report, report_of
from bench.record.events import Called, Event
from bench.record.files import write_files
from bench.record.record import Outcome, TrialRecord

ARCHITECTURES = ("monolithic", "static", "runtime_structured")


def texts_of(run: Run) -> dict[str, str]:
    """The report's texts, by path. No number that does not exist may stand in any of them."""
    return checked_texts(report_of(run).files)


def checked_texts(files: Mapping[str, bytes]) -> dict[str, str]:
    texts = {name: content.decode() for name, content in files.items() if not name.startswith("figures/")}
    for name, text in texts.items():
        assert not re.search(r"\b(nan|inf|None|NaT|<NA>)\b", re.sub(r"base64,[^\"]*", "", text)), name
    return texts


@pytest.fixture(scope="session")  # a worker that is handed tests of this module twice would draw it twice
def plain(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The files of the report on a plain experiment; drawing takes seconds, so it is done once."""
    return report_of(run_of(tmp_path_factory.mktemp("plain") / "run", experiment())).files


def table_of(run: Run, name: str) -> str:
    """One table of the report, as Markdown."""
    return next(markdown(table) for table in all_tables(Results(run)) if table.name == name)


def row_of(text: str, first: str) -> list[str]:
    """The cells of the first row of a Markdown table that begins with this."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def pictures_of(run: Run) -> list[str]:
    return [name for name in report_of(run).files if name.endswith(".png")]


def real(records: list[TrialRecord]) -> list[TrialRecord]:
    return [trial(record.architecture, record.plan, record.repetition, timing="live") for record in records]


def paper_run(folder: Path) -> Run:
    scenario = "k8s_oomkill"
    return run_of(folder, [trial(architecture, "paper", 1, scenario=scenario) for architecture in ARCHITECTURES])


# The same bytes


def test_the_same_results_give_the_same_bytes_elsewhere_on_another_day(
    plain: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write_run(tmp_path / "somewhere" / "else", experiment())
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")  # a date in a figure would come from here
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    with mpl.rc_context({"font.size": 20.0, "axes.linewidth": 4.0, "pdf.fonttype": 3}):
        again = report_of(bench.load_run(other))
        assert mpl.rcParams["font.size"] == 20.0, "nobody else's settings are changed"
    written = write_files(tmp_path / "out", again.files)
    assert [str(path.relative_to(tmp_path / "out")) for path in written] == list(plain)
    assert {path.suffix for path in written} == {".md", ".html", ".csv", ".png"}, "a figure has one format unless asked"
    for path, first in zip(written, plain.values(), strict=True):
        assert path.read_bytes() == first, path.name


def test_no_path_of_the_results_is_in_the_report(plain: Mapping[str, bytes], tmp_path: Path) -> None:
    for name, text in checked_texts(plain).items():
        assert str(tmp_path.parent) not in text, name


@pytest.mark.usefixtures("unmade")
def test_an_interruption_leaves_no_half_written_file_and_no_page_without_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", experiment(repetitions=1))
    real_replace, renamed = Path.replace, list[str]()

    def replace(self: Path, target: Path) -> Path:
        if len(renamed) == 5:
            raise KeyboardInterrupt
        renamed.append(target.name)
        return real_replace(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path / "out", report_of(run).files)
    visible = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert sorted(visible) == sorted(renamed)
    assert not {"report.md", "report.html"} & set(visible)


@pytest.mark.usefixtures("unmade")
def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file is in the way")
    with pytest.raises(ResultsError, match="cannot be written"):
        write_files(tmp_path / "out", report_of(run_of(tmp_path / "run", experiment(repetitions=1))).files)


def test_without_a_receipt_nothing_is_written(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(plan="paper", events=[*fault("planned"), *smooth()])])
    with pytest.raises(ResultsError, match="reports no numbers"):
        write_files(tmp_path / "out", report_of(run).files)
    assert not (tmp_path / "out").exists()


# What it says


def test_the_report_begins_with_a_summary_and_ends_with_what_it_is_of(plain: Mapping[str, bytes]) -> None:
    page = checked_texts(plain)["report.md"]
    opening, closing = page.partition("## ")[0], page.rpartition("## What was run")[2]
    for text in (
        "by-hand",
        "m (SIMULATED)",
        "What this does not show:",
        "intervals hold for repetitions of that task alone",
    ):
        assert text in opening
    for text in (
        *("by-hand", "m (SIMULATED)", "N = 3", "demo (variant small, asked 5cede5cede5c)", "commit 0123456789ab (clean)"),
        *("2026-01-02T03:04:05+00:00", "complete", "missing_field at output of b, attempt 1"),
    ):
        assert text in closing


@pytest.mark.usefixtures("unmade")
def test_a_dirty_checkout_and_missing_trials_are_said(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment())
    edit_manifest(folder, code={"commit": "abc", "dirty": True}, config={**config_in(folder), "repetitions": 5})
    page = texts_of(bench.load_run(folder))["report.md"]
    assert "commit abc (dirty" in page
    assert "8 trials are not recorded" in page.partition("## ")[0]


def test_simulated_is_said_in_every_table_with_numbers_of_it_and_in_every_figure(plain: Mapping[str, bytes]) -> None:
    texts = checked_texts(plain)
    for name, text in texts.items():
        assert "SIMULATED" in text, name
    captions = re.findall(r"!\[(.*?)\]", texts["report.md"])
    assert captions and all("SIMULATED" in caption for caption in captions)


@pytest.mark.usefixtures("unmade")
def test_a_real_models_numbers_are_not_marked_but_named(tmp_path: Path) -> None:
    texts = texts_of(run_of(tmp_path / "run", real(experiment())))
    assert not any("SIMULATED" in text for text in texts.values())
    assert "demo, m, fault plan paper" in texts["report.md"]


def test_no_total_with_retries_stands_beside_a_number_of_the_papers(tmp_path: Path) -> None:
    table = table_of(paper_run(tmp_path / "run"), "comparison-k8s_oomkill-m-paper")
    assert "904" not in table and "paper:" not in table


def test_means_excess_and_outcomes_are_those_of_the_trials(tmp_path: Path) -> None:
    records = experiment(("static",), repetitions=3)
    records += [trial("static", "paper", 4, "gave_up"), trial("static", "paper", 5, "error"), trial("static", "none", 5)]
    records += [trial("static", "none", 4)]
    run = run_of(tmp_path / "run", records)
    table = table_of(run, "comparison-demo-m-paper")
    assert row_of(table, "Trials, errors left out") == ["4"]
    # 110, 120, 130, 140 tokens in and 20 out for each retry, after 240 that had to be paid anyway
    assert row_of(table, "Retry tokens") == ["145 ± 13 [126, 167]†"]
    assert row_of(table, "Paired excess tokens") == ["140 ± 10 [115, 165]†, N=3"], "what gave up has no answer to pay for"
    assert row_of(table, "Solved")[0].startswith("3/4 = 75.0%")
    assert [row_of(table, name) for name in ("Wrong", "Gave up", "Errors")] == [["0"], ["1"], ["1"]]
    outcomes = next(line for line in table_of(run, "outcomes").splitlines() if "| paper |" in line)
    assert [part.partition(" ")[0] for part in re.findall(r"\d+/\d+ =", outcomes)] == ["3/4", "3/5", "4/5", "0/4"]


def test_architectures_are_compared_repetition_by_repetition(tmp_path: Path) -> None:
    dear = [trial("static", "paper", number, events=recovered(1000 + 10 * number)) for number in (1, 2, 3)]
    run = run_of(tmp_path / "run", [*dear, *(trial("mine", "paper", number) for number in (1, 2, 3))])
    row = row_of(table_of(run, "differences"), "demo")
    assert row[2:6] == ["mine − static", "3", "0", "-900 ± 0 [-900, -900]†"]


def test_the_ledgers_shares_are_of_all_tokens(tmp_path: Path) -> None:
    text = table_of(run_of(tmp_path / "run", [trial("static", "paper", 1)]), "ledger")
    [line] = [line for line in text.splitlines() if "| static |" in line]
    assert "| 370 | 250 | 67.6% | 120 | 32.4% | 0 | 0.0% |" in line


def test_how_often_faults_struck_is_told_by_call_and_by_task(tmp_path: Path) -> None:
    text = table_of(run_of(tmp_path / "run", experiment(("static",))), "receipts")
    lines = [line for line in text.splitlines() if "| static |" in line]
    assert lines == ["| demo | m (SIMULATED) | paper | static | 3 | 9 | 3 | 3 | 0 | 3 | 3 | 0 | 0 | 3 | 0.333 | 1.000 |"]


def test_receipts_have_a_column_for_each_finish_that_came_and_recovered_is_not_said_of_a_wrong_answer(tmp_path: Path) -> None:
    events = recovered(100)
    outcomes: list[Outcome] = ["solved", "wrong", "wrong"]
    run = run_of(tmp_path / "run", [trial("static", "paper", at, outcome, events) for at, outcome in enumerate(outcomes, 1)])
    head, _, row = [line.split(" | ") for line in table_of(run, "receipts").splitlines() if line.startswith("|")][:3]
    cells = dict(zip(head, row, strict=True))
    assert (cells["Recovered"], cells["Answered wrong"]) == ("1", "2")
    assert not {"Restarted", "Gave up", "Undetected"} & cells.keys()


def test_natural_failures_leave_the_planned_ones_out(tmp_path: Path) -> None:
    natural: list[Event] = [called(1, "a"), rejected(1, "a"), called(2, "a", cause="retry"), rejected(2, "a", "check")]
    records = [*experiment(("static",), repetitions=1), trial("static", "none", 2, "gave_up", natural)]
    lines = [line for line in table_of(run_of(tmp_path / "run", records), "natural_failures").splitlines() if line[:2] == "| "]
    cells = [[cell.strip() for cell in line.split("|")[1:6]] for line in lines[2:]]
    assert [[subtask, came, kind, rejected.split(" =")[0], number] for subtask, came, kind, rejected, number in cells] == [
        ["a", "3 of 3", "any", "2/3", "1.1"],
        ["a", "3 of 3", "form: other", "1/3", "3.0"],
        ["a", "3 of 3", "content", "1/3", "3.0"],
        ["b", "2 of 3", "any", "0/2", "2.0"],
        ["every call", "–", "any", "2/5", "1.0"],
        ["every call", "–", "does not fit its schema", "1/5", "2.8"],
        ["every call", "–", "form: a missing field", "0/5", "2.0"],
        ["every call", "–", "form: other", "1/5", "2.8"],
        ["every call", "–", "content", "1/5", "2.8"],
    ], "the struck reply of b is not among them, its retry is; and the first reply of two plans is one"


def test_natural_failures_name_the_calls_that_survivors_made(tmp_path: Path) -> None:
    early: list[Event] = [called(1, "a"), rejected(1, "a")]
    records = [trial("static", "none", 1), trial("static", "none", 2, "gave_up", early)]
    assert "rates are rates of survivors: b\n" in table_of(run_of(tmp_path / "run", records), "natural_failures")
    assert "survivors" not in table_of(run_of(tmp_path / "all", records[:1]), "natural_failures")


# Any run


def test_a_run_in_which_every_trial_failed_is_reported_without_numbers(tmp_path: Path) -> None:
    records = [trial(name, plan, outcome="error", reason="no route") for name in ARCHITECTURES for plan in ("none", "paper")]
    run = run_of(tmp_path / "run", records)
    texts = texts_of(run)
    assert row_of(texts["tables/comparison-demo-m-paper.md"], "Tokens") == ["n/a"] * 3
    assert row_of(texts["tables/comparison-demo-m-paper.md"], "Solved") == ["n/a (0/0)"] * 3
    assert "6 trials ended in an error" in texts["report.md"] and "no route" in texts["report.md"]
    assert pictures_of(run) == []


def test_each_comparison_tells_the_score_of_keyword_rules_without_a_model(plain: Mapping[str, bytes]) -> None:
    tables = [text for name, text in plain.items() if name.startswith("tables/comparison") and name.endswith(".md")]
    assert tables
    assert all(b"keyword rules without any model score 0.125 and solve 0 of 1" in text for text in tables)


@pytest.mark.usefixtures("undrawn")
def test_a_single_repetition_has_means_but_no_intervals(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", experiment(repetitions=1))
    table = table_of(run, "comparison-demo-m-paper")
    assert row_of(table, "Tokens") == ["370 (sd, interval n/a)"] * 2
    assert pictures_of(run)


@pytest.mark.usefixtures("unmade")
def test_a_variant_says_what_it_is_one_of_and_its_own_settings(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", experiment(("static", "mute")))
    config = config_in(folder)
    variants = {"mute": {"base": "static", "repair": "none", "max_attempts": None}}
    edit_manifest(folder, config={**config, "architecture": variants})
    assert "- Architectures: static, mute (static, repair none)\n" in texts_of(bench.load_run(folder))["report.md"]


@pytest.mark.usefixtures("unmade")
def test_replies_taken_over_from_an_earlier_run_are_said_to_be_its(tmp_path: Path) -> None:
    record = trial(events=[replace(event, reused=True) if isinstance(event, Called) else event for event in smooth()])
    folder = write_run(tmp_path / "run", [record])
    edit_manifest(folder, models={"m": {"cache_from": [{"name": "before", "digest": "d"}]}})
    page = texts_of(bench.load_run(folder))["report.md"]
    assert "reused its reply and seconds; some of these trials belong to before\n" in page


@pytest.mark.usefixtures("unmade")
def test_without_a_fault_free_plan_there_is_no_paired_excess(tmp_path: Path) -> None:
    texts = texts_of(run_of(tmp_path / "run", experiment(plans=("paper",))))
    assert "excess" not in texts["report.md"]


@pytest.mark.usefixtures("undrawn")
def test_without_a_fault_at_all_there_is_a_report(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", experiment(plans=("none",)))
    assert "| static |" not in table_of(run, "receipts")
    assert not pictures_of(run)


def test_names_nobody_foresaw_pass_through_every_form(tmp_path: Path) -> None:
    odd, model = "their.module:agent_&_100%", "org/model:7b <script>$x$"
    records = [trial(odd, plan, 1, scenario="scen:large", model=model) for plan in ("none", "paper")]
    run = run_of(tmp_path / "run", records)
    report = report_of(run)
    texts = checked_texts(report.files)
    assert "their.module:agent_&amp;_100%" in texts["report.html"] and "<script>$x$" not in texts["report.html"]
    assert odd in texts["tables/ledger.csv"]
    for path in write_files(tmp_path / "out", report.files):
        assert re.fullmatch(r"[A-Za-z0-9._-]+", path.name), path.name


@pytest.mark.usefixtures("unmade")
def test_names_that_are_the_same_as_file_names_keep_their_files_apart(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [trial(scenario="s:1"), trial(scenario="s/1")])
    names = [name for name in texts_of(run) if name.startswith("tables/comparison") and name.endswith(".csv")]
    assert names == ["tables/comparison-s-1-m-none.csv", "tables/comparison-s-1-m-none.2.csv"]


def test_a_table_of_every_measure_has_a_column_for_each_architecture_and_none_of_the_papers(tmp_path: Path) -> None:
    records = [trial(name, "paper", scenario="k8s_oomkill") for name in ("static", "mine")]
    header = table_of(run_of(tmp_path / "run", records), "comparison-k8s_oomkill-m-paper").splitlines()[2]
    assert header == "| Measure | static (SIMULATED) | mine (SIMULATED) |"


def test_equal_values_are_shown_without_spread(tmp_path: Path) -> None:
    table = table_of(run_of(tmp_path / "run", experiment(plans=("none",))), "comparison-demo-m-none")
    assert row_of(table, "Tokens") == ["240 ± 0 [240, 240]†"] * 2


# The page


class Seen(html.parser.HTMLParser):
    """What a page asks of the network, and whether its tags match."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.images = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values: Mapping[str, str | None] = dict(attrs)
        self.addresses += [value for name in ("src", "href") if (value := values.get(name))]
        self.ids |= {value for value in [values.get("id")] if value}
        if tag == "img":
            self.images += 1
            assert values.get("alt")
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_beside_it(plain: Mapping[str, bytes]) -> None:
    page = checked_texts(plain)["report.html"]
    seen = Seen(page)
    assert not seen.open
    assert seen.images == sum(name.endswith(".png") for name in plain) > 0
    for address in seen.addresses:
        assert address.startswith("data:image/png;base64,") or address.removeprefix("#") in seen.ids
    assert "@import" not in page and "url(" not in page
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page


def test_no_figure_is_so_heavy_that_a_page_of_twenty_could_not_be_sent(plain: Mapping[str, bytes]) -> None:
    assert max(len(content) for name, content in plain.items() if name.endswith(".png")) < 100_000


def test_every_figure_the_pages_name_is_written(plain: Mapping[str, bytes]) -> None:
    named = re.findall(r"\((figures/[^)]*)\)", plain["report.md"].decode())
    assert named and set(named) == {name for name in plain if name.endswith(".png")}


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize(
    ("scenario", "architectures", "plan"),
    [
        ("demo", ("monolithic", "static", "runtime_structured"), "paper"),
        ("k8s_oomkill", ("static", "runtime_structured"), "paper"),
        ("k8s_oomkill", ("monolithic", "static", "runtime_structured"), "of_ones_own"),
    ],
)
def test_a_run_that_is_not_about_the_paper_says_nothing_of_it(
    tmp_path: Path, scenario: str, architectures: tuple[str, ...], plan: str
) -> None:
    records = [trial(name, each, n, scenario=scenario) for name in architectures for each in ("none", plan) for n in (1, 2)]
    report = report_of(run_of(tmp_path / "run", records))
    page = report.files["report.md"].decode()
    assert report.verdicts == () and not any(name.startswith("tables/claims") for name in report.files)
    assert "## Verdicts" not in page and "paper's" not in page and "The paper" not in page and "claim" not in page.lower()


@pytest.mark.usefixtures("unmade")
def test_a_run_of_a_task_of_the_papers_with_its_architectures_and_its_failure_is_judged(tmp_path: Path) -> None:
    names = ("monolithic", "static", "runtime_structured")
    run = run_of(tmp_path / "run", [trial(name, plan, scenario="k8s_oomkill") for name in names for plan in ("none", "paper")])
    report = report_of(run)
    assert len(report.verdicts) > 2 and "tables/claims.md" in report.files


def test_a_fault_plan_is_told_by_whom_it_strikes_and_when(tmp_path: Path) -> None:
    once = {"point": "output", "effect": "empty", "subtask": "b", "attempts": [1, 2], "probability": 0.0}
    persistent = {**once, "subtask": "*", "position": "last", "attempts": "every"}
    likely = {**once, "subtask": "*", "attempts": [], "probability": 0.5}
    run = run_of(tmp_path / "run", [trial(plan="paper")])
    config = {**config_in(tmp_path / "run"), "plan": {"paper": {"faults": [once, persistent, likely]}}}
    page = page_of(Results(with_manifest(run, config=config)), [], [])
    assert dict(page.facts)["Fault plans"] == (
        "paper: empty at output of b, attempt 1, 2 + empty at output of the last subtask, every attempt"
        " + empty at output of every subtask, probability 0.5"
    )


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize("link", ["report.html", "tables"])
def test_no_link_in_a_reports_folder_is_written_through(tmp_path: Path, link: str) -> None:
    other, out = tmp_path / "other", tmp_path / "out"
    out.mkdir()
    (out / link).symlink_to(other)
    if link == "tables":
        other.mkdir()
    else:
        other.write_text("not yours")
    report = Report({"report.html": b"page", "tables/t.md": b"table"}, Summary("a headline", "", (), ()), ())
    if link == "tables":
        with pytest.raises(ResultsError, match="out/tables: is a link, and nothing is written through a link"):
            write_files(out, report.files)
        assert list(other.iterdir()) == []
    else:
        write_files(out, report.files)
        assert other.read_text() == "not yours" and (out / "report.html").read_bytes() == b"page"
