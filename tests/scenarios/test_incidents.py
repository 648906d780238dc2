"""The pack incidents: the same everywhere, of one cause each that the documents show, graded by the effect of the remedy."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.common.tokens import count_tokens
from bench.run.packs import instances_of, load_instances, load_pack, variants_of
from bench.run.trial.verification import Rejected, judge
from bench.scenario import Grade, Json, Scenario
from scenarios.incidents.causes import CAUSES, SYMPTOMS
from scenarios.incidents.cluster import NUMBERS as SETTINGS
from scenarios.incidents.cluster import Cluster, Service, shortcoming
from scenarios.incidents.dice import Dice
from scenarios.incidents.documents import INCIDENT, log
from scenarios.incidents.generate import Incident, incident
from scenarios.incidents.levels import LEVELS
from scenarios.incidents.schemas import Action, Cause, Remediation
from scenarios.incidents.story import Story, cause_of, story
from scenarios.incidents.topology import ENTRIES, NAMES

PACK = Path(__file__).parents[2] / "scenarios" / "incidents"
ROOTS = [PACK.parent]
FRESH = ("easy", "medium", "hard")
NUMBERS = st.integers(1, 100_000)
levels = st.sampled_from(FRESH)
SHA256 = "95ec7713530d28f481aee317005beee321c5b4a2846f6a975bc414fe6a1e2fa8"
"""Of all instances of all variants: documents, references, wrong answers and truths."""


@cache
def load(variant: str) -> tuple[Scenario, ...]:
    return load_instances(f"incidents:{variant}", ROOTS)


def case(cause: str, variant: str = "medium") -> Scenario:
    """The first fresh instance of a cause."""
    return next(scenario for scenario in load(variant) if scenario.reference["cause"]["cause"] == cause)


def rejections(scenario: Scenario, outputs: Mapping[str, Json]) -> list[str]:
    verdicts = judge(scenario.task.subtasks, {**scenario.reference, **outputs}, scenario.task.documents, {})
    return [f"{verdict.subtask}: {verdict.detail}" for verdict in verdicts.values() if isinstance(verdict, Rejected)]


def graded(scenario: Scenario, **changed: Mapping[str, Json]) -> Grade:
    """The grade of the reference with some fields of some outputs exchanged."""
    return scenario.grade_outputs({name: {**output, **changed.get(name, {})} for name, output in scenario.reference.items()})


# Instances


def test_a_level_has_forty_fresh_instances_and_twenty_for_development_which_none_of_its_runs_takes() -> None:
    names = {variant: instances_of(f"incidents:{variant}", ROOTS) for variant in variants_of(PACK)}
    assert list(names) == ["medium", "easy", "hard", "medium_dev", "easy_dev", "hard_dev"]
    for level in FRESH:
        assert (len(names[level]), len(names[f"{level}_dev"])) == (40, 20)
        assert not set(names[level]) & set(names[f"{level}_dev"])
        assert all(name.startswith("dev_") for name in names[f"{level}_dev"])


def test_all_instances_are_what_they_always_were_byte_for_byte() -> None:
    made = [
        [
            scenario.key,
            list(scenario.task.documents.items()),
            scenario.reference,
            [[w.name, w.why, w.outputs] for w in scenario.wrong],
            scenario.truth,
        ]
        for variant in variants_of(PACK)
        for scenario in load(variant)
    ]
    assert len({json.dumps(row[1]) for row in made}) == len(made) == 180
    assert hashlib.sha256(json.dumps(made, ensure_ascii=False).encode()).hexdigest() == SHA256


def test_dice_fall_by_their_seed_and_number_alone() -> None:
    dice = Dice("a", 1)
    assert [dice.below(100) for _ in range(5)] == [29, 30, 35, 92, 40]
    assert Dice("a", 1).shuffled("abcdef") == list("dafbce")
    assert Dice("a", 2).shuffled("abcdef") != Dice("a", 1).shuffled("abcdef")


@given(NUMBERS, st.integers(1, 50))
def test_dice_fall_everywhere_between_their_bounds(seed: int, high: int) -> None:
    dice = Dice(seed)
    assert {dice.between(1, high) for _ in range(20 * high)} <= set(range(1, high + 1))
    assert sorted(dice.shuffled(range(high))) == list(range(high))


def test_every_cause_comes_equally_often_and_at_all_levels_under_the_same_names() -> None:
    causes = {level: [scenario.reference["cause"]["cause"] for scenario in load(level)] for level in FRESH}
    assert Counter(causes["medium"]) == dict.fromkeys(CAUSES, 4) and len(CAUSES) >= 8
    assert causes["easy"] == causes["medium"] == causes["hard"] != [*CAUSES] * 4


# What every incident is, whatever its seed


def story_and_incident(level: str, number: int) -> tuple[Story, Incident]:
    return story(level, f"any_{number}"), incident(level, f"any_{number}")


def test_no_name_of_a_service_is_part_of_another_or_a_word_of_a_cause() -> None:
    names = [*ENTRIES, *NAMES]
    assert len(set(names)) == len(names)
    assert not [(name, other) for name in names for other in names if name != other and name in other]
    assert not [(name, cause) for name in names for cause in CAUSES if name in cause]


@given(levels, NUMBERS)
def test_the_service_at_fault_is_as_many_calls_from_the_alert_as_the_level_says(level: str, number: int) -> None:
    incident_story = story(level, f"any_{number}")
    services = incident_story.topology.services
    assert len(services) == LEVELS[level].services
    low, high = LEVELS[level].distance
    assert low <= distances(services, incident_story.entry)[incident_story.incident.service] <= high
    assert set(distances(services, incident_story.entry)) == set(services), "a service that nobody calls"


def distances(services: Mapping[str, Any], entry: str) -> dict[str, int]:
    """Service -> calls from the entry, on the shortest way."""
    depths, front = {entry: 0}, [entry]
    while front:
        name = front.pop(0)
        new = [called for called in services[name].calls if called not in depths]
        depths.update(dict.fromkeys(new, depths[name] + 1))
        front += new
    return depths


@given(levels, NUMBERS)
def test_nothing_is_wrong_in_the_cluster_but_the_one_cause_and_the_reference_repairs_it(level: str, number: int) -> None:
    incident_story, made = story_and_incident(level, number)
    sick = [service.name for service in incident_story.topology.services.values() if list(service.troubles())]
    assert sick == [incident_story.incident.service]
    assert len(list(incident_story.topology.services[sick[0]].troubles())) == 1
    done = made.reference["remediation"]
    assert shortcoming(incident_story.cluster, done["action"], done["service"], done["value"]) == ""


@given(levels, NUMBERS)
def test_every_wrong_remedy_leaves_something_wrong(level: str, number: int) -> None:
    incident_story, made = story_and_incident(level, number)
    right = made.reference["cause"]
    assert len(made.wrong) >= 7
    for wrong in made.wrong:
        done, cause = wrong.outputs["remediation"], wrong.outputs.get("cause", right)
        if (cause["service"], cause["cause"]) == (right["service"], right["cause"]):
            assert shortcoming(incident_story.cluster, done["action"], done["service"], done["value"]), wrong.name


def pattern(words: str) -> re.Pattern[str]:
    """What a wording of the log looks like, whatever the service and the facts."""
    named = re.escape(words).replace(r"\{s\}", "(?P<s>[a-z]+)", 1).replace(r"\{s\}", "(?P=s)")
    return re.compile(re.sub(r"\\\{\w+\\\}", r"\\S+", named))


PATTERNS = [(cause, pattern(words.log)) for cause, symptoms in SYMPTOMS.items() for words in (symptoms.plain, symptoms.veiled)]


def shown(documents: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(service, cause) of each line of the log of the last quarter of an hour that shows a cause."""
    alert = minute(documents["alert.txt"])
    for line in documents["app.log"].splitlines():
        level, time, speaker, text = line.split(" ", 3)
        for cause, pattern in PATTERNS:
            if alert - minute(time) <= 15 and (match := pattern.fullmatch(f"{level} {text}")):
                yield (match["s"] if SYMPTOMS[cause].by_caller else speaker.removesuffix(":"), cause)


