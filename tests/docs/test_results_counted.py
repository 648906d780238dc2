"""What the pages of results count of the recordings, without a table that shows it, is what the recordings hold."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pandas as pd
from commands import UNDRAWN
from commands import bench as command

import bench
from bench.read.analysis.statistics import is_narrow, mean_of
from bench.read.report.studies import study_tables
from bench.rerun.learning import learn
from bench.worlds.run.simulated.bank import replies_in

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
INCIDENTS = RESULTS / "incidents-qwen2.5-coder-1.5b-instruct"


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split())


def test_all_but_three_replies_that_do_not_fit_name_what_is_on_no_list() -> None:
    replies = bench.load_run(RESULTS / "structured_output-qwen2.5-coder-1.5b-instruct").replies
    distinct = replies[replies["scenario"].eq("k8s_oomkill")].drop_duplicates(["model", "digest"])
    kinds = Counter(kind for kind in distinct["kind"] if kind in ("vocabulary", "form", "missing_field"))
    assert kinds == {"vocabulary": 43 + 50 - 3, "form": 2, "missing_field": 1}
    assert "All but three of the replies that did not fit" in page("results/answer_form")


def test_the_states_of_the_judgments_are_those_of_the_two_banks() -> None:
    for model in ("1.5b", "0.5b"):
        replies = [reply for _, reply in replies_in(RESULTS / f"judgment_bank-qwen2.5-coder-{model}-instruct")]
        states = {(reply.instance, reply.judgment, reply.state) for reply in replies}
        assert len(states) == 232 and len(replies) == 5 * len(states)
    assert "plays 232 recorded states of `contract_renewal`" in page("results/boundaries")


def test_asking_in_parallel_saves_what_the_page_says(tmp_path: Path) -> None:
    """The command of the page: a replay, three calls at a time."""
    forms = ("static", "static_parallel", "runtime_structured", "runtime_structured_parallel")
    words = [
        "run",
        str(ROOT / "studies" / "comparisons" / "parallel.toml"),
        "--scenarios",
        str(ROOT / "scenarios"),
        "--name",
        "parallel",
    ]
    words += ["--model", f"recorded:{INCIDENTS}", "--concurrency", "3", "--instances", "40", "--plan", "none"]
    code, _, err = command(tmp_path, *words, *(word for form in forms for word in ("--architecture", form)), **UNDRAWN)
    assert code == 0, err
    trials = bench.load_run(tmp_path / "results" / "parallel").trials
    trials["solved"] = trials["outcome"].eq("solved")
    seconds = trials.pivot(index="instance", columns="architecture", values="latency_seconds")
    solved = trials.pivot(index="instance", columns="architecture", values="solved")
    static, static_parallel, structured, structured_parallel = (seconds[form] for form in forms)

    def less(these: pd.Series, those: pd.Series) -> str:
        mean = mean_of(these - those)
        assert mean.n == 40
        return f"{mean.mean:.0f} s [{mean.low:.0f}, {mean.high:.0f}]{'†' if is_narrow(mean) else ''}"

    assert solved["static"].equals(solved["static_parallel"])
    assert solved["runtime_structured"].equals(solved["runtime_structured_parallel"])
    for sentence in (
        f"a trial of `static` takes {static.mean():.0f} s, and {less(static, static_parallel)} less in parallel",
        f"`runtime_structured` takes {structured.mean():.0f} s, and {less(structured, structured_parallel)} less (40 pairs",
        f"`runtime_structured` takes {less(static, structured)} less than `static`",
    ):
        assert sentence in page("results/incidents")


def test_twenty_incidents_teach_to_keep_all_six_subtasks_apart() -> None:
    policy = learn(INCIDENTS, [ROOT / "scenarios"], "runtime_structured", "none", count=20).packs["incidents"]
    assert [len(call) for call in policy.calls] == [1] * 6
    assert "From the rejections in these incidents `bench more learn` keeps all six subtasks apart" in page("results/incidents")


def test_the_model_that_orchestrates_solved_no_trial_and_damaged_each() -> None:
    run = bench.load_run(RESULTS / "orchestration_live-qwen2.5-coder-1.5b-instruct")
    n, solved = len(run.trials), int(run.trials["outcome"].eq("solved").sum())
    damaged = int(run.trials.filter(like="damage_").sum(axis="columns").gt(0).sum())
    assert damaged == n and f"solved {solved} of {n} trials, and did damage in each" in page("results/boundaries")
    [table] = [table for table in study_tables(run) if table.name == "study-orchestration-live"]
    [counts] = [match for note in table.notes if (match := re.match(r"(\d+) different comparisons: (\d+) told apart", note))]
    decide = [int(str(row[table.columns.index("To decide")])) for row in table.rows]
    differ = f"Of {counts[1]} comparisons that differ anywhere {counts[2]} differ beyond chance"
    assert f"{differ}; {min(decide):,} to {max(decide):,} instances would decide these comparisons." in page(
        "results/boundaries"
    )
