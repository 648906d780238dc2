"""The page on boundaries says what its tables hold."""

from __future__ import annotations

import csv
import lzma
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "boundaries.md"
ROWS = ROOT / "reports" / "boundary_studies" / "rows"
PARAPHRASE = (ROOT / "reports" / "paraphrase-qwen2.5-coder-1.5b-instruct" / "report.md").read_text(encoding="utf-8")
INTERVAL = re.compile(r"(-?\d+\.\d{2,3}) \[(-?\d+\.\d{2,3}), (-?\d+\.\d{2,3})\]")


def test_each_number_with_an_interval_stands_in_a_table_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    known = {
        tuple(f"{float(row[f'{column}{end}']):.{digits}f}" for end in ("", " low", " high"))
        for digits in (2, 3)
        for name in re.findall(r"reports/boundary_studies/(tables/[\w-]+)\.md", page)
        for row in csv.DictReader(
            (ROOT / "reports" / "boundary_studies" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        )
        for column in row
        if row.get(f"{column} low")
    }
    known.update(INTERVAL.findall(PARAPHRASE))
    intervals = INTERVAL.findall(" ".join(page.split()))
    assert len(intervals) >= 10
    assert not [numbers for numbers in intervals if numbers not in known]


def test_the_verdicts_that_the_page_names_are_those_of_the_tables() -> None:
    tables = ROOT / "reports" / "boundary_studies" / "tables"
    verdicts, looks = (
        list(csv.DictReader((tables / f"study-{name}.csv").read_text(encoding="utf-8").splitlines()))
        for name in ("boundary-verdicts", "replay-divergence-looks")
    )
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    by_name = {(row["What is said"], row["Scenario"]): row["Verdict"] for row in verdicts}
    assert "| The commit matters | holds in `contract_renewal`, inconclusive in `incident_response` |" in page
    assert by_name["The commit matters", "contract_renewal"] == "holds"
    assert by_name["The commit matters", "incident_response"] == "inconclusive"
    refused = {name for (name, _), verdict in by_name.items() if verdict == "not comparable"}
    assert refused == {"A plain commit does more damage where the proposer errs less, in a trial"}
    assert (
        looks[0]["Judgment"] == "all"
        and looks[0]["Verdict"] == "inconclusive"
        and f"p = {float(looks[0]['p (Holm)']):.3f}" in page
    )


def test_the_comparisons_that_the_page_counts_are_the_rows_of_their_tables() -> None:
    tables = ROOT / "reports" / "boundary_studies" / "tables"
    orchestration = list(csv.DictReader((tables / "study-orchestration.csv").read_text(encoding="utf-8").splitlines()))
    told = [row for row in orchestration if row["Verdict"] == "told apart"]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"Of {len(orchestration)} comparisons that differ anywhere {len(told)} differ beyond chance" in page


def test_the_damage_that_the_page_counts_under_contradicted_reports_is_that_of_the_rows() -> None:
    report = ROOT / "reports" / "boundary_studies"
    rows = list(csv.DictReader(lzma.decompress((report / "rows" / "contradicted.csv.xz").read_bytes()).decode().splitlines()))
    counted = defaultdict[tuple[str, str, str], list[int]](lambda: [0, 0, 0])
    for row in rows:
        damage = sum(int(count) for name, count in row.items() if name.startswith("damage_"))
        counts = counted[row["scenario"], row["plan"], row["architecture"]]
        counted[row["scenario"], row["plan"], row["architecture"]] = [
            each + more for each, more in zip(counts, (1, damage, int(row["faults_delivered"])), strict=True)
        ]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for pattern in ("delegation_by_model", "plan_and_replan", "hierarchical_delegation"):
        desk, incidents = (
            [counted[world, plan, pattern][1] for plan in ("none", "contradicted")]
            for world in ("support_desk", "incident_response")
        )
        assert f"rise from {desk[0]} to {desk[1]} in `support_desk` and from {incidents[0]} to {incidents[1]} in" in page
        struck = [counted[world, "contradicted", f"{pattern}_remedied"] for world in ("support_desk", "incident_response")]
        assert f"under {struck[0][2]} and {struck[1][2]} contradicted reports" in page
        assert [each[:2] for each in struck] == [[16, 0], [16, 0]]


def test_every_figure_of_the_page_is_there() -> None:
    for figure in re.findall(r"\]\((\S+\.png)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / figure).is_file()


def test_the_states_of_the_paraphrase_are_those_of_its_table() -> None:
    row = next(line for line in PARAPHRASE.splitlines() if line.startswith("| local | none | all |"))
    events, instances = (cell.strip() for cell in row.split("|")[7:9])
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"in {events} states of {instances} customers" in page


def test_what_the_page_counts_of_failures_and_remedies_stands_in_their_table() -> None:
    table = ROOT / "reports" / "boundary_studies" / "tables" / "study-pattern-failure.md"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.read_text(encoding="utf-8").splitlines()]
    cells = {(row[0], row[1]): row[2:] for row in rows if row[0] in ("contract_renewal", "incident_response")}
    failures = {failure for _, failure in cells}
    harmless = {
        failure
        for failure in failures
        if not any(cell.startswith(("mended", "shown")) for (_, name), row in cells.items() if name == failure for cell in row)
    }
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert len(failures) == 20 and harmless == {"contradicting person"} and "nineteen of the twenty" in page
    assert set(cells["contract_renewal", "stale read"]) == {"shown, 10/10", "3/10"}
    assert cells["incident_response", "throttled gate"][-1] == "1/9"
    mended = {
        failure
        for (world, failure), row in cells.items()
        if world == "contract_renewal"
        and any(cell.startswith("mended") for cell in row)
        and not any("shown" in cell for cell in row)
    }
    assert len(mended) == 13 and "holds for thirteen failures of twenty" in page
    asking = [cell for cell in cells["contract_renewal", "model answers"] if cell != "not provoked"]
    assert asking == ["mended, 4/4", "mended, 4/4", "0/4"]
    [names] = [row[2:] for row in rows if row[0] == "Scenario"]
    asked = [name for name, cell in zip(names, cells["contract_renewal", "model answers"], strict=True) if "4/4" in cell]
    assert asked == ["human in the loop", "composition"]


def test_what_the_page_says_of_approval_stands_in_its_table() -> None:
    folder = ROOT / "reports" / "boundary_studies" / "tables"
    lines = [line for line in (folder / "study-approval.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    names, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = {(row[0], row[1].split(" ")[0], row[2], row[3]): dict(zip(names, row, strict=True)) for row in cells}
    assert len(rows) == 50 and {row["Instances"] for row in rows.values()} == {"12"}
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    worlds = ("contract_renewal", "incident_response")
    risky, silent, late = (
        [rows[world, "right", asks, reviewer]["Less damage"] for world in worlds]
        for asks, reviewer in (
            ("risky", "careful"),
            ("always", "never answers"),
            ("always", "answers late"),
        )
    )
    assert [rows[world, "right", "risky", "careful"]["Of it unapproved"] for world in worlds] == risky
    assert [rows[world, "right", "risky", "says yes"]["Less damage"] for world in worlds] == risky
    expected = (
        f"prevents {risky[0]} damaged effects a trial in `contract_renewal` and {risky[1]} in `incident_response`",
        f"damaged effects are {silent[0]} and {silent[1]} a trial.",
        f"A reviewer who answers late also adds damage: {late[0]} and {late[1]} a trial.",
    )
    assert [sentence for sentence in expected if sentence not in page] == []


def test_what_further_remedies_mend_and_what_they_do_not_is_what_the_page_says() -> None:
    tables = ROOT / "reports" / "boundary_studies" / "tables"
    further = list(csv.DictReader((tables / "study-pattern-failure-further.csv").read_text(encoding="utf-8").splitlines()))
    cells = {(row["Scenario"], row["Failure"], name): row[name] for row in further for name in list(row)[2:]}
    shown = {key for key, cell in cells.items() if cell.startswith("shown")}
    at_the_same_time = ("hierarchical delegation", "scatter gather saga", "composition", "work queue")
    assert shown == {("contract_renewal", "missed event", pattern) for pattern in at_the_same_time}
    [missed] = [
        list(row.values())[-2:] for row in further if (row["Scenario"], row["Failure"]) == ("contract_renewal", "missed event")
    ]
    assert missed == ["0/10", "1/10"], "step by step, and at the same time"
    queue = {
        key[:2]: cell for key, cell in cells.items() if key[2] == "work queue" and key[1] in ("worker dies", "claimed twice")
    }
    assert [cell.split(", ")[1] for cell in queue.values()] == ["6/10", "10/10", "6/10", "8/10"]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert "6 of 10 renewals and 6 of 10 incidents" in page
    assert "claim the same step, 10 of 10 renewals and 10 of 10 incidents are damaged" in page


def test_how_many_pairs_of_patterns_are_told_apart_is_what_the_table_counts() -> None:
    tables = ROOT / "reports" / "boundary_studies" / "tables"
    table = (tables / "study-orchestration-counts.csv").read_text(encoding="utf-8")
    counts = list(csv.DictReader(table.splitlines()))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for world in ("contract_renewal", "incident_response"):
        *most, least = [row["Told apart"] for row in reversed(counts) if row["Scenario"] == world]
        counted = f"{', '.join(most)} and {least} pairs"
        assert f"{counted} differ beyond chance in `{world}`" in page or f"{counted} differ so in `{world}`" in page


def damaged_effects(study: str, **where: str) -> dict[str, dict[str, float]]:
    """Architecture -> instance -> the damaged effects of its trials, counted from the rows that git holds."""
    counted: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    with lzma.open(ROWS / f"{study}.csv.xz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if all(row[name] == value for name, value in where.items()):
                harm = sum(int(value or 0) for name, value in row.items() if name.startswith("damage_"))
                counted[row["architecture"]][row["instance"]] += harm
    return counted


def over_all_signs(ours: dict[str, float], theirs: dict[str, float]) -> tuple[int, float]:
    """How many instances differ, and the exact p of the sign-flip test, by counting the sums that all signs give."""
    differences = [ours[name] - theirs[name] for name in ours if ours[name] != theirs[name]]
    sums = Counter({0.0: 1})
    for difference in differences:
        turned: Counter[float] = Counter()
        for total, ways in sums.items():
            turned[total + difference] += ways
            turned[total - difference] += ways
        sums = turned
    beyond = sum(ways for total, ways in sums.items() if abs(total) >= abs(sum(differences)))
    return len(differences), beyond / sums.total()


def test_what_approval_prevents_is_told_with_how_few_instances_differ() -> None:
    by_world = []
    for world in ("contract_renewal", "incident_response"):
        trials = damaged_effects("approval", scenario=world, model="right", plan="none")
        by_world.append(over_all_signs(trials["never"], trials["risky"]))
    (renewals, p), (incidents, other) = by_world
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert (
        f"Only {renewals} and {incidents} of 12 instances differ, so that the sign-flip test gives p = {p:.4f} and {other:.3f}"
        in page
    )


def test_a_step_that_is_claimed_twice_is_told_by_all_trials_that_are_damaged_and_by_those_with_more() -> None:
    of_world = {}
    for world in ("contract_renewal", "incident_response"):
        twice, once = (
            damaged_effects("pattern_failure_further", scenario=world, plan=plan)["work_queue"]
            for plan in ("claimed_twice", "none")
        )
        of_world[world] = (
            len(twice),
            sum(harm > 0 for harm in twice.values()),
            sum(harm > once[name] for name, harm in twice.items()),
        )
    assert of_world == {"contract_renewal": (10, 10, 10), "incident_response": (10, 10, 8)}
    assert "10 of 10 renewals and 10 of 10 incidents are damaged, 10 and 8 of them more than without" in " ".join(
        PAGE.read_text(encoding="utf-8").split()
    )


def test_an_effect_over_the_pairs_that_could_differ_is_told_with_their_number_its_mark_and_its_verdict() -> None:
    tables = ROWS.parent / "tables"
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for name, words in (("The commit matters", "commit"), ("Asking a person matters", "person")):
        for row in csv.DictReader((tables / "study-boundary-verdicts.csv").read_text(encoding="utf-8").splitlines()):
            if row["What is said"] == name:
                bounds = [f"{float(row[f'More damage{end}']):.2f}" for end in ("", " low", " high")]
                mark = "†" if words == "person" else ""
                told = f"{bounds[0]} [{bounds[1]}, {bounds[2]}]{mark}"
                verdict = row["Verdict"].removesuffix(" (floor)")
                assert re.search(
                    rf"{re.escape(told)}[^.]*?\({row['Pairs that could differ']} of 1,080 pairs[^)]*, \*{verdict}\*\)",
                    page,
                ), told