READING = re.compile(r"(HIGH|LOW|ok|-) (\w+) (\w+) now (\d+), usual (\d+)-(\d+), before \d+ \d+")


def minute(line: str) -> int:
    return int(line[:2]) * 60 + int(line[3:5])


@given(levels, NUMBERS)
def test_the_log_shows_the_cause_and_shortly_before_the_alert_no_other(level: str, number: int) -> None:
    incident_story, made = story_and_incident(level, number)
    assert set(shown(made.documents)) == {(incident_story.incident.service, incident_story.incident.cause)}


@given(levels, NUMBERS)
def test_the_evidence_of_the_reference_stands_in_the_documents(level: str, number: int) -> None:
    documents, reference = (made := incident(level, f"any_{number}")).documents, made.reference
    assert reference["log"]["evidence"] in documents["app.log"].splitlines()
    assert reference["changes"]["event"] in documents["events.txt"].splitlines()
    ids = [line.split()[0] for line in documents["changes.txt"].splitlines()]
    assert reference["changes"]["change"] in (*ids, "none") and len(set(ids)) == len(ids)
    rows = [line.split()[1:3] for line in documents["metrics.txt"].splitlines()]
    assert rows.count([reference["metrics"]["service"], reference["metrics"]["metric"]]) == 1


@given(levels, NUMBERS)
def test_only_the_service_at_fault_has_a_metric_beside_its_errors_out_of_range(level: str, number: int) -> None:
    made = incident(level, f"any_{number}")
    for line in made.documents["metrics.txt"].splitlines():
        alarm, service, metric, now, low, high = READING.fullmatch(line).groups()  # type: ignore[union-attr]
        outside = not int(low) <= int(now) <= int(high)
        assert (alarm in ("HIGH", "LOW"), alarm == "-") == (outside and LEVELS[level].marked, not LEVELS[level].marked)
        assert not outside or metric == "error_pct" or service == made.truth["service"]
        assert outside or [service, metric] != [made.truth["service"], made.truth["metric"]]


