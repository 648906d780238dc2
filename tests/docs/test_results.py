"""What the results say, in short and by topic, is what the recorded trials give."""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from scipy.stats import binomtest
from told import told

import bench
from bench.read.analysis.claim import DirectionClaim
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_ROUND
from bench.read.analysis.published import load_published
from bench.read.analysis.results import Results
from bench.read.analysis.statistics import is_narrow, mean_of
from bench.read.claims.judging import claims_sentence, judge_paper
from bench.read.claims.retries import COMPARED, paired_tables
from bench.read.claims.verdicts import Judgement, counts, judge_all
from bench.read.render.cells import BoundedNumber, text_of
from bench.record.reading import read_responses

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "docs" / "results.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]
README, RESULTS = (
    " ".join(word for path in paths for word in path.read_text(encoding="utf-8").split())
    for paths in ([ROOT / "README.md"], DOCUMENTS)
)
PAPER = " ".join((ROOT / "docs" / "results" / "paper.md").read_text(encoding="utf-8").split())
INCIDENTS = "incidents-qwen2.5-coder-1.5b-instruct"
ARCHITECTURES = ("monolithic", "static", "runtime_structured")


@cache
def reference_run() -> Run:
    return bench.load_run(ROOT / "results" / "paper-qwen2.5-coder-1.5b-instruct")


def more_retry_tokens(scenario: str, architecture: str) -> dict[str, str]:
    """How many more than `runtime_structured` it spent under the fault, and what the fault added of these, as text."""
    trials = reference_run().trials
    tokens = trials[trials["scenario"] == scenario].pivot(
        index="repetition", columns=["plan", "architecture"], values="retry_tokens"
    )
    under, without = (tokens[plan, architecture] - tokens[plan, "runtime_structured"] for plan in ("paper", "none"))
    means = {"under": mean_of(under, "retry"), "added": mean_of(under - without, "retry")}
    return {name: told(mean) for name, mean in means.items()}


def test_the_results_say_how_much_of_the_retry_difference_is_the_faults() -> None:
    more = {
        (scenario, name): more_retry_tokens(scenario, name)
        for scenario in ("multi_file_debugging", "k8s_oomkill")
        for name in ("monolithic", "static")
    }
    of_fault = more.pop(("multi_file_debugging", "static"))
    assert f"{of_fault['added']} of {of_fault['under']} (10 pairs)" in RESULTS
    assert all("[-" in each["added"] and "[-" not in each["under"] for each in more.values())


