"""Two models at an endpoint of our own, one ten points worse: the report's title, its first table and `bench compare` agree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import UNDRAWN, bench
from records import run_of, smooth, trial
from two_models import PACKS, TwoModels

from bench.read.compare.models import MAX_COMPARED_MODELS, model_pairs

NAME = "two_models-good-weak"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    with TwoModels() as server:
        config = server.config(folder, repetitions=15)
        ended = bench(folder, "run", str(config), "--scenarios", str(PACKS), OPENAI_API_KEY="none")
    assert ended[0] == 0, ended
    ended = bench(folder, "report", NAME, **UNDRAWN)
    assert ended[0] == 0, ended
    return folder


def test_title_table_and_compare_agree_on_a_model_that_is_ten_points_worse(folder: Path) -> None:
    lines = (folder / "results" / NAME / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes = [(each["model"], each["outcome"]) for line in lines if "outcome" in (each := json.loads(line))]
    solved = {model: sum(each == (model, "solved") for each in outcomes) for model in ("good", "weak")}
    assert len(outcomes) == 120 and solved == {"good": 60, "weak": 54}

    code, text, _ = bench(folder, "compare", NAME, "--models", "good", "weak", "--json")
    compared = json.loads(text)
    [by_solved] = [row for row in compared["overall"] if row["measure"] == "solved"]
    assert (code, compared["verdict"], by_solved["verdict"]) == (1, "worse", "worse")
    assert (by_solved["before"], by_solved["after"], by_solved["pairs"]) == (1.0, pytest.approx(0.9), 60)

    page = (folder / "reports" / NAME / "report.md").read_text(encoding="utf-8")
    low, high = (abs(100 * by_solved[end]) for end in ("high", "low"))
    title = f"weak solved 10.0 points fewer than good [{low:.1f}, {high:.1f}], 54 of 60 trials against 60 of 60, "
    assert page.splitlines()[0] == f"# {title}at 0.05 times the dollars: worse"

    rows = dict(
        re.findall(r"^\| ([^|]+) \| (.+) \|$", page[page.index('<a id="models_together">') :].split("<!-- end")[0], re.M)
    )
    assert rows["Verdict of bench compare"].split(" | ")[-1] == compared["verdict"]
    assert rows["Solved"] == f"100.0% | 90.0% | -10.0% [-{high:.1f}%, -{low:.1f}%] | worse"
    titles = {"tokens": "Tokens a trial", "cost": "Dollars a trial", "seconds": "Seconds a trial"}
    findings = {row["measure"]: row["verdict"] for row in compared["overall"]}
    for measure, name in titles.items():
        assert rows[name].split(" | ")[-1] == findings[measure]


def test_a_report_of_compared_models_is_no_report_on_the_paper(folder: Path) -> None:
    page = (folder / "reports" / NAME / "report.md").read_text(encoding="utf-8")
    assert "## Verdicts" not in page and "The paper" not in page and "GPT" not in page


def test_models_that_share_no_trial_are_not_compared(tmp_path: Path) -> None:
    apart = [trial("static", "none", 1, events=smooth(), model="a"), trial("static", "none", 2, events=smooth(), model="b")]
    assert model_pairs(run_of(tmp_path / "apart", apart)) == ()
    many = [trial("static", "none", 1, events=smooth(), model=f"m{number}") for number in range(MAX_COMPARED_MODELS + 1)]
    assert model_pairs(run_of(tmp_path / "many", many)) == ()
    assert len(model_pairs(run_of(tmp_path / "most", many[:-1]))) == MAX_COMPARED_MODELS - 1