@given(levels, NUMBERS)
def test_old_incidents_are_over_and_concern_other_services_and_other_causes(level: str, number: int) -> None:
    incident_story = story(level, f"any_{number}")
    assert len(incident_story.old) == LEVELS[level].old
    assert len({old.cause for old in (*incident_story.old, incident_story.incident)}) == len(incident_story.old) + 1
    assert not {old.service for old in incident_story.old} & {
        *incident_story.topology.way,
        *(change.where for change in incident_story.changes if change.undone),
    }
    assert all(incident_story.alert - old.minute >= 30 for old in incident_story.old)
    assert len(incident_story.noisy) == LEVELS[level].noisy and not {*incident_story.noisy} & {*incident_story.topology.way}


@given(levels, NUMBERS)
def test_wrong_answers_and_keyword_rules_pass_the_verifier_so_that_only_the_grader_finds_them(level: str, number: int) -> None:
    scenario, made = load(level)[0], incident(level, f"any_{number}")
    for outputs in [{}, *(wrong.outputs for wrong in made.wrong)]:
        verdicts = judge(scenario.task.subtasks, {**made.reference, **outputs}, made.documents, {})
        assert [verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)] == []


# The levels


@pytest.mark.parametrize("variant", variants_of(PACK))
def test_of_every_instance_the_reference_is_right_and_no_wrong_answer_is(variant: str) -> None:
    for scenario in load(variant):
        assert rejections(scenario, {}) == []
        grade = graded(scenario)
        assert (grade.correct, grade.score, grade.note) == (True, 1.0, "")
        for wrong in scenario.wrong:
            assert not scenario.grade_outputs({**scenario.reference, **wrong.outputs}).correct, (scenario.key, wrong.name)