def test_the_results_say_what_a_first_round_took_in_each_arm() -> None:
    rows = (ROOT / "reports" / "paper-qwen2.5-coder-1.5b-instruct" / "tables" / "first_round.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows.splitlines() if row.startswith("| ")][2:]
    took = {(row[0], row[1]): re.sub(r" ± \d+", "", row[7]) for row in cells if row[1] in ARCHITECTURES}
    assert len(took) == 6 and {row[6] for row in cells} == {"9", "10"}
    [whole] = [row for row in cells if row[:2] == ["k8s_oomkill", "monolithic"]]
    assert whole[3] == "0" and "On `k8s_oomkill` 0 of the nine rounds of `monolithic` were caused by the fault alone" in RESULTS
    for scenario in ("multi_file_debugging", "k8s_oomkill"):
        assert f"| {scenario} | {' | '.join(took[scenario, name] for name in ARCHITECTURES)} |" in RESULTS


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


def _lost_and_gained(plan: str) -> list[list[str]]:
    return [row for name, *row in cells("recovery", "Fault plan", "By the control alone", "Under faults alone") if name == plan]


def test_what_is_said_of_recovering_to_a_right_answer_stands_in_the_committed_report() -> None:
    control = [solved for plan, solved in cells("outcomes", "Fault plan", "Solved") if plan == "none"]
    columns = ("Fault plan", "Net change", "Recovered, of what all controls solve", "Silently wrong after repair")
    cells_by_plan: dict[str, list[list[str]]] = {"missing_field": [], "wrong_value": []}
    for plan, *row in cells("recovery", *columns):
        cells_by_plan[plan].append([cell.partition(" = ")[0] for cell in row])
    changes, again, repaired = zip(*cells_by_plan["missing_field"], strict=True)
    assert "solves {} (`monolithic`), {} (`static`) and {} (`runtime_structured`)".format(*control) in RESULTS
    assert "solved {}, {} and {} of the nine incidents again".format(*again) in RESULTS
    of_each = "{} (`monolithic`), {} (`static`) and {} (`runtime_structured`)"
    assert f"that each architecture solves changed by {of_each.format(*changes)}" in RESULTS
    assert f"After a repair {of_each.format(*repaired)} answers that had been right are wrong" in RESULTS
    changes, again, _ = zip(*cells_by_plan["wrong_value"], strict=True)
    assert (
        "the share of the 40 incidents that each of the three architectures solves changed by {}, {} and {}".format(*changes)
        in RESULTS
    )
    still_solved = "Of the nine incidents that all three architectures solve without a failure, {}, {} and {} are still solved"
    assert still_solved.format(*again) in RESULTS
    assert "solved {} (`monolithic`), {} (`static`) and {} (`runtime_structured`)".format(*control) in README
    differences = ("Fault plan", "A", "B", "By A alone", "By B alone")
    [(by_one, by_other)] = [
        row[3:] for row in cells("solved_differences", *differences) if row[:3] == ["none", "monolithic", "runtime_structured"]
    ]
    assert f"p = {binomtest(int(by_one), int(by_one) + int(by_other)).pvalue:.2f}. " in RESULTS
    lost = [int(alone) - int(gained) for alone, gained in _lost_and_gained("wrong_value")]
    assert "{}, {} and {} fewer of 40".format(*lost) in README
    prices = [
        price.partition(" ± ") for plan, price in cells("price", "Fault plan", "Price, tokens") if plan == "missing_field"
    ]
    for mean, _, rest in prices:
        [(low, high, mark)] = re.findall(r"\[(\d+), (\d+)\](†?)", rest)
        assert f"{int(mean):,} [{int(low):,}, {int(high):,}]{mark}" in RESULTS


def test_what_a_pass_takes_more_is_told_of_the_plan_without_faults() -> None:
    columns = ("Fault plan", "Difference", "Measure", "N", "Mean")
    [(n, mean)] = [
        rest
        for plan, difference, measure, *rest in cells("failure_differences", *columns)
        if (plan, difference, measure) == ("none", "runtime_structured − monolithic", "First pass, tokens")
    ]
    value, low, high, mark = re.fullmatch(r"(\d+) ± \d+ \[(\d+), (\d+)\](†?)", mean).groups()  # type: ignore[union-attr]
    assert f"takes {value} [{low}, {high}]{mark} tokens more than `monolithic` ({n} pairs)" in RESULTS


def test_two_looks_at_the_incidents_are_told_as_two_with_their_test() -> None:
    counted = [
        [re.match(r"(\d+)/(\d+)", cell).groups() for cell in row[:2]] + [row[2]]  # type: ignore[union-attr]
        for row in cells("looks", "Solved, taken over", "Solved, asked later", "p of the two looks")
    ]
    first, later = ([sum(int(row[look][place]) for row in counted) for place in (0, 1)] for look in (0, 1))
    sentence = "{} of {} trials on the first twenty incidents, and {} of {} on the twenty".format(*first, *later)
    assert sentence in RESULTS and f"(p = {counted[0][2]}" in RESULTS


def test_how_many_replies_no_committed_run_was_the_first_to_ask_for_is_counted() -> None:
    asked: dict[bool, set[tuple[object, ...]]] = {True: set(), False: set()}
    for archive in sorted((ROOT / "results").glob("*.zip")):
        for response in read_responses(archive.with_suffix("")):
            if response.reply is not None and response.model != "simulated":
                asked[response.reused].add((response.model, response.messages, response.reply))
    different, elsewhere = asked[True] | asked[False], asked[True] - asked[False]
    assert f"have {len(different):,} different replies" in RESULTS
    assert f"not committed first requested {len(elsewhere):,} of these replies" in RESULTS


def test_how_many_calls_a_recording_asked_is_what_it_did_not_take_over() -> None:
    for name, planned in {
        "chaos-qwen2.5-coder-1.5b": 250,
        "answer_format-qwen2.5-coder-1.5b": 400,
        "incidents-qwen2.5-coder-0.5b": 280,
    }.items():
        asked = sum(not response.reused for response in read_responses(ROOT / "results" / f"{name}-instruct"))
        assert f"({asked}, planned {planned})" in RESULTS, name


def rows(report: str, table: str) -> list[dict[str, str]]:
    header, *body = table_of(f"{report}-qwen2.5-coder-1.5b-instruct", table)
    return [dict(zip(header, row, strict=True)) for row in body]


def test_what_is_wrong_after_a_repair_under_single_faults_is_what_the_table_counts() -> None:
    body = [row for row in rows("chaos", "recovery") if "persistent" not in row["Fault plan"]]
    silent, repaired = (
        [row[column].partition(" = ")[0].split("/") for row in body if "n/a" not in row[column]]
        for column in ("Silent corruption", "Silently wrong after repair")
    )
    trials, wrong = sum(int(n) for _, n in silent), sum(int(k) for k, _ in repaired)
    assert all(k == "0" for k, _ in silent)
    assert f"In {trials} trials a good reply was cut off" in RESULTS and f"Yet in {wrong} of these trials" in RESULTS


def test_a_published_share_of_the_same_problems_is_told_by_how_many_differ() -> None:
    [row] = rows("humaneval_one_call", "study-humaneval")
    theirs, least = re.search(r", (\d+) of the same 164: at least (\d+) differ", row["Published"]).groups()  # type: ignore[union-attr]
    assert least == "10" and f"{theirs} of the same 164 problems" in RESULTS
    assert f"publish that the unquantized model solves {theirs} of the same problems" in RESULTS


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
    return {judgement.claim.id: judgement for judgement in judge_all(reference_run(), load_published())}


def test_the_results_say_how_the_directions_and_ratios_were_judged() -> None:
    by_verdict = counts(list(judgements().values()))
    sides = Counter(judgement.in_words for judgement in judgements().values() if judgement.verdict == "decided by sizes")
    sentence = (
        f"of {len(judgements())} claims of directions and ratios {by_verdict['decided by sizes']} are decided by sizes "
        f"({sides['decided by sizes, as claimed']} as claimed, {sides['decided by sizes, contrary']} contrary), "
        f"{by_verdict['counterexample found']} fall by a counterexample, {by_verdict['inconclusive']} is inconclusive, "
        f"{by_verdict['cannot be decided']} cannot be decided with so few pairs, and "
        f"{by_verdict['not measured']} were not measured"
    )
    assert sentence in RESULTS
    assert not any(by_verdict[verdict] for verdict in ("holds", "holds, size differs", "contradicted"))


@pytest.mark.parametrize(
    ("claim", "verdict", "tested"),
    [
        *((f"retry.rca.runtime-below-{other}", "decided by sizes, as claimed", "holds") for other in ("monolithic", "static")),
        ("retry.rca.static-above-monolithic", "decided by sizes, contrary", "contradicted"),
        *(
            (f"tokens.{pack}.runtime-above-monolithic", f"cannot be decided with {n} pairs (floor)", "cannot be decided")
            for pack, n in (("debugging", 8), ("rca", 4))
        ),
    ],
)
def test_the_results_give_each_direction_of_tokens_as_it_was_judged(claim: str, verdict: str, tested: str) -> None:
    judgement = judgements()[claim]
    assert (judgement.in_words, judgement.tested) == (verdict, tested) and judgement.measured
    bounds = judgement.measured.value, judgement.measured.low, judgement.measured.high
    value, low, high = (f"{bound:,.0f}" for bound in bounds if bound is not None)
    mark = "†" if is_narrow(judgement.measured.basis) else ""
    turned = f"{value.removeprefix('-')} [{high.removeprefix('-')}, {low.removeprefix('-')}]{mark}"  # "less" says the sign
    assert f"{value} [{low}, {high}]{mark}" in RESULTS or turned in RESULTS.replace("[-", "[")


def test_the_results_judge_no_claim_of_the_paper_on_another_failure() -> None:
    about = {name: judgement for name, judgement in judgements().items() if name.startswith("retry.debugging.")}
    assert {judgement.verdict for judgement in about.values()} == {"not measured"} and len(about) == 5
    run = bench.load_run(ROOT / "results" / "validation-qwen2.5-coder-1.5b-instruct")
    at_its_own = [each for each in judge_all(run, load_published()) if each.claim.id in about]
    verdicts = Counter(judgement.in_words for judgement in at_its_own)
    assert verdicts == {"decided by sizes, as claimed": 3, "decided by sizes, contrary": 2}
    pairs = sorted({judgement.measured.n for judgement in at_its_own if judgement.measured})
    sentence = "the five claims on a retry are decided by sizes, 3 as claimed and 2 contrary ({}, {} and {} pairs)"
    assert sentence.format(*pairs) in RESULTS


FINDING = {
    ("validation-qwen2.5-coder-1.5b-instruct", "multi_file_debugging"): {
        ("runtime_structured", "monolithic"): "decided by sizes, as claimed",
        ("runtime_structured", "static"): "decided by sizes, as claimed",
        ("static", "monolithic"): "decided by sizes, contrary",
    },
    ("papers_event-simulated", "multi_file_debugging:paper_sized"): dict.fromkeys(COMPARED, "decided by sizes, as claimed"),
    ("papers_event-simulated", "k8s_oomkill:paper_sized"): dict.fromkeys(COMPARED, "decided by sizes, as claimed"),
    ("paper-qwen2.5-coder-1.5b-instruct", "k8s_oomkill"): {
        ("runtime_structured", "monolithic"): "decided by sizes, as claimed",
        ("runtime_structured", "static"): "decided by sizes, as claimed",
        ("static", "monolithic"): "decided by sizes, contrary",
    },
}
"""(run, scenario) -> the verdict on each comparison of two retries, as the paper counts."""


@pytest.mark.parametrize(("run", "scenario"), FINDING)
def test_what_is_said_of_the_papers_retries_stands_in_its_run_with_its_verdict(run: str, scenario: str) -> None:
    results = Results(bench.load_run(ROOT / "results" / run))
    [cell] = [
        each
        for each in paired_tables(results.arms, load_published())
        if each.condition.scenario == scenario and not each.other_failure
    ]
    judged = {
        tuple(sorted(each.claim.pair)): each
        for each in results.once(judge_paper)
        if isinstance(each.claim, DirectionClaim) and each.claim.scenario == scenario and each.whole
    }
    for pair, verdict in FINDING[run, scenario].items():
        ratio = cell.ratio(*pair)
        assert ratio and ratio.pairs and judged[tuple(sorted(pair))].in_words == verdict
        assert text_of(BoundedNumber.of(ratio, 1, percent=True)) in PAPER, pair
        assert f"{cell.papers_ratio(*pair):.1%}" in PAPER, pair


def test_the_readme_says_the_finding_of_both_counts_with_the_marks() -> None:
    sized, recorded = (
        next(each for each in paired_tables(results.arms, load_published()) if each.condition.scenario.startswith("multi_file"))
        for run in ("papers_event-simulated", "validation-qwen2.5-coder-1.5b-instruct")
        for results in [Results(bench.load_run(ROOT / "results" / run))]
    )
    ratios = [sized.ratio(*pair) for pair in COMPARED]
    ratios += [cell.ratio("runtime_structured", measure=FIRST_ROUND.tokens) for cell in (sized, recorded)]
    ratios += [recorded.ratio(*pair) for pair in COMPARED[:2]]
    shares = [text_of(BoundedNumber.of(ratio, 1, percent=True)) for ratio in ratios if ratio]
    assert len(shares) == 7
    for text in (README, PAPER):
        assert [number for number in shares if number not in text] == []
    selective, static = (recorded.struck[name] for name in ("runtime_structured", "static"))
    more = selective.minus(static, FIRST_ROUND.tokens.name).difference
    for text in (README, PAPER):
        assert f"{told(more)} tokens more ({more.n} pairs)" in text


def test_the_results_say_what_the_reason_does_and_what_the_early_look() -> None:
    run = bench.load_run(ROOT / "results" / "untold-qwen2.5-coder-1.5b-instruct")
    solved = run.trials.assign(solved=run.trials["outcome"].eq("solved")).pivot(
        index="instance", columns=["plan", "architecture"], values="solved"
    )
    for plan, both, told_only, untold_only in (("none", 7, 7, 0), ("missing_field", 4, 7, 1)):
        with_reason, untold = solved[plan, "runtime_structured"], solved[plan, "untold"]
        assert len(solved) == 20 and (untold == solved[plan, "static"]).all()
        assert [sum(with_reason & untold), sum(with_reason & ~untold), sum(untold & ~with_reason)] == [
            both,
            told_only,
            untold_only,
        ]
        p = binomtest(told_only, told_only + untold_only).pvalue
        assert f"p = {p:.3f} of {told_only + untold_only}" in RESULTS
    tokens = run.trials[run.trials["plan"] == "none"].pivot(index="instance", columns="architecture", values="tokens")
    for other in ("static", "runtime_structured"):
        less = told(mean_of(tokens[other] - tokens["untold"]))
        assert f"{less} less than `{other}`" in RESULTS.replace(" tokens less", " less")
    reused = run.calls["reused"]
    assert f"which answered {reused.sum()} of the {len(reused)} calls." in RESULTS


def test_the_results_say_that_the_root_cause_alone_by_the_larger_model_solves_nothing() -> None:
    run = bench.load_run(ROOT / "results" / "substitution_incidents-qwen2.5-coder")
    trials = run.trials

    def ended(how: str, model: str, architecture: str) -> int:
        arm = trials[trials["model"].eq(model) & trials["architecture"].eq(architecture)]
        assert len(arm) == 20
        return int(arm["outcome"].eq(how).sum())

    arms = ("static", "runtime_structured")
    assert not any(ended("solved", model, architecture) for model in ("small", "mixed") for architecture in arms)
    big = [ended("solved", "big", architecture) for architecture in arms]
    assert f"the 1.5B model solves {big[0]} by itself under `static` and {big[1]} under `runtime_structured`" in RESULTS


def test_the_results_say_how_often_verdicts_are_false_and_how_often_they_are_reached_again() -> None:
    with (ROOT / "reports" / "calibration" / "verdicts.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    alone = max(float(row["Upper limit"].rstrip("%")) for row in rows if row["Claim"] != "any of them")
    at_once = max(float(row["Upper limit"].rstrip("%")) for row in rows if row["Claim"] == "any of them")
    assert f"{alone}% for the worst claim, and {at_once}% for at least one of all claims" in RESULTS
    decided = [row for row in rows if "1.5b" in row["Run"] and row["Verdict"] not in ("inconclusive", "cannot be decided", "–")]
    reached = [float(row["Reached, pairs drawn anew"]) for row in decided]
    assert f"in {min(reached):.0%} to {max(reached):.0%} of 500 samples" in RESULTS


SHORT = " ".join(DOCUMENTS[0].read_text(encoding="utf-8").split())


def solved(run: str) -> dict[str, str]:
    """k of n trials of a committed run without faults that were solved, by architecture."""
    trials = bench.load_run(ROOT / "results" / run).trials
    by_architecture = trials[trials["plan"] == "none"].groupby("architecture", sort=False)
    return {str(name): f"{(trials['outcome'] == 'solved').sum()} of {len(trials)}" for name, trials in by_architecture}


def test_the_short_version_is_read_in_minutes_and_its_counts_are_those_of_the_runs() -> None:
    assert len(DOCUMENTS[0].read_text(encoding="utf-8").split()) < 1500
    outcomes = reference_run().trials["outcome"]
    assert f"**{(outcomes == 'solved').sum()} of {len(outcomes)} trials**" in SHORT
    faults = reference_run().faults
    impacts = Counter(faults.loc[faults["delivered"], "impact"])
    masked = f"Of these faults {impacts['masked']} changed a reply that would have been rejected anyway"
    sentence = (
        f"{impacts.total()} faults were delivered. {masked}, so only {impacts['effective']} faults show what a failure costs"
    )
    assert sentence in SHORT
    steps = {name: share.split()[0] for name, share in solved("humaneval-qwen2.5-coder-1.5b-instruct").items()}
    sentence = "`monolithic` solves {monolithic}, `static` {static} and `runtime_structured` {runtime_structured}"
    assert sentence.format(**steps) in SHORT
    [one_call] = solved("humaneval_one_call-qwen2.5-coder-1.5b-instruct").values()
    assert f"One call solves {one_call.replace('of', 'of all')} problems" in SHORT


def test_the_first_screen_of_the_papers_report_says_which_claims_sizes_alone_decide() -> None:
    run = bench.load_run(ROOT / "results" / "paper-qwen2.5-coder-1.5b-instruct")
    sentence = claims_sentence(Results(run))
    assert sentence.endswith(
        "4 of 14 claims come out as the paper says (4 of these by the sizes of calls alone), 6 against it, 4 open. "
        "Of the 6 on a retry, 4 come out so over the whole round, and 0 against it."
    )
    sized = claims_sentence(Results(bench.load_run(ROOT / "results" / "papers_event-simulated")))
    assert sized.endswith("Of the 10 on a retry, 7 come out so over the whole round, and 2 against it.")
