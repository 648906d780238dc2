"""ITBench's snapshots become tasks, bounded and the same each time, and are graded by ITBench's definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snapshots import EARLY, FLAGS_TRUTH, LATE, QUOTA_TRUTH, SHOP, alert, event, snapshot, snapshots_of_a_shop, thing
from trials import matrix_of, run_all

from bench.cli.authoring.check import check_pack
from bench.common.errors import PackError, Unavailable
from bench.common.tokens import count_tokens
from bench.run.packs import instances_of, load_instances, load_pack
from bench.run.packs.code import code_of
from bench.scenario import Context, Scenario
from scenarios.itbench.documents import BUDGET, documents_of
from scenarios.itbench.entities import Entity, parsed
from scenarios.itbench.objects import cluster_of
from scenarios.itbench.truth import Truth, precision_and_recall

ROOTS = (Path(__file__).parents[2] / "scenarios",)
SCENES = Path(__file__).parents[1] / "support" / "scenes"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_ITBENCH", str(tmp_path))
    return snapshots_of_a_shop(tmp_path)


@pytest.fixture
def flags(shop: Path) -> Scenario:
    assert shop.is_dir()
    return load_pack("itbench", ROOTS, "scenario_2")


def refusal(instance: str = "scenario_1") -> str:
    with pytest.raises(PackError) as refused:
        load_pack("itbench", ROOTS, instance)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_without_snapshots_the_pack_says_what_to_fetch_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_ITBENCH", str(tmp_path))
    [(_, result)] = check_pack("itbench", ROOTS)
    assert result.status == "note" and result.what.startswith("not available here: ")
    assert f"ITBench-Lite --repo-type dataset --include 'snapshots/sre/*' --local-dir {tmp_path}" in result.what
    with pytest.raises(Unavailable):
        load_instances("itbench", ROOTS)


@pytest.mark.usefixtures("shop")
def test_snapshots_become_a_sound_pack_in_the_order_of_their_numbers() -> None:
    assert instances_of("itbench", ROOTS) == ("scenario_2", "scenario_10")
    assert [result for _, result in check_pack("itbench", ROOTS) if result.status != "ok"] == []


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("effect", ["missing_field", "wrong_value", "truncated"])
def test_under_a_fault_every_architecture_ends_without_an_error(effect: str) -> None:
    plan = {"plan": [{"point": "output", "effect": effect, "attempts": [1]}]}
    outcomes = {result.record.outcome for result in run_all(matrix_of("itbench", plan, instances=1))}
    assert outcomes <= {"solved", "wrong", "gave_up"}


def test_documents_tell_what_fired_what_changed_and_what_failed(flags: Scenario) -> None:
    documents = flags.task.documents
    assert documents["alerts.txt"].splitlines() == [
        "2025-01-01 12:00:05 RequestErrorRate shop/Service/cart (in 1 dumps): it fails",
        "2025-01-01 12:00:10 RequestErrorRate shop/Service/frontend (in 2 dumps): it fails",
    ]
    assert documents["changes.txt"] == (
        "2025-01-01 11:59:30 shop/ConfigMap/flags-config data.flags: a: off cartFails: off -> a: off cartFails: on"
    )
    assert documents["events.txt"] == "3x Warning Unhealthy shop/Pod/cart-5d9c-x7k2p, last 2025-01-01 12:01:00: said"
    assert documents["logs.txt"] == "2x cart, first 2025-01-01 12:00:01: flag cartFails is on, basket 17 lost"
    assert documents["entities.txt"].splitlines()[-1] == "prometheus/Deployment/: operator"


def test_what_was_made_meanwhile_is_a_change_and_what_pods_do_is_none(tmp_path: Path) -> None:
    pods = [(LATE, thing("Pod", "cart-5d9c-x7k2p", spec={"node": "b"})), (LATE, thing("Pod", "new", made="11:59:00"))]
    folder = snapshot(tmp_path / "s", FLAGS_TRUTH, objects=[*SHOP, *pods, (LATE, thing("Job", "late", made="11:58:00"))])
    assert [str(change.entity) for change in cluster_of(folder).changes] == ["shop/Job/late"]


def test_documents_are_bounded_however_much_there_is_and_say_what_is_left_out(tmp_path: Path) -> None:
    many = range(400)
    folder = snapshot(
        tmp_path / "s",
        FLAGS_TRUTH,
        alerts=[[alert("Slow", "12:00:00", "so slow " * 40, pod=f"pod-{number}") for number in many]],
        objects=[(EARLY, thing("ConfigMap", f"map-{number}", data={"a": "1"})) for number in many]
        + [(LATE, thing("ConfigMap", f"map-{number}", data={"a": "2"})) for number in many],
        events=[(LATE, event("Failed", f"pod-{number}", message="failed " * 90)) for number in many],
        logs=[(LATE, "ERROR", f"service-{number}", "word " * 200) for number in many],
    )
    documents = documents_of(folder, cluster_of(folder))
    for name, text in documents.items():
        assert BUDGET[name] // 2 < count_tokens(text) <= BUDGET[name] and text.endswith(" more)")
    assert documents == documents_of(folder, cluster_of(folder))


@pytest.fixture
def bakery(monkeypatch: pytest.MonkeyPatch) -> Scenario:
    """A whole scene of our own, on disk in the form in which ITBench publishes its scenarios, with all files and columns."""
    monkeypatch.setenv("BENCH_ITBENCH", str(SCENES))
    return load_pack("itbench", ROOTS)


def test_a_scene_in_the_published_form_is_loaded_with_all_that_tells_its_cause(bakery: Scenario) -> None:
    documents = bakery.task.documents
    assert (bakery.instance, instances_of("itbench", ROOTS)) == ("scenario_7", ("scenario_7",))
    assert [line.split(" (")[0] for line in documents["alerts.txt"].splitlines()] == [
        "2026-03-02 09:07:05 RequestErrorRate bakery/Service/price",
        "2026-03-02 09:07:35 RequestErrorRate bakery/Service/storefront",
        "2026-03-02 09:08:05 KubePodNotReady bakery/Pod/price-6c9d8f7b5-m8n5b",
    ]
    policy = "bakery/NetworkPolicy/ledger-ingress spec.ingress[0].from[0].podSelector.matchLabels.app: price -> pricing"
    assert documents["changes.txt"].splitlines() == [
        "2026-03-02 09:06:00 bakery/ConfigMap/storefront-settings data.banner: spring -> easter",
        f"2026-03-02 09:06:00 {policy}",
    ]
    assert documents["events.txt"].startswith("5x Warning Unhealthy bakery/Pod/price-6c9d8f7b5-m8n5b, last 2026-03-02 09:09:20")
    assert documents["logs.txt"].splitlines() == [
        '2x price, first 2026-03-02 09:06:41: call of "ledger:8080" failed: connection timed out after 3 tries (order 4711)',
        "1x storefront, first 2026-03-02 09:07:03: no price for order 4712: upstream answered 503",
    ]
    assert "bakery/NetworkPolicy/: ledger-ingress" in documents["entities.txt"]


@pytest.mark.usefixtures("bakery")
def test_a_scene_in_the_published_form_is_sound_and_every_architecture_solves_it() -> None:
    assert [result for _, result in check_pack("itbench", ROOTS) if result.status != "ok"] == []
    results = run_all(matrix_of("itbench"))
    assert len(results) >= 3 and {result.record.outcome for result in results} == {"solved"}


@pytest.mark.parametrize(
    ("entities", "f1"),
    [
        (["bakery/NetworkPolicy/ledger-ingress"], 1),
        (["bakery/NetworkPolicy/ledger-ingress", "bakery/Service/price"], 2 / 3),
        (["bakery/ConfigMap/storefront-settings"], 0),
        (["bakery/Pod/ledger-6c9d8f7b5-t6y3u"], 0),
        (["shop/NetworkPolicy/ledger-ingress"], 0),
    ],
)
def test_a_scene_in_the_published_form_is_graded_by_its_root_cause(bakery: Scenario, entities: list[str], f1: float) -> None:
    grade = bakery.grade_outputs({**bakery.reference, **named(*entities)})
    assert grade.score == grade.parts["f1"] == pytest.approx(f1) and grade.correct is (f1 == 1)
    right = bakery.grade_outputs(bakery.reference)
    assert right.parts["propagation"] == 1 and grade.parts["propagation"] == 0


def named(*entities: str) -> dict[str, Any]:
    return {"root_cause": {"because": "", "entities": list(entities)}, "propagation": {"links": []}}


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("entities", "precision", "recall"),
    [
        (["cluster/Namespace/shop", "shop/Pod/ad-1"], 1, 1),
        (["shop/Namespace/shop", "shop/deployment/ad"], 1, 1),
        (["cluster/Namespace/shop"], 1, 0.5),
        (["cluster/Namespace/shop", "shop/Pod/ad-1", "shop/Deployment/ad"], 1, 1),
        (["cluster/Namespace/shop", "shop/Pod/ad-1", "shop/Service/ad"], 2 / 3, 1),
        (["cluster/Namespace/shop", "shop/Pod/ad-1", "shop/Pod/ad-1"], 1, 1),
        (["cluster/Namespace/shop", "other/Pod/ad-1"], 0.5, 0.5),
        (["shop/Deployment/ad-service"], 0, 0),
        (["no entity at all"], 0, 0),
    ],
)
def test_an_entity_is_right_by_kind_namespace_and_whole_name_of_a_root_cause_or_its_alias(
    entities: list[str], precision: float, recall: float
) -> None:
    grade = load_pack("itbench", ROOTS, "scenario_10").grade_outputs(named(*entities))
    assert (grade.parts["precision"], grade.parts["recall"]) == pytest.approx((precision, recall))
    assert grade.correct is (precision == recall == 1)
    assert grade.score == pytest.approx(2 * precision * recall / (precision + recall) if precision else 0)


def test_what_grades_and_what_makes_the_documents_is_no_part_of_what_is_asked(flags: Scenario) -> None:
    asked = {path.name for path in code_of(ROOTS[0] / "itbench", flags).asked}
    assert asked == {"scenario.py", "checks.py", "entities.py", "place.py", "schemas.py"}


def test_the_propagation_is_a_part_that_decides_nothing(flags: Scenario) -> None:
    half = {**flags.reference, "propagation": {"links": flags.reference["propagation"]["links"][:1]}}
    grade = flags.grade_outputs(half)
    assert grade.correct and grade.score == 1 and grade.parts["propagation"] == 0.5


def test_the_verifier_rejects_what_no_document_shows(flags: Scenario) -> None:
    symptoms, root_cause, propagation = flags.task.subtasks
    outputs = {"root_cause": root_cause.output.model_validate({"because": "", "entities": ["shop/Pod/cart-1"]})}
    context = Context(flags.task.documents, outputs)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (symptoms, {"first_alert": "12:34:56 Made up", "affected": ["shop/Pod/a"]}, "is no line of alerts.txt"),
        (symptoms, {"first_alert": "12:00:05 RequestErrorRate", "affected": ["cart"]}, "'cart' is no entity"),
        (root_cause, {"because": "", "entities": ["shop/Pod/basket-5d9c-x7k2p"]}, "no document names 'basket-5d9c-x7k2p'"),
        (propagation, {"links": [{"source": "shop/Pod/a", "target": "shop/Pod/b"}]}, "no link begins at a root cause"),
    ]
    for subtask, value, words in cases:
        objections = [check(subtask.output.model_validate(value), context) for check in subtask.checks]
        assert any(words in objection for objection in objections if objection), (words, objections)


SHOWN = alert("RequestErrorRate", "12:00:00", service_name="cart")


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ("groups: [", "is no YAML"),
        ("[]", "is no ground truth of ITBench"),
        ("groups: [{id: a, kind: Pod}]", "is no ground truth of ITBench: groups.0.filter"),
        ("groups: [{id: a, kind: Pod, filter: ['(']}]", "has a pattern that cannot be read"),
        ("groups: [{id: a, kind: Pod, filter: [a]}]", "marks no group as root_cause"),
        (
            "groups: [{id: a, kind: Pod, filter: [gone], root_cause: true}]",
            "no document made of it names its root cause (Pod gone)",
        ),
    ],
)
def test_a_snapshot_that_cannot_be_graded_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truth: str, words: str
) -> None:
    monkeypatch.setenv("BENCH_ITBENCH", str(tmp_path))
    folder = snapshot(tmp_path / "Scenario-1", truth, alerts=[[SHOWN]], objects=SHOP)
    assert words in refusal() and str(folder) in refusal()


def test_a_damaged_file_is_refused_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_ITBENCH", str(tmp_path))
    folder = snapshot(tmp_path / "Scenario-1", QUOTA_TRUTH, alerts=[[SHOWN]], objects=SHOP)
    (folder / "otel_logs_raw.tsv").write_text('Timestamp\tSeverityText\tServiceName\tBody\n1\t2\t"3\n')
    assert "otel_logs_raw.tsv: is no table separated by tabs" in refusal()
    for text in ("{", "[" * 100_000, "9" * 5000):
        (folder / "alerts" / "alerts_at_2025-01-01T12-00-00.000001.json").write_text(text)
        assert "alerts_at_2025-01-01T12-00-00.000001.json: is no JSON" in refusal()
    for text in ("groups: [" + "[" * 1000, "groups: 2025-99-99", "groups: 0x" + "_" * 3, "a: &a [*a]\ngroups: [*a]", "\0"):
        (folder / "ground_truth.yaml").write_text(text)
        assert "ground_truth.yaml: is no" in refusal()
    (folder / "ground_truth.yaml").write_text(QUOTA_TRUTH)
    snapshot(tmp_path / "copy" / "scenario_1", QUOTA_TRUTH)
    assert "are both 'scenario_1'; keep one of them" in refusal()


@given(st.text(max_size=30))
def test_whatever_an_answer_names_is_an_entity_or_none(name: str) -> None:
    entity = parsed(name)
    assert entity is None or (entity.kind and parsed(str(entity)) == entity)


IDS = st.sampled_from("abcd")
GROUPS = st.lists(st.tuples(IDS, st.booleans()), min_size=1, max_size=4, unique_by=lambda group: group[0])


@given(GROUPS, st.lists(st.lists(IDS, min_size=1, max_size=3), max_size=3), st.lists(IDS, max_size=4))
def test_precision_and_recall_are_shares_and_naming_every_root_cause_recalls_all(
    groups: list[tuple[str, bool]], aliases: list[list[str]], names: list[str]
) -> None:
    every = [*groups, ("z", True)]
    marked = [{"id": id_, "kind": "Pod", "filter": [id_], "root_cause": root} for id_, root in every]
    truth = Truth.model_validate({"groups": marked, "aliases": aliases})
    precision, recall = precision_and_recall(truth, [Entity("", "Pod", name) for name in names])
    assert 0 <= precision <= 1 and 0 <= recall <= 1 and (precision > 0) == (recall > 0)
    assert precision_and_recall(truth, [Entity("", "Pod", id_) for id_, root in every if root]) == (1, 1)