@pytest.mark.parametrize("variant", variants_of(PACK))
def test_no_document_says_the_cause_or_the_remedy_in_the_words_of_an_answer(variant: str) -> None:
    """But for restart, which the metrics count and which repairs nothing."""
    words = {*get_args(Cause), *get_args(Action)} - {"restart"}
    for scenario in load(variant):
        shown = "\n".join(scenario.task.documents.values())
        assert [word for word in words if word in shown] == [], scenario.key


def test_keyword_rules_solve_less_at_each_level_and_nowhere_as_many_as_three_of_ten() -> None:
    solved = [
        mean(
            scenario.grade_outputs(scenario.baseline(scenario.task.documents)).correct
            for scenario in (*load(level), *load(f"{level}_dev"))
        )
        for level in FRESH
    ]
    assert 0.3 > solved[0] > solved[1] > solved[2]


def test_an_incident_is_longer_at_each_level_and_short_enough_for_a_small_model() -> None:
    lengths = {level: [sum(map(count_tokens, scenario.task.documents.values())) for scenario in load(level)] for level in FRESH}
    assert max(lengths["easy"]) < min(lengths["medium"]) and max(lengths["medium"]) < min(lengths["hard"])
    assert min(lengths["medium"]) > 300 and max(lengths["medium"]) < 950 and max(lengths["hard"]) < 2000


def test_more_veils_the_cause_at_each_level() -> None:
    """Of knobs of which more is harder, none goes down; something differs between any two levels."""
    easy, medium, hard = (LEVELS[level] for level in FRESH)
    for knob in ("services", "distance", "ordinary", "noisy", "old", "changes", "near", "rows"):
        assert getattr(easy, knob) <= getattr(medium, knob) <= getattr(hard, knob), knob
    assert easy.plain > medium.plain > hard.plain
    assert easy.old_minutes > medium.old_minutes > hard.old_minutes and not hard.old_is_told


# The form of the task


def test_three_subtasks_read_side_by_side_and_join_in_the_cause() -> None:
    task = load("medium")[0].task
    reads = {subtask.name: set(subtask.reads) - set(task.documents) for subtask in task.subtasks}
    assert reads == {
        "log": set(),
        "metrics": set(),
        "changes": set(),
        "cause": {"log", "metrics", "changes"},
        "remediation": {"cause"},
        "report": {"cause", "remediation"},
    }
    assert [stage[-1].name for stage in task.stages] == ["cause", "report"]


def test_every_subtask_but_the_report_has_plausible_wrong_outputs() -> None:
    for scenario in load("medium"):
        assert set(scenario.wrong_outputs) == {"log", "metrics", "changes", "cause", "remediation"}
        for subtask, outputs in scenario.wrong_outputs.items():
            assert any(output != scenario.reference[subtask] for output in outputs)


REJECTED: dict[str, tuple[str, dict[str, Json], str]] = {
    "a service that is not there": ("cause", {"service": "postgres"}, "has no service 'postgres'; it has"),
    "a metric of what is no service": ("metrics", {"service": "postgres"}, "has no service 'postgres'; it has"),
    "evidence that nobody wrote": ("log", {"evidence": "12:00:00 it was the weather"}, "is no line of app.log; copy one"),
    "a quotation of nothing": ("log", {"evidence": "ERROR"}, "is no line of app.log; copy one"),
    "evidence about another": ("log", {"service": "wallet"}, "does not name wallet; copy one that does"),
    "an event that nobody wrote": ("changes", {"event": "a pod somewhere failed"}, "is no line of events.txt; copy one"),
    "a change that is not there": ("changes", {"change": "c99"}, "has no change 'c99'; it has c1, "),
    "a remedy of what is not there": ("remediation", {"service": "postgres"}, "has no service 'postgres'; it has"),
    "a number with its unit": (
        "remediation",
        {"action": "set_memory", "value": "1024Mi"},
        "value is '1024Mi', but set_memory takes a whole number without a unit",
    ),
    "a version that never was": (
        "remediation",
        {"action": "rollback_image", "value": "v9.99.9"},
        "takes a version that stands",
    ),
    "a key that is not there": ("remediation", {"action": "revert_config", "value": "colour"}, "takes a key that stands in"),
    "a row that was made up": ("metrics", {"row": "HIGH users error_pct now 99, usual 0-1"}, "is no line of metrics.txt"),
    "a report on another": ("report", {"service": "postgres"}, "cluster.txt has no service 'postgres'; it has "),
}


