"""The pack k8s_oomkill: its documents, its verifier, its grader, and the kubectl reader that both stand on."""

from __future__ import annotations

import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.common.tokens import count_tokens
from bench.run.packs import load_pack
from bench.scenario import Answer, Context, Grade, Json, Scenario

ROOT = Path(__file__).parents[2]
PACK = ROOT / "scenarios" / "k8s_oomkill"
TOKENS = {"paper": 650, "medium": 4000, "large": 10_000}
UNDO = "kubectl rollout undo deployment/payment-svc -n payments"
CAUSE = "root_cause_analysis"


@cache
def load(size: str = "medium") -> Scenario:
    return load_pack(f"k8s_oomkill:{size}", [ROOT / "scenarios"])


def module(name: str) -> Any:
    """A module of the pack, as the loaded pack itself sees it."""
    return importlib.import_module(f"{load().grade.__module__.rpartition('.')[0]}.{name}")


def answer(outputs: dict[str, Json], size: str = "medium") -> Answer:
    """The reference with these outputs, or these fields of an output, exchanged."""
    whole = {name: {**output, **outputs.get(name, {})} for name, output in load(size).reference.items()}
    return {subtask.name: subtask.output.model_validate(whole[subtask.name]) for subtask in load(size).task.subtasks}


def grade(outputs: dict[str, Json], size: str = "medium") -> Grade:
    return load(size).grade(answer(outputs, size), load(size).truth)


def planned(*commands: str) -> Grade:
    return grade({"remediation_planning": {"commands": list(commands)}})


def rejections(given_answer: Answer, size: str = "medium") -> dict[str, str]:
    """Subtask -> the first reason of its checks, for those that reject."""
    refusals: dict[str, str] = {}
    for subtask in load(size).task.subtasks:
        context = Context(load(size).task.documents, {name: given_answer.get(name) for name in subtask.reads})
        reasons = [reason for check in subtask.checks if (reason := check(given_answer[subtask.name], context))]
        if reasons:
            refusals[subtask.name] = reasons[0]
    return refusals


def rejected(subtask: str, **fields: Json) -> str:
    return rejections(answer({subtask: fields})).get(subtask, "")


sizes = pytest.mark.parametrize("size", TOKENS)


# --- documents


