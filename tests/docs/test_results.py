"""What the results say of the reference run's faults is what its recorded trials give."""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import bench
from bench.analysis.frames import Run
from bench.analysis.statistics import mean_of
from bench.studies.claims.published import load_published
from bench.studies.claims.verdicts import Judgement, counts, judge_all, structural

ROOT = Path(__file__).parents[2]
README, RESULTS = (" ".join((ROOT / name).read_text(encoding="utf-8").split()) for name in ("README.md", "docs/results.md"))
INCIDENTS = "incidents-qwen2.5-coder-1.5b-instruct"
ARCHITECTURES = ("monolithic", "static", "runtime_structured")


@cache
def reference_run() -> Run:
    return bench.load_run(ROOT / "results" / "paper-qwen2.5-coder-1.5b-instruct")


def more_retry_tokens(scenario: str, architecture: str) -> dict[str, str]:
    """How many more than `runtime_structured` it spent under the fault and without; and what the fault added, as text."""
    trials = reference_run().trials
    tokens = trials[trials["scenario"] == scenario].pivot(
        index="repetition", columns=["plan", "architecture"], values="retry_tokens"
    )
    under, without = (tokens[plan, architecture] - tokens[plan, "runtime_structured"] for plan in ("paper", "none"))
    means = {"under": mean_of(under), "without": mean_of(without), "added": mean_of(under - without)}
    return {name: f"{mean.mean:,.0f} [{mean.low:,.0f}, {mean.high:,.0f}]" for name, mean in means.items()}


@pytest.mark.parametrize("scenario", ["multi_file_debugging", "k8s_oomkill"])
@pytest.mark.parametrize("architecture", ["monolithic", "static"])
def test_the_results_say_how_much_of_the_retry_difference_is_the_faults(scenario: str, architecture: str) -> None:
    said = more_retry_tokens(scenario, architecture)
    assert said["added"] in RESULTS and said["under"] in RESULTS
    if scenario == "multi_file_debugging":
        assert said["without"] in RESULTS


def test_the_results_say_how_many_faults_were_effective_in_each_arm() -> None:
    faults = reference_run().faults
    delivered = faults[faults["delivered"]]
    masked = (delivered["impact"] == "masked").sum()
    for scenario, own in delivered.groupby("scenario"):
        arms = [own[own["architecture"] == name]["impact"] for name in ARCHITECTURES]
        cells = " | ".join(f"{(impact == 'effective').sum()} of {len(impact)}" for impact in arms)
        assert f"| `{scenario}` | {cells} |" in RESULTS
    assert f"{masked} of the {len(delivered)} faults" in RESULTS