@pytest.mark.parametrize("what", REJECTED)
def test_the_verifier_rejects_what_no_document_shows_with_a_reason(what: str) -> None:
    subtask, fields, reason = REJECTED[what]
    scenario = load("medium")[0]
    details = rejections(scenario, {subtask: {**scenario.reference[subtask], **fields}})
    assert any(detail.startswith(f"{subtask}: ") and reason in detail for detail in details), details


def test_a_metric_that_is_not_that_of_the_copied_row_is_rejected() -> None:
    scenario = case("memory_limit")
    metrics = scenario.reference["metrics"]
    [detail] = rejections(scenario, {"metrics": {**metrics, "metric": "disk_pct"}})[:1]
    assert detail == f"metrics: the row '{metrics['row']}' has no disk_pct; name the metric that stands in it"


def test_a_line_may_be_quoted_in_part_and_with_other_blanks() -> None:
    scenario = load("medium")[0]
    quote = "  ".join(scenario.reference["log"]["evidence"].split()[1:])
    assert rejections(scenario, {"log": {**scenario.reference["log"], "evidence": quote}}) == []
    assert graded(scenario, log={"evidence": quote}).parts["log"] == 1.0


def test_a_line_counts_as_copied_whatever_level_it_is_given() -> None:
    scenario = load("medium")[0]
    level, line = scenario.reference["log"]["evidence"].split(maxsplit=1)
    assert level in ("ERROR", "FATAL")
    assert rejections(scenario, {"log": {**scenario.reference["log"], "evidence": f"WARN {line}"}}) == []
    assert graded(scenario, log={"evidence": f"WARN {line}"}).parts["log"] == 1.0
    assert rejections(scenario, {"log": {**scenario.reference["log"], "evidence": f"so {line}"}}) != []