def test_the_generator_writes_the_committed_documents_byte_for_byte(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scenarios.k8s_oomkill.generate", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    committed = PACK / "documents"
    assert written == {path.relative_to(committed): path.read_bytes() for path in committed.rglob("*.*")}


@sizes
def test_the_documents_of_a_size_are_as_long_as_it_says(size: str) -> None:
    tokens = sum(map(count_tokens, load(size).task.documents.values()))
    assert tokens == pytest.approx(TOKENS[size], rel=0.15)


@sizes
def test_no_secret_stands_in_a_document_or_an_instruction(size: str) -> None:
    task = load(size).task
    texts = [task.role, *task.documents.values(), *(subtask.instructions for subtask in task.subtasks)]
    assert not [secret for secret in load(size).secrets for text in texts if secret.lower() in text.lower()]


@sizes
def test_every_secret_is_a_phrase_of_the_reference(size: str) -> None:
    text = str(load(size).reference)
    assert all(secret in text for secret in load(size).secrets)


@sizes
def test_in_every_size_the_heap_grows_after_the_rollout_and_before_the_pool_is_exhausted(size: str) -> None:
    rows = [line.split() for line in load(size).task.documents["metrics.txt"].splitlines()[1:]]
    grown = min(row[0] for row in rows if int(row[2]) > 1000)
    exhausted = min(row[0] for row in rows if row[3] in ("50/50", "80/80"))
    assert "14:02" < grown < exhausted < "14:09"
    assert all(row[5] == "100" for row in rows), "the cache is full all day"


@sizes
def test_no_single_document_tells_the_version_the_bulk_load_and_the_kill(size: str) -> None:
    signs = ("single fetch", "n=84000", "OOMKilled")
    held = [[sign for sign in signs if sign in text] for text in load(size).task.documents.values()]
    assert sorted(map(len, held)) == [0, 1, 1, 1]


# --- grading


@sizes
def test_the_reference_is_correct_with_full_marks_and_passes_every_check(size: str) -> None:
    graded = grade({}, size)
    assert (graded.correct, graded.score, graded.note) == (True, 1.0, "")
    assert rejections(answer({}, size), size) == {}


@sizes
def test_a_wrong_answer_is_refused_in_every_size(size: str) -> None:
    for wrong in load().wrong:
        graded = grade(dict(wrong.outputs), size)
        assert not graded.correct, wrong.name
        assert graded.score < 1, wrong.name
        assert graded.note, wrong.name


def test_most_wrong_answers_pass_the_verifier_so_that_only_the_grader_finds_them() -> None:
    passing = [wrong.name for wrong in load().wrong if not rejections(answer(dict(wrong.outputs)))]
    assert len(passing) > len(load().wrong) / 2


def test_every_subtask_is_wrong_in_some_wrong_answer() -> None:
    assert {name for wrong in load().wrong for name in wrong.outputs} == set(load().reference)


@sizes
def test_keywords_alone_give_a_valid_answer_that_is_not_correct(size: str) -> None:
    outputs = load(size).baseline(load(size).task.documents)
    valid = {subtask.name: subtask.output.model_validate(outputs[subtask.name]) for subtask in load(size).task.subtasks}
    graded = load(size).grade(valid, load(size).truth)
    assert not graded.correct
    assert 0 < graded.score < 0.75


GOOD_CHAIN = ["deployment", "bulk_load", "heap_growth", "gc_pause", "pool_exhausted", "latency_breach", "oom_kill"]


@pytest.mark.parametrize(
    ("chain", "sound"),
    [
        (GOOD_CHAIN, True),
        (["bulk_load", "heap_growth", "oom_kill"], True),
        (["deployment", "heap_growth", "oom_kill", "pool_exhausted"], True),
        (["heap_growth", "bulk_load", "oom_kill"], False),
        (["heap_growth", "latency_breach", "oom_kill"], False),
        (["bulk_load", "deployment", "heap_growth", "oom_kill"], False),
        (["deployment", "oom_kill", "heap_growth"], False),
        (["deployment", "pool_exhausted", "heap_growth", "oom_kill"], False),
        (["deployment", "heap_growth", "pool_exhausted"], False),
        (["deployment", "heap_growth", "cpu_contention", "oom_kill"], False),
        (GOOD_CHAIN[::-1], False),
        ([], False),
    ],
)
def test_a_chain_is_sound_if_the_root_comes_first_and_effects_after_their_causes(chain: list[str], sound: bool) -> None:
    assert grade({CAUSE: {"causal_chain": chain}}).correct is sound


def test_the_score_of_a_chain_is_the_longest_common_subsequence_over_the_longer_chain() -> None:
    share = module("grader").chain_share
    assert share(GOOD_CHAIN, GOOD_CHAIN) == 1
    assert share(GOOD_CHAIN[::2], GOOD_CHAIN) == pytest.approx(4 / 7)
    assert share(GOOD_CHAIN[::-1], GOOD_CHAIN) == pytest.approx(1 / 7)
    assert share([*GOOD_CHAIN, "cache_full"], GOOD_CHAIN) == pytest.approx(7 / 8)
    assert share([], GOOD_CHAIN) == 0


@pytest.mark.parametrize(
    ("commands", "share"),
    [
        ((UNDO,), 1),
        (("kubectl -n payments rollout undo deploy payment-svc --to-revision 41",), 1),
        (("kubectl set image deployment/payment-svc payment-svc=payment-svc:v2.4.1 --namespace=payments",), 1),
        ((UNDO, UNDO, UNDO), 1),
        ((UNDO, UNDO), 0.5),
        ((UNDO, "kubectl set image deployment/payment-svc payment-svc=payment-svc:v2.4.2 -n payments"), 0.5),
        (("kubectl rollout undo deployment/payment-svc --to-revision=40 -n payments",), 0.5),
        (("kubectl get pods -n payments",), 0.5),
        (("kubectl rollout undo deployment/payment-svc --to-revision=7 -n payments",), 0),
        ((UNDO, "kubectl rollout undo deployment/payment-svc --to-revision=41 -n payments"), 0),
        ((UNDO.replace("-n payments", "-n default"),), 0),
        ((UNDO.replace("-n payments", "-n ledger-svc"),), 0),
        ((UNDO, "kubectl rollout restart deployment/ledger-svc -n payments"), 0),
        (("kubectl set image deployment/payment-svc ledger-svc=payment-svc:v2.4.1 -n payments",), 0),
        ((UNDO, "kubectl set image deployment/payment-svc payment-svc=report-gen -n payments"), 0),
        (("kubectl set image deployment/payment-svc payment-svc=ledger-svc:v2.4.1 -n payments",), 0),
        ((UNDO, "kubectl delete pod payment-svc-7b6f4 -n payments"), 0),
        ((), 0),
    ],
)
def test_commands_are_followed_to_the_version_that_runs_in_the_end(commands: tuple[str, ...], share: float) -> None:
    graded = planned(*commands)
    assert graded.parts["remediation"] == share
    assert graded.correct is (share == 1)


@pytest.mark.parametrize(
    ("kind", "severity", "score"),
    [("background", "low", 1), ("background", "high", 1), ("resource", "low", 1), ("resource", "high", 14 / 15)],
)
def test_an_anomaly_set_aside_is_not_held_against_the_answer(kind: str, severity: str, score: float) -> None:
    cache_full = {"anomaly": "cache_full", "type": kind, "severity": severity, "confidence": 0.9}
    anomalies = [*load().reference["anomaly_classification"]["anomalies"], cache_full]
    assert grade({"anomaly_classification": {"anomalies": anomalies}}).parts["anomalies"] == pytest.approx(score)


# --- checks


def test_the_time_of_a_signal_must_stand_in_a_document() -> None:
    signal = load().reference["log_triage"]["signals"][1]
    assert "signal 1" in rejected("log_triage", signals=[signal | {"time": "04:44:44"}])
    assert "signal 2" in rejected("log_triage", signals=[signal, signal | {"time": "pool"}])
    assert rejected("log_triage", signals=[signal | {"time": ""}])
    assert not rejected("log_triage", signals=[signal, signal | {"time": "14:02:59"}])


@pytest.mark.parametrize("field", ["namespace", "deployment", "version", "previous_version"])
def test_a_name_in_the_triage_must_stand_in_a_document_as_a_whole_word(field: str) -> None:
    assert field in rejected("log_triage", **{field: "svc"})


def test_a_version_may_be_written_without_its_v() -> None:
    assert not rejected("log_triage", version="2.4.2", previous_version="v2.4.1")


def test_an_anomaly_named_twice_is_rejected() -> None:
    anomaly = load().reference["anomaly_classification"]["anomalies"][0]
    assert anomaly["anomaly"] in rejected("anomaly_classification", anomalies=[anomaly, anomaly])


def test_a_causal_chain_that_is_short_or_goes_round_is_rejected() -> None:
    assert "at least 3" in rejected(CAUSE, causal_chain=GOOD_CHAIN[:2])
    assert "twice" in rejected(CAUSE, causal_chain=[*GOOD_CHAIN, "heap_growth"])


def test_a_command_naming_what_no_document_names_is_rejected() -> None:
    assert "'payments-api'" in rejected("remediation_planning", commands=[UNDO.replace("payment-svc", "payments-api")])


def test_a_report_that_departs_from_the_analysis_is_rejected() -> None:
    assert "component" in rejected("report_synthesis", component="redis")
    assert "trigger" in rejected("report_synthesis", trigger="config_change")


@pytest.mark.parametrize(
    ("subtask", "fields", "word"),
    [
        ("log_triage", {"signals": []}, "signals"),
        ("anomaly_classification", {"anomalies": []}, "anomaly"),
        ("root_cause_analysis", {"confidence": 0.59}, "0.59"),
        ("remediation_planning", {"commands": []}, "command"),
    ],
)
def test_an_output_that_is_empty_or_unsure_is_insufficient(subtask: str, fields: dict[str, Json], word: str) -> None:
    sufficient = load().task.subtask(subtask).sufficient
    assert sufficient is not None
    assert sufficient(answer({})[subtask]) is None
    assert word in (sufficient(answer({subtask: fields})[subtask]) or "")


def test_anomalies_are_insufficient_if_their_mean_confidence_is_low() -> None:
    anomalies = [a | {"confidence": 0.5} for a in load().reference["anomaly_classification"]["anomalies"]]
    assert "0.50" in module("checks").confident_anomalies(
        answer({"anomaly_classification": {"anomalies": anomalies}})["anomaly_classification"]
    )


def test_no_plan_is_asked_for_where_the_analysis_needs_none() -> None:
    skip = load().task.subtask("remediation_planning").skip
    assert skip is not None
    assert skip(answer({})) is None
    skipped = skip(answer({CAUSE: {"remediation_needed": False}}))
    assert skipped is not None
    assert skipped.model_dump()["commands"] == []


# --- kubectl

DESTRUCTIVE = [
    "delete namespace payments",
    "delete deployment/payment-svc",
    "drain node-7",
    "cordon node-7",
    "taint nodes node-7 a=b:NoExecute",
    "replace --force -f payment.yaml",
    "apply -f payment.yaml",
    "exec payment-svc-7b6f4 -- rm -rf /data",
    "patch deployment payment-svc -p x",
    "scale deployment/payment-svc --replicas=0",
    "scale deployment/payment-svc --replicas 00",
    "scale deployment/payment-svc --replicas=3 --replicas=0",
    "scale deployment/payment-svc",
    "scale statefulset/postgres --replicas=1",
    "scale pod/payment-svc-7b6f4 --replicas=1",
    "rollout undo deployment --all",
    "rollout pause deployment/payment-svc",
    "edit deployment payment-svc",
]
FRAGMENTS = [
    *("kubectl", "rollout", "undo", "restart", "set", "image", "scale", "get", "pods", "logs", "delete"),
    *("deployment/payment-svc", "deployment", "payment-svc=payment-svc:v2.4.1", "--to-revision=41"),
    *("-n", "payments", "--replicas=2", "--replicas", "--", "--force", "'", '"'),
]


@pytest.mark.parametrize(
    "form",
    [
        "kubectl {} -n payments",
        "kubectl -n payments {}",
        "kubectl {} -n payments --force",
        UNDO + "; kubectl {}",
        UNDO + " && kubectl {}",
        UNDO + "\nkubectl {}",
        UNDO + " $(kubectl {})",
        UNDO + " | kubectl {}",
        "sh -c 'kubectl {}'",
    ],
)
def test_a_destructive_command_is_refused_wherever_it_hides(form: str) -> None:
    parse = module("kubectl").parse
    assert [command for command in DESTRUCTIVE if not isinstance(parse(form.format(command)), str)] == []


@given(st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS)).map(" ".join)))
def test_reading_any_text_never_raises_and_lets_only_listed_verbs_pass(text: str) -> None:
    kubectl = module("kubectl")
    command = kubectl.parse(text)
    if isinstance(command, str):
        assert command
        return
    assert command.verb in kubectl.CHANGING | kubectl.READING
    assert not set(text) & set(";&|<>$`\\\n\r#(){}")
    if command.changes:
        assert command.namespace
        assert command.objects
        assert all(kind == "deployment" and name for kind, name in command.objects)
    if command.verb == ("scale",):
        assert int(command.flags["--replicas"]) > 0


