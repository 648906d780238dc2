"""`bench scorecard` and `bench compare` of scorecards, as a user and a CI job run them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from commands import UNDRAWN, bench
from records import write_run
from scorecards import shop

from bench.worlds.read.scorecard.card import read_scorecard
from bench.worlds.read.scorecard.page import as_markdown


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs: of a system that recovers, of one that does not, and of both."""
    folder = tmp_path_factory.mktemp("place")
    good, bad = shop(0, "solved", instances=12), shop(2, "wrong", instances=12)
    for name, records in (("good", good), ("bad", bad), ("both", [*good, *shop(system="other")]), ("quiet", good[:12])):
        write_run(folder / "results" / name, records)
    return folder


def mistake(place: Path, *words: str) -> str:
    code, out, err = bench(place, *words)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    return err


def test_one_command_shows_the_page_and_others_write_it(place: Path) -> None:
    code, out, err = bench(place, "scorecard", "bad")
    assert (code, err) == (0, "") and "Recovery at a glance" in out
    assert "None of these 12 trials finished right." in " ".join(out.split())
    for form, begins in (("markdown", "# Recovery scorecard: shop"), ("html", "<!doctype html>"), ("json", "{")):
        words = ("scorecard", "bad", "--format", form, "--to", f"cards/bad.{form}")
        assert bench(place, *words, **UNDRAWN) == (0, f"cards/bad.{form} is written\n", "")
        assert (place / "cards" / f"bad.{form}").read_text().startswith(begins)
    assert bench(place, "scorecard", "cards/bad.json")[1] == out, "a scorecard's file is shown as its run is"
    (place / "cards" / "bad.json.gz").write_bytes(gzip.compress((place / "cards" / "bad.json").read_bytes()))
    assert bench(place, "scorecard", "cards/bad.json.gz")[1] == out, "and so is a packed one"


def test_json_goes_to_the_terminal_and_a_badge_to_its_file(place: Path) -> None:
    code, out, _ = bench(place, "scorecard", "both", "--system", "agent", "--format", "json", "--badge", "badge.json")
    assert code == 0 and [row["system"] for row in json.loads(out.partition("\nbadge.json")[0])["rows"]] == ["agent"]
    assert json.loads((place / "badge.json").read_text())["color"] == "brightgreen"


def test_a_link_in_the_place_of_a_card_is_replaced_and_not_written_through(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    for name in ("card.json", "badge.json"):
        (tmp_path / name).symlink_to(tmp_path / "other")
    words = ("--format", "json", "--to", str(tmp_path / "card.json"), "--badge", str(tmp_path / "badge.json"))
    assert bench(place, "scorecard", "both", "--system", "agent", *words)[0] == 0
    assert (tmp_path / "other").read_text() == "mine"
    assert read_scorecard(tmp_path / "card.json").rows and json.loads((tmp_path / "badge.json").read_text())["label"]


@pytest.mark.parametrize(
    ("first", "second", "code", "verdict"),
    [("bad", "good", 0, "better"), ("good", "good", 0, "equal"), ("good", "bad", 1, "worse")],
)
def test_the_exit_code_says_whether_it_is_worse(place: Path, first: str, second: str, code: int, verdict: str) -> None:
    result, out, err = bench(place, "compare", first, second, "--scorecard")
    assert (result, err) == (code, "") and out.splitlines()[0].startswith(f"{second} against {first}: {verdict}")


def test_scorecards_are_compared_in_tables_and_markdown_has_all_columns(place: Path) -> None:
    command = ("compare", "bad", "good", "--scorecard")
    for shown in ({"COLUMNS": ""}, {"COLUMNS": "100", "TTY_COMPATIBLE": "1", "TERM": "xterm", "NO_COLOR": "1"}):
        code, out, err = bench(place, *command, **shown)
        assert (code, err) == (0, "") and "┏" in out and "| --- |" not in out
        assert "Trials" not in next(line for line in out.splitlines() if "Finding" in line)
        assert "\n- all of these: the rows that decide" in out
        assert "\nWith --markdown the tables also have the columns Trials and Pairs." in out
    assert all(len(line) <= 100 for line in out.splitlines() if line.startswith("│"))
    code, markdown, _ = bench(place, *command, "--markdown")
    assert code == 0 and "| Trials | Pairs |" in markdown and "| 12 and 12 | 12 |" in markdown and "┏" not in markdown
    verdict = "good against bad: better: better in finished right, effects damaged per 100 failures (24 doubled fewer)\n"
    assert out.startswith(verdict) and markdown.startswith(verdict)


def test_two_files_are_compared_without_their_runs_and_few_crashes_decide_nothing(tmp_path: Path) -> None:
    for name, outcome in (("before", "solved"), ("after", "wrong")):
        write_run(tmp_path / "results" / name, shop(0, outcome, instances=3))  # type: ignore[arg-type]
        assert bench(tmp_path, "scorecard", name, "--format", "json", "--to", f"{name}.json")[0] == 0
    code, out, _ = bench(tmp_path, "compare", "before.json", "after.json", "--json")
    assert (code, json.loads(out)["verdict"]) == (3, "undecided")


def test_each_mistake_is_one_line(place: Path) -> None:
    assert "needs a fault plan and the plan 'none' beside it" in mistake(place, "scorecard", "quiet")
    assert "name it with --to" in mistake(place, "scorecard", "bad", "--format", "html")
    assert "name one with --system agent" in mistake(place, "scorecard", "both", "--badge", "badge.json")
    assert "did you mean 'other'" in mistake(place, "scorecard", "both", "--system", "othr")
    assert "holds no run" in mistake(place, "scorecard", "nowhere")
    assert "nowhere.json" in mistake(place, "scorecard", "nowhere.json")
    assert "compare good with what?" in mistake(place, "compare", "good", "--scorecard")
    assert "unknown kind of damage 'dobled'; did you mean 'doubled'?" in mistake(
        place, "compare", "good", "bad", "--allow", "dobled=1"
    )
    assert "as in --allow doubled=0" in mistake(place, "compare", "good", "bad", "--allow", "doubled")
    assert "not for scorecards" in mistake(place, "compare", "good", "bad", "--scorecard", "--measure", "tokens")
    (place / "some.json").write_text("{}")
    assert "is not a scorecard of version 1" in mistake(place, "compare", "some.json", "some.json")


def test_a_run_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results" / "run", shop())
    path = folder / "trials.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"outcome":"wrong"', b'"outcome":"solved"', 1))
    assert "bench verify" in mistake(tmp_path, "scorecard", "run")


REPORTS = Path(__file__).parents[3] / "reports"
COMMITTED = sorted(folder.name for folder in REPORTS.iterdir() if (folder / "scorecard.json.gz").exists())


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_page_is_what_the_committed_numbers_give(name: str) -> None:
    kept = REPORTS / name
    assert as_markdown(read_scorecard(kept / "scorecard.json.gz")) == (kept / "scorecard.md").read_text(encoding="utf-8")