def test_a_size_that_the_service_has_already_is_rejected() -> None:
    scenario = case("memory_limit")
    remediation = scenario.reference["remediation"]
    had = str(int(remediation["value"]) // 2)
    [detail] = rejections(scenario, {"remediation": {**remediation, "value": had}})
    assert detail.endswith(
        f"value is '{had}', which {remediation['service']} has already; its memory_mib_next is {2 * int(had)}"
    )


def test_what_a_configuration_was_set_to_is_not_taken_for_its_key() -> None:
    scenario = case("bad_config")
    remediation = scenario.reference["remediation"]
    [(key, bad, good)] = re.findall(
        rf"config ({remediation['value']}): (\S+), before (\S+)", scenario.task.documents["changes.txt"]
    )
    for value in (bad, good):
        [detail] = rejections(scenario, {"remediation": {**remediation, "value": value}})
        assert f"'{value}', but revert_config takes a key; changes.txt has " in detail and key in detail


def test_a_number_may_be_written_without_quotes() -> None:
    assert (
        Remediation.model_validate({"action": "set_memory", "service": "billing", "source": 512, "value": 1024}).value == "1024"
    )


# The grade


def test_an_answer_is_correct_by_service_cause_and_remedy_alone_and_the_rest_counts_as_parts() -> None:
    scenario = case("disk_full")
    other = next(name for name in scenario.truth["cluster"]["services"] if name != scenario.truth["service"])
    grade = graded(scenario, log={"service": other}, metrics={"metric": "error_pct"})
    assert grade.correct and 0 < grade.score < 1
    assert (grade.parts["log"], grade.parts["metrics"], grade.parts["report"]) == (0.5, 0.5, 1.0)
    assert graded(scenario, report={"service": other}).parts["report"] == 0.5
    grade = graded(scenario, cause={"cause": "memory_limit"})
    assert (grade.correct, grade.note) == (False, "wrong: cause")
    grade = graded(scenario, remediation={"action": "restart"})
    assert (grade.correct, grade.note) == (False, f"wrong: remediation ({scenario.truth['service']} needs more disk_gib)")


def cluster(scenario: Scenario) -> tuple[Cluster, str, Mapping[str, int], int]:
    """The cluster as a grader sees it; the service at fault, its settings, and its replicas."""
    incident_story = story("medium", scenario.instance)
    service = incident_story.topology.services[incident_story.incident.service]
    return incident_story.cluster, service.name, service.settings, service.replicas


def starved(setting: str) -> Cluster:
    """A cluster of one service, of whose three replicas each has 100 of a setting and needs 180; there is much to spare."""
    need = 540 if setting in ("cpu_m", "pool") else 180
    amounts = {"memory_mib": 100, "cpu_m": 100, "disk_gib": 100, "pool": 100, "probe_s": 5}
    service = Service("billing", (), "v1.0.0", 3, amounts, {setting: need}, ("v1.0.0",))
    return Cluster({"billing": service}, dict.fromkeys(amounts, 10_000))


@pytest.mark.parametrize("action", ["set_memory", "set_cpu", "grow_disk", "set_pool"])
def test_any_value_that_covers_the_need_and_fits_is_a_remedy(action: str) -> None:
    before = starved(SETTINGS[action])
    assert [shortcoming(before, action, "billing", value) == "" for value in ("179", "180", "3000")] == [False, True, True]


@pytest.mark.parametrize(("setting", "helps"), [("cpu_m", True), ("pool", True), ("memory_mib", False), ("disk_gib", False)])
def test_more_replicas_are_a_remedy_where_they_share_the_load(setting: str, helps: bool) -> None:
    reason = shortcoming(starved(setting), "scale_out", "billing", "6")
    assert reason == ("" if helps else f"billing needs more {setting}")


def test_a_remedy_that_breaks_something_else_is_none() -> None:
    before, name, settings, _ = cluster(case("memory_limit"))
    assert shortcoming(before, "set_memory", name, "999999") == "the nodes have not so much memory_mib"
    other = next(service for service in before.services if service != name)
    assert shortcoming(before, "set_memory", other, "1").startswith((f"{other} needs", f"{name} needs"))
    before, name, settings, _ = cluster(case("pool_exhausted"))
    assert shortcoming(before, "set_pool", name, "999") == f"the database of {name} takes not so many connections"
    before, name, *_ = cluster(case("strict_probe"))
    assert shortcoming(before, "set_probe", name, "61") == f"the probe of {name} notices nothing"
    before, name, settings, _ = cluster(case("disk_full"))
    smaller = str(settings["disk_gib"] - 1)
    assert shortcoming(before, "grow_disk", name, smaller) == f"grow_disk does not take {smaller}"


@pytest.mark.parametrize("value", ["", "0", "-1", "many", "1e3", "²"])
def test_what_is_no_number_repairs_nothing_and_stops_no_grader(value: str) -> None:
    before, name, *_ = cluster(case("memory_limit"))
    assert shortcoming(before, "set_memory", name, value) == f"set_memory does not take {value}"
    assert shortcoming(before, "set_memory", "nobody", value) == "there is no service nobody"


def test_a_version_that_does_not_start_is_no_way_back() -> None:
    before, name, *_ = cluster(case("bad_image"))
    image = before.services[name].image
    assert shortcoming(before, "rollback_image", name, image) == f"{name} does not start with {image}"


@settings(max_examples=20)
@given(levels, NUMBERS)
def test_the_reference_quotes_a_line_that_tells_the_incident(level: str, number: int) -> None:
    incident_story, made = story_and_incident(level, number)
    lines = [line.dated for line in log(incident_story, (level, f"any_{number}")) if line.about == INCIDENT]
    assert made.reference["log"]["evidence"] == lines[0] and made.truth["log"] == lines


def test_the_causes_of_other_names_are_other_ones() -> None:
    assert [cause_of(f"case_{n:02}") for n in range(1, 11)] != [cause_of(f"dev_{n:02}") for n in range(1, 11)]


def test_one_instance_may_be_loaded_by_its_name() -> None:
    assert load_pack("incidents:hard", ROOTS, "case_07").key == "incidents:hard/case_07"
