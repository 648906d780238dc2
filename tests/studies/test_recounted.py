"""The tables of studies whose records git does not hold, recounted from a row for each trial by other code than theirs."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import math
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, variance

import pytest

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-9

Row = dict[str, str]
Place = tuple[str, ...]


def rows_of(config: str, report: str = "boundary_studies") -> list[Row]:
    packed = ROOT / "reports" / report / "rows" / f"{config}.csv.xz"
    return list(csv.DictReader(lzma.decompress(packed.read_bytes()).decode().splitlines()))


def table_of(name: str, report: str = "boundary_studies") -> list[Row]:
    text = (ROOT / "reports" / report / "tables" / f"{name}.csv").read_text(encoding="utf-8")
    table = list(csv.DictReader(text.splitlines()))
    assert table
    return table


def config_of(path: str) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    return tomllib.loads((ROOT / "studies" / path).read_text(encoding="utf-8"))


def damage(row: Row) -> int:
    return sum(int(count) for name, count in row.items() if name.startswith("damage_"))


def solved(row: Row) -> float:
    return float(row["outcome"] == "solved")


def by_instance(values: Iterable[tuple[str, float]]) -> float:
    """The mean over instances of the mean of each instance."""
    each = defaultdict[str, list[float]](list)
    for instance, value in values:
        each[instance].append(value)
    return fmean(map(fmean, each.values()))


def rise(these: Iterable[Row], those: Iterable[Row], measure: Callable[[Row], float], *shared: str) -> float:
    """How much more is measured in these trials than in their twins among those, as the mean over instances."""
    twins = {tuple(row[name] for name in ("instance", "repetition", *shared)): row for row in those}
    pairs = [(row, twins.get(tuple(row[name] for name in ("instance", "repetition", *shared)))) for row in these]
    return by_instance((row["instance"], measure(row) - measure(twin)) for row, twin in pairs if twin)


# Boundaries

STRENGTHS = ("none", "schema", "policy", "business_rule")
OCCASIONS = {
    "strength": ("rejections", "calls_forbidden", "steps_failed"),
    "approval": ("waiting_for_people_minutes",),
    "commit": ("faults_delivered",),
    "signal": ("rejections",),
}


def test_what_each_part_of_the_boundary_carries_is_recounted() -> None:
    rates = {
        name: str(float(str(model.get("error_rate", 0)))) for name, model in config_of("boundary/config.toml")["model"].items()
    }
    cells = config_of("boundary/config.toml")["architecture"]

    def level(row: Row, part: str) -> str:
        cell = cells[row["architecture"]]
        if part == "error rate":
            return rates[row["model"]]
        return str(cell.get(part, "risky" if cell["strength"] in STRENGTHS[2:] else "never"))

    def could_act(row: Row, part: str) -> bool:
        return part not in OCCASIONS or any(float(row[name] or 0) > 0 for name in OCCASIONS[part])

    parts = (*OCCASIONS, "error rate")
    trials = [(row, {part: level(row, part) for part in parts}) for row in rows_of("boundary")]
    table = table_of("study-boundary")
    assert len(trials) == 6480 and len(table) == 20
    for shown in table:
        part = shown["Part"]
        twins: dict[Place, dict[str, Row]] = defaultdict(dict)
        for row, levels in trials:
            if row["scenario"] == shown["Scenario"]:
                others = (levels[other] for other in parts if other != part)
                twins[row["instance"], row["repetition"], *others][levels[part]] = row
        pairs = [
            (each[shown["At"]], each[shown["In the place of"]])
            for each in twins.values()
            if {shown["At"], shown["In the place of"]} <= set(each)
        ]
        acted = [pair for pair in pairs if any(could_act(row, part) for row in pair) or len(set(map(damage, pair))) > 1]
        assert (len(acted), len(pairs)) == (int(shown["Pairs that could differ"]), int(shown["Pairs"])), shown
        more = by_instance((this["instance"], damage(this) - damage(that)) for this, that in acted)
        assert more == pytest.approx(float(shown["More damage"]), abs=TOLERANCE), shown


def test_the_damage_of_the_log_and_of_the_state_machine_is_recounted() -> None:
    by_arm = defaultdict[Place, list[int]](list)
    for row in rows_of("log_or_row"):
        by_arm[row["model"], row["plan"], row["architecture"]].append(damage(row))
    table = table_of("study-log-or-row")
    assert len(table) == 20
    for row in table:
        model, plan = row["Model"].partition(" ")[0], row["Fault plan"].replace(" ", "_")
        for column, pattern in (("Event log", "event_driven"), ("State machine", "state_machine")):
            counts = by_arm[model, plan, pattern + ("_remedied" if row["Form"] == "with remedies" else "")]
            assert fmean(counts) == pytest.approx(float(row[column]), abs=TOLERANCE), row


def test_what_approval_prevents_is_recounted() -> None:
    trials, table = rows_of("approval"), table_of("study-approval")
    assert len(table) == 50
    for shown in table:
        model = shown["Model"].partition(" ")[0]
        plan = "none" if shown["Reviewer"] == "careful" else shown["Reviewer"].replace(" ", "_")
        of = [row for row in trials if (row["scenario"], row["model"]) == (shown["Scenario"], model)]
        unasked = [row for row in of if (row["architecture"], row["plan"]) == ("never", "none")]
        asked = [row for row in of if (row["architecture"], row["plan"]) == (shown["Asks"], plan)]
        for column, sign, measure in (
            ("Less damage", -1, damage),
            ("More solved", 1, solved),
            ("Minutes waited", 1, lambda row: float(row["waiting_for_people_minutes"])),
            ("Tokens more", 1, lambda row: float(row["tokens"])),
        ):
            assert sign * rise(asked, unasked, measure) == pytest.approx(float(shown[column]), abs=1e-6), shown


def test_what_drifts_where_a_model_is_exchanged_is_recounted() -> None:
    dead = [row for row in rows_of("model_exchange") if int(row["lives"]) > 1]
    table = table_of("study-model-exchange")
    assert len(table) == 12
    for shown in table:
        form = {"bare": "", "pinned": "_pinned", "with remedies": "_remedied"}[shown["Form"]]
        arm = (shown["The agent dies"].replace(" ", "_"), shown["Pattern"].replace(" ", "_") + form)
        by_model = defaultdict[str, dict[Place, float]](dict)
        for row in dead:
            if (row["plan"], row["architecture"]) == arm:
                by_model[row["model"]][row["instance"], row["repetition"]] = float(row["drifted"])
        exchanged, *kept = (by_model[name] for name in ("exchanged", "errs_as_0.5b", "errs_as_1.5b"))
        places = [place for place in exchanged if all(place in each for each in kept)]
        assert fmean(exchanged[place] for place in places) == pytest.approx(float(shown["Drifted, exchanged"]), abs=TOLERANCE)
        spread = fmean(each[place] for each in kept for place in places)
        assert spread == pytest.approx(float(shown["Drifted, kept"]), abs=TOLERANCE), shown


def test_how_often_two_models_end_otherwise_is_recounted() -> None:
    ends = defaultdict[Place, list[str]](list)
    for row in rows_of("replay_divergence_running"):
        ends[row["architecture"], row["instance"], row["model"]].append(row["course"])
    models = sorted({model for *_, model in ends})
    assert len(models) == 2
    for shown in table_of("study-replay-divergence-running"):
        instances = sorted({instance for architecture, instance, _ in ends if architecture == shown["Boundary"]})
        sides = [[ends[shown["Boundary"], instance, model] for model in models] for instance in instances]
        between = fmean(fmean(this != that for this, that in product(*both)) for both in sides)
        within = fmean(fmean(this != that for this, that in combinations(side, 2)) for both in sides for side in both)
        assert between == pytest.approx(float(shown["Between"]), abs=TOLERANCE)
        assert within == pytest.approx(float(shown["Within"]), abs=TOLERANCE)


# Horizons


def rate_of(model: str) -> float:
    return 0.0 if model == "right" else int(model.split("_")[1]) / 100


def test_how_many_trials_are_damaged_by_an_effect_is_recounted() -> None:
    trials = rows_of("momentum")
    for shown in table_of("study-momentum"):
        arm = (shown["Architecture"], float(shown["Error rate"]))
        of_arm = [row for row in trials if (row["architecture"], rate_of(row["model"])) == arm]
        assert len(of_arm) == int(shown["Trials"])
        for horizon in (5, 10, 20, 40, 80):
            share = by_instance((row["instance"], float(row["onset"]) <= horizon) for row in of_arm)
            assert share == pytest.approx(float(shown[f"t = {horizon}"]), abs=TOLERANCE), shown
        if shown["Error rate"] != "0.0":
            ends = defaultdict[str, list[float]](list)
            for row in of_arm:
                ends[row["instance"]].append(float(math.isfinite(float(row["onset"]))))
            luck = fmean(map(variance, ends.values()))
            assert luck == pytest.approx(float(shown["Variance of the call"]), abs=TOLERANCE), shown
    for shown in table_of("study-momentum-hazard"):
        of_arm = [row for row in trials if (row["architecture"], row["model"]) == (shown["Architecture"], "right")]
        begun = sum(math.isfinite(float(row["onset"])) for row in of_arm)
        at_risk = sum(min(float(row["onset"]), int(row["effects"])) for row in of_arm)
        assert (begun, at_risk) == (int(shown["Onsets"]), int(shown["Effects at risk"])), shown


def test_how_many_single_wrong_replies_end_in_damage_is_recounted() -> None:
    trials = [row for row in rows_of("momentum_escape") if row["plan"] == "none" and row["model"] != "right"]
    rejected = defaultdict[Place, int](int)
    for row in trials:
        place = (row["instance"], row["model"], row["repetition"])
        rejected[place] = max(rejected[place], int(row["second_attempts"]))
    for shown in table_of("study-momentum-escape"):
        of_arm = [row for row in trials if row["architecture"] == shown["Architecture"]]
        single = [row for row in of_arm if rejected[row["instance"], row["model"], row["repetition"]] == 1]
        damaged = sum(math.isfinite(float(row["onset"])) for row in single)
        assert (damaged, len(single)) == (int(shown["Damaged k"]), int(shown["Damaged n"])), shown


# Patterns


def pairs_of(config: str) -> Iterable[tuple[Row, Row]]:
    """The trials in which a failure was delivered, each with the same trial without it."""
    places = ("scenario", "model", "architecture", "instance", "repetition")
    trials = rows_of(config)
    controls = {tuple(row[name] for name in places): row for row in trials if row["plan"] == "none"}
    struck = (row for row in trials if row["plan"] != "none" and int(row["faults_delivered"]))
    return [(row, controls[tuple(row[name] for name in places)]) for row in struck]


@pytest.mark.parametrize("config", ["pattern_failure", "pattern_failure_further", "pattern_failure_children"])
def test_which_failure_damages_which_pattern_is_recounted(config: str) -> None:
    counts = defaultdict[Place, list[int]](lambda: [0, 0])
    for row, control in pairs_of(config):
        count = counts[row["scenario"], row["plan"], row["architecture"]]
        count[0] += any(int(row[name]) > int(control[name]) for name in row if name.startswith("damage_"))
        count[1] += 1

    def share(*place: str) -> str:
        return "not provoked" if place not in counts else "{}/{}".format(*counts[place])

    for shown in table_of(f"study-{config.replace('_', '-')}"):
        place = (shown["Scenario"], shown["Failure"].replace(" ", "_"))
        patterns = [
            name for name in shown if name not in ("Scenario", "Model", "Failure") and not name.endswith("with remedies")
        ]
        for title, cell in shown.items():
            if title in patterns:
                assert cell.rpartition(", ")[2] == share(*place, title.replace(" ", "_")), (shown, title)
            elif title.endswith("with remedies"):
                group = patterns if title.startswith("all ") else title.removesuffix(" with remedies").split(", ")
                shares = dict.fromkeys(share(*place, f"{name.replace(' ', '_')}_remedied") for name in group)
                provoked = [each for each in shares if each != "not provoked"]
                assert cell == (" or ".join(provoked) or "not provoked"), (shown, title)


def test_how_often_a_call_is_tried_again_is_recounted() -> None:
    pairs = list(pairs_of("pattern_failure"))
    for shown in table_of("study-pattern-failure-retries"):
        for title, form in (("Retries, bare", ""), ("Retries, with remedies", "_remedied")):
            arm = (shown["Scenario"], shown["Failure"].replace(" ", "_"), shown["Pattern"].replace(" ", "_") + form)
            beyond = by_instance(
                (row["instance"], int(row["tool_retries"]) - int(control["tool_retries"]))
                for row, control in pairs
                if (row["scenario"], row["plan"], row["architecture"]) == arm
            )
            assert beyond == pytest.approx(float(shown[title]), abs=TOLERANCE), shown


def test_what_an_order_of_undoing_leaves_behind_is_recounted() -> None:
    trials = [row for row in rows_of("pattern_failure_undo") if row["plan"] != "none"]
    (shown,) = table_of("study-pattern-failure-undo-order")
    as_done, reverse = (
        [row for row in trials if row["architecture"] == name]
        for name in ("scatter_gather_saga_as_done", "scatter_gather_saga_keyed")
    )
    for kind in ("uncompensated", "lost"):
        more = rise(as_done, reverse, lambda row: int(row[f"damage_{kind}"]))  # noqa: B023
        assert more == pytest.approx(float(shown[f"{kind.capitalize()} more"]), abs=TOLERANCE)


@pytest.mark.parametrize(("config", "table"), [("orchestration", ""), ("contradicted", "-contradicted")])
def test_how_patterns_differ_where_a_model_orchestrates_is_recounted(config: str, table: str) -> None:
    trials = rows_of(config)
    for shown in table_of(f"study-orchestration{table}"):
        for arms in shown["Arms"].split("; "):
            these, those = (
                [
                    row
                    for row in trials
                    if (row["scenario"], row["plan"], row["architecture"]) == (shown["Scenario"], shown["Faults"], arm)
                ]
                for arm in arms.split(" less ")
            )
            difference = rise(these, those, solved if shown["What"] == "solved" else damage, "model")
            assert difference == pytest.approx(float(shown["Difference"]), abs=TOLERANCE), shown


def test_how_patterns_and_proposers_are_damaged_is_recounted() -> None:
    trials = rows_of("proposers")
    for shown in table_of("study-orchestration-decomposed"):
        of_arm = [
            row
            for row in trials
            if (row["scenario"], row["architecture"]) == (shown["Scenario"], shown["Architecture"])
            and row["model"] in (shown["Proposer"], *(f"{shown['Proposer']}_{draws}" for draws in range(1, 4)))
        ]
        assert len(of_arm) == int(shown["Trials"])
        for column, measure in (("Damaged", lambda row: damage(row) > 0), ("Solved", solved)):
            share = by_instance((row["instance"], measure(row)) for row in of_arm)
            assert share == pytest.approx(float(shown[column]), abs=TOLERANCE), shown


# Beyond boundaries


@pytest.mark.parametrize(
    ("config", "report", "name", "under"),
    [
        ("retesting", "retesting-simulated", "study-retesting", "Disruption"),
        ("patching_arms", "patching_arms", "study-patching-arms", "Patches as"),
    ],
)
def test_what_a_belief_about_a_test_costs_is_recounted(config: str, report: str, name: str, under: str) -> None:
    by_arm: dict[Place, list[Row]] = defaultdict(list)
    for row in rows_of(config, report):
        by_arm[row["under"], row["arm"]].append(row)
    table = table_of(name, report)
    assert {(shown[under], shown["Arm"]) for shown in table} == set(by_arm)
    for shown in table:
        of_arm = by_arm[shown[under], shown["Arm"]]
        outcomes = [row["outcome"] for row in of_arm]
        assert (outcomes.count("solved"), len(of_arm)) == (int(shown["Solved k"]), int(shown["Solved n"]))
        assert outcomes.count("gave_up") == int(shown["Gave up"]) and outcomes.count("wrong") == int(shown["Wrong"])
        whole = by_arm.get((shown[under], "rerun_everything")) or by_arm[shown[under], "regenerate"]
        saved = {row["case"]: int(row["executions"]) for row in whole}
        assert fmean(saved[row["case"]] - int(row["executions"]) for row in of_arm) == pytest.approx(
            float(shown["Executions saved"]), abs=TOLERANCE
        )
        for column in ("Tokens", "Executions", *(["Seconds"] if "Seconds" in shown else [])):
            assert fmean(float(row[column.lower()]) for row in of_arm) == pytest.approx(float(shown[column]), abs=TOLERANCE)
        believed, wrong = (sum(int(row[name]) for row in of_arm) for name in ("believed", "wrong"))
        assert shown["Wrong beliefs"] == f"{wrong:,} of {believed:,}"
        if misled := shown.get("Cases with a wrong belief k"):
            assert sum(int(row["wrong"]) > 0 for row in of_arm) == int(misled)


def test_the_surface_of_reliability_is_recounted() -> None:
    shares = defaultdict[Place, list[float]](list)
    for row in rows_of("reliability_surface", "reliability_surface-simulated"):
        level = row["scenario"].partition(":epsilon_")[2] or "0"
        shares[level, row["architecture"], row["plan"]].append(solved(row))
    told = {level for level, *_ in shares}
    table = [row for row in table_of("study-reliability-surface", "reliability_surface-simulated") if row["ε"] in told]
    assert len(table) == len(shares)
    for shown in table:
        kind = {"lost answer": "lost_ack"}.get(shown["Fault"], shown["Fault"].replace(" ", "_"))
        plan = "none" if kind == "none" else f"{kind}_{round(100 * float(shown['λ'])):02}"
        assert fmean(shares[shown["ε"], shown["Architecture"], plan]) == pytest.approx(float(shown["pass^1"]), abs=TOLERANCE)


def beyond_control(rows: Iterable[Row], controls: Mapping[Place, Row], kinds: Iterable[str] = ()) -> list[int]:
    """Return, for each trial, the effects that were damaged more often than in its control."""
    counts = []
    for row in rows:
        control = controls[row["architecture"], row["instance"], row["repetition"]]
        names = [f"damage_{kind}" for kind in kinds] or [name for name in row if name.startswith("damage_")]
        counts.append(sum(max(0, int(row[name]) - int(control[name])) for name in names))
    return counts


def controls_of(rows: Iterable[Row]) -> Mapping[Place, Row]:
    return {(row["architecture"], row["instance"], row["repetition"]): row for row in rows if row["plan"] == "none"}


def test_what_a_death_does_to_an_upgrade_is_recounted() -> None:
    trials = rows_of("exactly_once_upgrade", "exactly_once_upgrade-simulated")
    controls = controls_of(trials)
    text = (ROOT / "reports" / "exactly_once_upgrade-simulated" / "study-exactly-once.csv").read_text(encoding="utf-8")
    told = {row["architecture"] for row in trials}
    table = [row for row in csv.DictReader(text.splitlines()) if row["Architecture"] in told]
    assert len(table) == 20
    for shown in table:
        arm = (shown["Architecture"], shown["Dies"])
        of_arm = [row for row in trials if (row["architecture"], row["plan"].partition("_")[0]) == arm]
        died_once = [row for row in of_arm if row["lives"] == "2"]
        assert len(of_arm) - len(died_once) == int(shown["Left out"]), shown
        for kind in ("lost", "doubled", "orphaned", "uncompensated"):
            more = beyond_control(died_once, controls, [kind])
            counts = (sum(count > 0 for count in more), len(more), sum(more))
            assert counts == tuple(int(shown[f"{kind.capitalize()} {what}"]) for what in ("k", "n", "effects")), shown


def test_what_a_crash_does_at_a_support_desk_is_recounted() -> None:
    trials = rows_of("support_desk", "support_desk-simulated")
    controls = controls_of(trials)
    page = (ROOT / "reports" / "support_desk-simulated" / "scorecard.md").read_text(encoding="utf-8")
    lines = page.split("## Recovery at a glance")[1].split("\n\n")[1].splitlines()[2:]
    assert len(lines) == 18
    for line in lines:
        system, right, crashes, after, _, damaged, tokens = (cell.strip() for cell in line.strip("|").split("|"))
        struck = [row for row in trials if (row["architecture"], row["plan"]) == (system, "crash") and int(row["lives"]) > 1]
        undisturbed = [row for row in controls.values() if row["architecture"] == system]
        of_struck = [controls[row["architecture"], row["instance"], row["repetition"]] for row in struck]
        deaths = sum(int(row["lives"]) - 1 for row in struck)
        assert right.startswith(f"{sum(map(solved, undisturbed)):.0f}/{len(undisturbed)} ="), line
        assert crashes == str(deaths) and after.startswith(f"{sum(map(solved, struck)):.0f}/{len(struck)} ="), line
        assert damaged.partition(" ")[0] == f"{100 * sum(beyond_control(struck, controls)) / deaths:.0f}", line
        spent = sum(float(row["tokens"]) for row in struck) / sum(float(row["tokens"]) for row in of_struck)
        assert tokens.partition(" ")[0] == f"{spent:.2f}", line


def test_what_a_models_errors_do_to_renewals_is_recounted() -> None:
    trials = rows_of("renewal_bank", "renewal_bank-errs_as_qwen")
    outcomes, damages = (table_of(name, "renewal_bank-errs_as_qwen") for name in ("outcomes", "world_damage"))
    assert len(outcomes) == len(damages) == 18
    for shown, damaged in zip(outcomes, damages, strict=True):
        of_arm = [row for row in trials if row["architecture"] == shown["Architecture"]]
        ends = [row["outcome"] for row in of_arm]
        assert (len(ends), ends.count("solved")) == (int(shown["Trials"]), int(shown["Solved"])), shown
        assert (ends.count("wrong"), ends.count("gave_up")) == (int(shown["Wrong"]), int(shown["Gave up"])), shown
        assert damaged["Architecture"] == shown["Architecture"]
        for kind in ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale", "late"):
            assert sum(int(row[f"damage_{kind}"]) for row in of_arm) == int(damaged[kind.capitalize()]), damaged
        assert sum(damage(row) > 0 for row in of_arm) == int(damaged["Trials with damage k"]), damaged


@pytest.mark.parametrize(
    ("name", "kills", "trials"),
    [("scorecard", 7330, 1715), ("scorecard_begins_anew", 1533, 441), ("scorecard_one_customer", 404, 112)],
)
def test_what_kills_do_to_systems_is_recounted(name: str, kills: int, trials: int) -> None:
    packed = (ROOT / "reports" / f"{name}-simulated" / "scorecard.json.gz").read_bytes()
    systems = json.loads(gzip.decompress(packed))["rows"]
    for system in systems:
        results = [result for result in system["results"] if result["failures"]]
        assert {struck["by"] for struck in system["struck"]} >= {result["by"] for result in results}
        for struck in system["struck"]:
            of = [result for result in results if result["by"].startswith(struck["by"].rstrip("*"))]
            right, harm, failures = (sum(result[column] for result in of) for column in ("right", "harm", "failures"))
            assert (len(of), right, failures) == (struck["trials"], struck["right"]["k"], struck["failures"]), struck
            assert harm == struck["harm"]["any"]["effects"], struck
            assert 100 * harm / failures == pytest.approx(struck["harm"]["any"]["per_100"]["value"], abs=1e-6), struck
    assert sum(len(system["results"]) for system in systems) == trials
    assert sum(struck["failures"] for system in systems for struck in system["struck"] if struck["by"] == "process:*") == kills