@given(st.lists(st.sampled_from(FRAGMENTS)).map(" ".join))
def test_any_plan_is_graded_without_an_exception(text: str) -> None:
    assert 0 <= planned(UNDO, text).score <= 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("helm rollback payment-svc", "start with kubectl"),
        ("kubectl get 'pods", "quote"),
        ("kubectl rollout undo deployment/<name> -n payments", "placeholder"),
        ("kubectl rollout undo -n payments", "names no deployment"),
        ("kubectl rollout undo deployment/payment-svc", "namespace"),
        ("kubectl rollout undo deployment/payment-svc -n payments --to-revision=last", "number"),
        ("kubectl set image deployment/payment-svc -n payments", "CONTAINER=IMAGE"),
        ("kubectl get secret/token -n payments", "no kind"),
        ("kubectl describe deployment/payment-svc pods", "kind/name"),
        ("kubectl", "verb"),
    ],
)
def test_a_refused_command_is_told_what_to_do_instead(text: str, word: str) -> None:
    assert word in module("kubectl").parse(text)


def test_both_spellings_of_an_object_are_read_alike() -> None:
    parse = module("kubectl").parse
    assert parse(UNDO) == parse("kubectl rollout undo deploy payment-svc --namespace payments")
    assert parse("kubectl logs payment-svc-7b6f4 --previous").objects == (("pod", "payment-svc-7b6f4"),)
