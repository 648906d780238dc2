"""What the pages of results say in detail, topic by topic, is what the recorded trials give."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import binomtest
from told import told

import bench
from bench.read.analysis.frames import Run
from bench.read.analysis.measure import Measure
from bench.read.analysis.statistics import amount_of, holm, mean_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "reports"
ARMS = ["monolithic", "static", "runtime_structured"]


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split())


def missing(name: str, *sentences: str) -> list[str]:
    """The sentences that a page does not have."""
    text = page(name)
    return [sentence for sentence in sentences if sentence not in text]


@cache
def run_named(name: str, model: str = "1.5b") -> Run:
    return bench.load_run(ROOT / "results" / f"{name}-qwen2.5-coder-{model}-instruct")


def solved(run: Run) -> pd.DataFrame:
    """Whether each instance was solved, in a column for each plan and architecture."""
    trials = run.trials.assign(solved=run.trials["outcome"].eq("solved"))
    return trials.pivot(index="instance", columns=["plan", "architecture"], values="solved")


def controls(run: Run) -> pd.DataFrame:
    """Whether each instance was solved without a fault, in a column for each architecture."""
    trials = run.trials[run.trials["plan"].eq("none")]
    return trials.assign(solved=trials["outcome"].eq("solved")).pivot(index="instance", columns="architecture", values="solved")


def exact(left: pd.Series, right: pd.Series) -> float:
    """The p of the exact paired test of two arms, by the problems that only one of them solves."""
    ahead, behind = int((left & ~right).sum()), int((right & ~left).sum())
    return float(binomtest(ahead, ahead + behind).pvalue) if ahead + behind else 1.0


def test_what_is_said_of_humaneval_without_a_fault_is_what_its_controls_did() -> None:
    run = run_named("humaneval")
    control = controls(run)
    assert not (control["static"] & ~control["runtime_structured"]).any()
    assert (control["runtime_structured"] & ~control["static"]).sum() == 10
    compared = {
        (plan, *pair): exact(*(solved(run)[plan][name] for name in pair))
        for plan in run.trials["plan"].unique()
        for pair in combinations(ARMS, 2)
    }
    corrected = holm(compared)["none", "static", "runtime_structured"]
    first, second = (compared["none", "monolithic", name] for name in ("runtime_structured", "static"))
    assert corrected is not None and len(compared) == 9 and len(control) == 24
    assert not missing(
        "results/humaneval",
        f"`runtime_structured` solves {control['runtime_structured'].sum()} of 24, `static` {control['static'].sum()}.",
        f"p = {compared['none', 'static', 'runtime_structured']:.3f}, and {corrected:.3f} after Holm's correction for nine "
        "comparisons",
        f"`monolithic` solves {control['monolithic'].sum()}.",
        "`monolithic` differs beyond chance neither from `runtime_structured` nor from `static`",
        f"(p = {first:.2f} and {second:.2f}, uncorrected)",
    )


def test_what_is_said_of_further_faults_on_humaneval_is_what_they_cost_and_lost() -> None:
    run = run_named("humaneval_faults")
    control, struck = controls(run), solved(run)

    def lost(plan: str) -> list[tuple[int, int]]:
        return [(int((control[a] & ~struck[plan, a]).sum()), int((struck[plan, a] & ~control[a]).sum())) for a in ARMS]

    assert lost("truncated") == [(5, 0), (2, 0), (2, 0)] and lost("rate_limit") == [(0, 0)] * 3
    assert lost("discarded")[2] == (2, 1) and control.all(axis=1).sum() == 4 and len(control) == 20
    first = run_named("humaneval").recoveries.query("plan == 'missing_field' and effective > 0").groupby("architecture")
    assert first["price_tokens"].count().to_dict() == {"monolithic": 10, "runtime_structured": 18, "static": 18}
    assert not missing(
        "results/humaneval",
        f"p = {exact(control['monolithic'], struck['truncated', 'monolithic'])} by",
    )


def test_what_is_said_of_two_systems_on_incidents_is_how_their_repairs_and_trials_ended() -> None:
    run = run_named("incidents_systems")
    repairs = run.calls.query("plan == 'missing_field' and subtask == 'cause' and attempt == 2").groupby("architecture")[
        "verdict"
    ]
    with_reason, bare = (repairs.get_group(name) for name in ("runtime_structured", "langgraph_retry"))
    assert (with_reason.eq("accepted").sum(), len(with_reason), bare.eq("accepted").sum(), len(bare)) == (13, 15, 0, 16)
    once = controls(run)
    outcomes = run.trials.pivot(index="instance", columns=["plan", "architecture"], values="outcome")
    report = run.calls.query("architecture == 'autogen_graph' and subtask == 'report'")
    came = run.trials[run.trials["trial"].isin(report["trial"])]
    alike = int((once["langgraph_retry"] & once["runtime_structured"]).sum())
    assert not missing(
        "results/incidents",
        f"had {with_reason.eq('accepted').sum()} of {len(with_reason)} first repairs of the root cause accepted",
        f"`langgraph_retry` {bare.eq('accepted').sum()} of {len(bare)}",
        f"{came['outcome'].eq('gave_up').sum()} of {len(came)} trials "
        "that reached the subtask `report` gave up at this subtask.",
        f"{outcomes['none', 'autogen_graph'].eq('gave_up').sum()} of 20 gave up without any fault.",
        f"{once['langgraph_retry'].sum()} of 20 each, {alike} of them the same",
        "[{:.1%}, {:.1%}], `langgraph_retry`".format(*binomtest(13, 15).proportion_ci(method="wilson")),
        "0 of 16 [{:.1%}, {:.1%}]".format(*binomtest(0, 16).proportion_ci(method="wilson")),
    )


def test_what_is_said_of_the_framework_and_the_words_is_what_the_arms_took() -> None:
    run = run_named("fair_systems")
    tokens = run.trials.pivot(index=["plan", "instance"], columns="architecture", values="tokens")
    outcomes = run.trials.pivot(index=["plan", "instance"], columns="architecture", values="outcome")
    same, ours = "langgraph_retry_same_words", "runtime_structured"
    assert tokens[same].equals(tokens[ours]) and outcomes[same].equals(outcomes[ours])
    repairs = run.calls.query("plan == 'missing_field' and subtask == 'cause' and attempt == 2")
    accepted = repairs["verdict"].eq("accepted").groupby(repairs["architecture"]).agg(["sum", "size"])
    counted = {
        name: tuple(accepted.loc[name]) for name in (same, "langgraph_retry", "langgraph_retry_policy", "dspy_by_module")
    }
    assert counted == {same: (2, 2), "langgraph_retry": (0, 2), "langgraph_retry_policy": (3, 3), "dspy_by_module": (2, 2)}
    both = (
        run.calls.query("plan == 'missing_field' and subtask == 'cause' and attempt == 2")
        .groupby("architecture")["instance"]
        .agg(set)
    )
    assert both[same] == both["langgraph_retry"]
    plain, struck = (run.trials.loc[run.trials["plan"].eq(plan), "outcome"].eq("solved") for plan in ("none", "missing_field"))

    def interval_of(column: str, plan: str, name: str) -> str:
        measure: Measure = "first_round" if column.startswith("first_round") else "spent"
        of_arm = run.trials["plan"].eq(plan) & run.trials["architecture"].eq(name)
        return told(amount_of(run.trials.loc[of_arm, column].dropna(), measure))

    assert not missing(
        "results/systems",
        f"asked for {(~run.calls['reused']).sum()} of the {len(run.calls)} calls",
        f"in each of the {len(tokens)} trials",
        f"on {run.trials['instance'].nunique()} incidents, without a fault and with a missing field",
        f"In {len(both[same])} incidents the fault changed an output of both LangGraph arms",
        f"at {interval_of('first_round_tokens', 'missing_field', 'langgraph_retry_policy')} tokens a repair",
        f"{interval_of('first_pass_tokens', 'none', 'autogen_team')} tokens before any failure",
        f"against {interval_of('first_pass_tokens', 'none', ours)} for `runtime_structured`",
        f"and {interval_of('first_round_tokens', 'missing_field', 'autogen_team')} for a repair",
        f"{plain.sum()} of {len(plain)} trials was solved without a fault, and {struck.sum()} of {len(struck)} with it",
    )


def test_what_is_said_of_the_smaller_model_on_incidents_is_how_its_trials_ended() -> None:
    run = run_named("incidents", "0.5b")
    replies = run.replies.drop_duplicates(["instance", "subtask", "digest"])
    content = replies["kind"].eq("content")
    unfit = replies["kind"].isin(["cut_off", "form", "missing_field", "vocabulary"])
    assert not missing(
        "results/paper",
        f"{run.trials['outcome'].eq('solved').sum()} of {len(run.trials)} trials without a fault, and gives up in "
        f"{run.trials['outcome'].eq('gave_up').sum()}. Of the {len(replies)} distinct outputs of the 0.5B model "
        f"{unfit.sum()} do not",
        f"and {content.sum()} more are rejected for what they say",
    )


def test_what_the_smaller_model_took_more_is_the_paired_difference_of_its_trials() -> None:
    large, small = (
        run.trials[run.trials["plan"].eq("paper")].set_index(["architecture", "scenario", "repetition"]).sort_index()
        for run in (run_named("paper"), run_named("paper", "0.5b"))
    )

    def more(name: str, pack: str) -> str:
        mean = mean_of((small["tokens"] - large["tokens"]).loc[name, pack])
        assert mean.n == 10
        return told(mean)

    rows = [" | ".join(more(name, pack) for pack in ("multi_file_debugging", "k8s_oomkill")) for name in ARMS]
    assert not missing("results/paper", *(f"| `{name}` | {row} |" for name, row in zip(ARMS, rows, strict=True)))


def test_what_is_said_of_break_even_and_of_first_passes_is_what_its_table_holds() -> None:
    firsts = {
        (row["Scenario"], row["Architecture"], row["Against"]): row
        for row in pd.read_csv(FOLDER / "paper-qwen2.5-coder-1.5b-instruct" / "tables" / "break_even.csv").to_dict("records")
    }
    from_on = list[str]()
    for scenario in ("multi_file_debugging", "k8s_oomkill"):
        row = firsts[scenario, "runtime_structured", "monolithic"]
        from_on.append(
            "{:.2f} [{:.2f}, {:.2f}]".format(*(float(row[name]) for name in ("Cheaper from failures a trial", "Low", "High")))
        )
    assert not missing(
        "results/paper",
        "from {} and {} failures a trial on".format(*from_on),
    )


@pytest.mark.parametrize(
    ("name", "beside", "more"),
    [
        ("langgraph_retry", "runtime_structured", "-318 [-1,156, 521]† and 1 [-941, 944]†"),
        ("mellea_code", "runtime_structured", "-79 [-267, 108]† and -83 [-1,594, 1,428]†"),
        ("mellea", "mellea_code", "2,426 [1,557, 3,294]† and 6,191 [2,232, 10,150]†"),
        ("dspy", "runtime_structured", "12,418 [11,666, 13,170]† and 3,523 [-130, 7,175]†"),
        ("reflexion", "runtime_structured", "5,366 [2,038, 8,694]† and 8,140 [5,519, 10,760]†"),
    ],
)
def test_a_frameworks_further_tokens_are_the_paired_difference_of_its_trials(name: str, beside: str, more: str) -> None:
    tokens = run_named("systems").trials.pivot(index=["scenario", "repetition"], columns="architecture", values="tokens")
    assert tokens["langgraph"].eq(tokens["static"]).all()
    means = [mean_of((tokens[name] - tokens[beside]).loc[pack]) for pack in ("multi_file_debugging", "k8s_oomkill")]
    assert " and ".join(map(told, means)) == more
    assert not missing("results/systems", more)


def test_what_is_said_of_mellea_and_of_all_systems_is_how_their_trials_ended() -> None:
    run = run_named("systems")
    ended = run.trials["outcome"].value_counts()
    calls = run.calls[run.calls["architecture"].eq("mellea")]
    assert calls.groupby("trial").size().eq(12).all() and calls.groupby("trial")["subtask"].nunique().eq(1).all()
    judges = int(calls["cause"].eq("judge").sum())
    by_code = run.trials[run.trials["architecture"].eq("mellea_code")]["outcome"].eq("gave_up")
    by_words = run.trials[run.trials["architecture"].eq("mellea")]["outcome"].eq("gave_up")
    assert not missing(
        "results/systems",
        f"None of the {len(run.trials)} trials was solved, {ended['wrong']} were wrong, {ended['gave_up']} gave up.",
        f"{by_words.sum()} of {len(by_words)} trials of `mellea` gave up at their first subtask, after 12 calls, "
        f"{judges // len(by_words)} of them judges'",
        f"where {by_code.sum()} of {len(by_code)} gave up",
    )


def test_each_systems_framework_time_is_above_that_of_ours() -> None:
    trials = run_named("systems").trials
    times = (trials["framework_seconds"] / trials["calls"]).groupby([trials["scenario"], trials["architecture"]]).mean()
    for _, of_pack in times.groupby("scenario"):
        by_name = of_pack.droplevel("scenario")
        assert by_name.drop(ARMS).min() > by_name[ARMS].max() and len(by_name.drop(ARMS)) == 7


def test_mellea_takes_the_share_that_is_told_and_the_papers_framework_seconds_are_its_tables() -> None:
    run = run_named("systems")
    trials = run.trials[run.trials["architecture"].isin(["mellea", "mellea_code"])]
    sums = trials.groupby(["scenario", "architecture"], observed=True)[["framework_seconds", "latency_seconds"]].sum()
    shares = sorted(100 * sums["framework_seconds"] / sums["latency_seconds"])
    report = (FOLDER / run.name / "report.md").read_text(encoding="utf-8")
    assert "| 18.0% |" in report
    assert not missing(
        "results/systems",
        f"{shares[0]:.4f}% to {shares[-1]:.4f}% of an arm's seconds",
        "The paper reports 18.0%",
    )


def test_what_is_said_of_how_often_the_smaller_model_gave_up_is_what_its_trials_did() -> None:
    outcomes = run_named("paper", "0.5b").trials["outcome"]
    assert not missing("results/paper", f"gave up in {outcomes.eq('gave_up').sum()} of the {len(outcomes)} trials")


def judged(model: str, bank: str = "judgment_bank") -> dict[str, dict[str, str]]:
    """The table of single judgments in a committed report, by judgment."""
    text = (FOLDER / f"{bank}-qwen2.5-coder-{model}-instruct" / "report.md").read_text(encoding="utf-8")
    lines = [line for line in text.split('id="study-judgments"')[1].splitlines() if line.startswith("| ")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if len(line.split("|")) == 9]
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_what_is_said_of_single_judgments_is_what_their_tables_count() -> None:
    larger, smaller = judged("1.5b"), judged("0.5b")
    risk = larger["risk"]
    wrong = int(risk["Caught"]) + int(risk["Passed"])
    assert not any(int(row["Not of its form"]) or int(row["Beyond all right"]) for row in larger.values())
    assert larger["offer"]["Passed"] == "0"
    assert not missing(
        "results/incidents",
        f"{risk['Passed']} of the {wrong} wrong risk scores break no rule.",
        *(f"in {row['Right'].partition('= ')[2]}" for name, row in smaller.items() if name in ("risk", "close")),
    )


def test_what_is_said_of_the_larger_models_judgments_in_a_world_is_what_its_tables_count() -> None:
    folder = ROOT / "reports" / "renewal_bank-errs_as_qwen" / "tables"
    ended, damage = (pd.read_csv(folder / f"{name}.csv").set_index("Architecture") for name in ("outcomes", "world_damage"))
    remedied = ended.index[ended.index.str.endswith("_remedied")]
    assert len(ended) == 18 and ended["Trials"].eq(100).all()
    assert ended.loc[remedied, "Solved"].eq(43).all() and ended.loc[remedied, "Wrong"].eq(57).all()
    assert damage.loc[remedied, "Lost"].eq(101).all() and damage.loc[remedied, "Unauthorised"].eq(0).all()
    assert damage.loc[["bare_agent", "scatter_gather_saga", "state_machine"], "Unauthorised"].eq(60).all()
    assert ended.loc[["bare_agent", "scatter_gather_saga", "state_machine"], "Solved"].eq(17).all()
    assert (damage.loc["event_driven", "Doubled"], ended.loc["event_driven", "Solved"]) == (342, 5)
    assert not missing(
        "results/incidents",
        "had 60 unauthorised effects in 100 trials and solved 17.0% [6.5%, 37.6%].",
        "With remedies each pattern had no unauthorised effect, left out 101 effects that were due,",
        "and solved 43.0% [25.1%, 62.9%].",
        "342 effects twice, since the pack sends two notices; 5 of 100 are solved",
        "in all 57 wrong trials with remedies every check passed",
    )
    for model in ("1.5b", "0.5b"):
        calls = run_named("judgment_bank", model).calls
        assert calls["failure"].eq("").sum() == 1_160 and calls["instance"].nunique() == 20
    assert run_named("support_desk_bank").calls["failure"].eq("").sum() == 300
    request, decision = (judged("1.5b", "support_desk_bank")[judgment] for judgment in ("request", "decision"))
    wrong = int(decision["Caught"]) + int(decision["Passed"])
    assert not missing(
        "results/incidents",
        f"the 1.5B model reads the request right in {request['Right']}, and decides right in {decision['Right']}.",
        f"rejects {decision['Caught']} of the {wrong} wrong decisions, and {decision['Passed']} pass",
    )


def test_what_is_said_of_models_that_were_not_tried_is_what_the_recorded_models_did() -> None:
    paper = [run_named("paper", model).trials["outcome"] for model in ("1.5b", "0.5b")]
    solved = sum(int(column.eq("solved").sum()) for column in paper)
    mellea = run_named("systems").trials.query("architecture == 'mellea'")["outcome"]
    renewals = run_named("scorecard_live").trials.query("plan == 'none'")["outcome"]
    assert not missing(
        "limits",
        f"The recorded models solve {solved} of {sum(map(len, paper))} trials.",
        f"With the 1.5B model [{mellea.eq('gave_up').sum()} of {len(mellea)} trials gave up](results/systems.md).",
        f"The 1.5B model finished none of {len(renewals)} renewals without a fault",
    )
    assert not renewals.eq("solved").any()