def table_of(report: str, table: str) -> list[list[str]]:
    """The cells of a table in a committed report, its header first."""
    page = (ROOT / "reports" / report / "report.md").read_text(encoding="utf-8")
    text = page.partition(f'<a id="{table}"></a>')[2].partition(f"<!-- end of {table} -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [rows[0], *rows[2:]]


def cells(table: str, *columns: str) -> list[list[str]]:
    """Of a committed table of the incidents run, these columns of each row."""
    header, *rows = table_of(INCIDENTS, table)
    return [[row[header.index(column)] for column in columns] for row in rows]


def test_what_is_said_of_recovering_to_a_right_answer_stands_in_the_committed_report() -> None:
    control = [solved for plan, solved in cells("outcomes", "Fault plan", "Solved") if plan == "none"]
    by_both: dict[str, list[str]] = {"missing_field": [], "wrong_value": []}
    silent: dict[str, list[str]] = {"missing_field": [], "wrong_value": []}
    columns = ("Fault plan", "Solved by both", "By the control alone", "Silent corruption")
    for plan, both, alone, corrupted in cells("recovery", *columns):
        by_both[plan].append(f"{both} of {int(both) + int(alone)}")
        silent[plan].append(corrupted.partition(" = ")[0].replace("/", " of "))
    prices = [
        price.partition(" ± ") for plan, price in cells("price", "Fault plan", "Price, tokens") if plan == "missing_field"
    ]
    assert "solves {} (`monolithic`), {} (`static`) and {} (`runtime_structured`)".format(*control) in RESULTS
    assert "{}, {} and {} of these are solved again".format(*by_both["missing_field"]) in RESULTS
    assert "{}, {} and {} answers are silently wrong".format(*silent["wrong_value"]) in RESULTS
    assert "solved {} (`monolithic`), {} (`static`) and {} (`runtime_structured`)".format(*control) in README
    assert "{}, {} and {} answers were wrong, and no check noticed the fault".format(*silent["wrong_value"]) in README
    for mean, _, rest in prices:
        interval = ", ".join(f"{int(bound):,}" for bound in re.findall(r"\[(\d+), (\d+)\]", rest)[0])
        assert f"{int(mean):,} [{interval}]" in RESULTS


def rows(report: str, table: str) -> list[dict[str, str]]:
    header, *found = table_of(f"{report}-qwen2.5-coder-1.5b-instruct", table)
    return [dict(zip(header, row, strict=True)) for row in found]


def test_what_is_said_of_agentchaos_is_how_its_claims_were_judged() -> None:
    found = rows("chaos", "claims_agentchaos")
    verdicts = Counter(row["Verdict"] for row in found)
    assert verdicts.keys() == {"holds", "inconclusive"}
    said = f"Of AgentChaos's {len(found)} directions {verdicts['holds']} hold, {verdicts['inconclusive']} are open."
    assert said in RESULTS
    for row in found:
        if "degrades" in row["Claim"]:
            loss, low, high = re.findall(r"-?[\d.]+", row["Ours"])
            assert f"{loss} points [{low}, {high}]" in RESULTS or f"{loss} [{low}, {high}]" in RESULTS


def test_what_is_said_of_the_answer_formats_is_what_the_study_counted() -> None:
    solved: Counter[tuple[str, str]] = Counter()
    for row in rows("answer_format", "study-answer_format"):
        solved[row["Scenario"], row["Format"]] += int(row["Solved"].partition("/")[0])
    code, words = ({name: solved[pack, name] for name in ("json", "schema", "fenced")} for pack in ("humaneval", "incidents"))
    assert f"the model solves nothing**: {code['json']} of 60" in RESULTS
    assert f"by a schema {code['schema']} of 60 are solved, by a code block {code['fenced']} of 60" in RESULTS
    assert f"{words['json']} of 60 are solved in words and {words['schema']} of 60 by a schema" in RESULTS


@cache
def judgements() -> dict[str, Judgement]:
    return {one.claim.id: one for one in structural(judge_all(reference_run(), load_published()))}


def test_the_results_say_how_the_directions_and_ratios_were_judged() -> None:
    found = counts(list(judgements().values()))
    said = (
        f"of {len(judgements())} claims of directions and ratios {found['holds']} hold, {found['holds, size differs']} hold in "
        f"another size, {found['contradicted']} are contradicted, {found['counterexample found']} fall by a counterexample, "
        f"{found['inconclusive']} are inconclusive, and {found['not measured']} were not measured"
    )
    assert said in RESULTS


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        *(
            (f"retry.{pack}.runtime-below-{other}", "holds")
            for pack in ("debugging", "rca")
            for other in ("monolithic", "static")
        ),
        ("retry.debugging.static-above-monolithic", "contradicted"),
        ("retry.rca.static-above-monolithic", "inconclusive"),
        *((f"tokens.{pack}.runtime-above-monolithic", "inconclusive") for pack in ("debugging", "rca")),
    ],
)
def test_the_results_give_each_direction_of_tokens_as_it_was_judged(claim: str, verdict: str) -> None:
    one = judgements()[claim]
    assert one.verdict == verdict and one.measured
    bounds = one.measured.value, one.measured.low, one.measured.high
    value, low, high = (f"{bound:,.0f}" for bound in bounds if bound is not None)
    turned = f"{value.removeprefix('-')} [{high.removeprefix('-')}, {low.removeprefix('-')}]"  # "less" says the sign
    assert f"{value} [{low}, {high}]" in RESULTS or turned in RESULTS.replace("[-", "[")


def test_the_results_say_how_often_verdicts_are_false_and_how_often_they_are_reached_again() -> None:
    with (ROOT / "reports" / "calibration" / "verdicts.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    alone = max(float(row["Upper limit"].rstrip("%")) for row in rows if row["Claim"] != "any of them")
    at_once = max(float(row["Upper limit"].rstrip("%")) for row in rows if row["Claim"] == "any of them")
    assert f"{alone}% for the worst claim, and {at_once}% for any of them at once" in RESULTS
    decided = [row for row in rows if "1.5b" in row["Run"] and row["Verdict"] not in ("inconclusive", "–")]
    reached = [float(row["Reached, pairs drawn anew"]) for row in decided]
    assert f"in {min(reached):.0%} to {max(reached):.0%} of 500 draws" in RESULTS
