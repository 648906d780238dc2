"""A learned policy says which subtasks share a call; what shares one is verified and asked for again together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scripted_model import ScriptedModel
from trials import ROOTS, calls, conducted, events, matrix_of, run_all

from bench.common.errors import ConfigError
from bench.record.events import Judged
from bench.record.policy import LearnedPolicy, PackPolicy, read_policy
from bench.run.architectures.learned_policy import learned_policy
from bench.run.architectures.runtime_structured import runtime_structured
from bench.run.experiment.new_manifest import manifest_of
from bench.run.experiment.trial import TrialResult
from bench.run.packs import load_pack

FILE = Path(__file__).parents[2] / "support" / "orchard_policy.json"
POLICY = read_policy(FILE)
ORCHARD = load_pack("orchard", ROOTS)
PACK = f"orchard/{ORCHARD.instance}"


def cut(*groups: str) -> LearnedPolicy:
    """The policy of the file with these calls, subtasks joined by `+`."""
    pack = PackPolicy(instances=("none",), calls=tuple(tuple(group.split("+")) for group in groups), first_replies={})
    return POLICY.model_copy(update={"packs": {"orchard": pack}})


def trial(policy: LearnedPolicy, script: Any = None, **settings: Any) -> tuple[TrialResult, ScriptedModel]:
    model = ScriptedModel(ORCHARD.reference, script)
    return conducted(partial(learned_policy, policy=policy), pack=PACK, model=model, **settings), model


def test_subtasks_of_one_call_are_asked_for_together_in_the_policys_order() -> None:
    result, _ = trial(POLICY)
    assert (result.record.outcome, calls(result)) == ("solved", [("apples+pears", 1, "first"), ("store", 1, "first")])


def test_a_rejected_output_is_asked_for_again_with_its_call_and_the_reason() -> None:
    wrong = {**ORCHARD.reference, "pears": {"crates": 3}}
    result, model = trial(POLICY, {"apples+pears": [{name: wrong[name] for name in ("apples", "pears")}]})
    again = [("apples+pears", 1, "first"), ("apples+pears", 2, "retry"), ("store", 1, "first")]
    assert (result.record.outcome, calls(result)) == ("solved", again)
    assert "Reason: trees: Field required" in model.requests[1].messages[1].content


def test_with_one_subtask_a_call_it_makes_the_requests_of_runtime_structured() -> None:
    script = {"pears": [{"crates": 3}]}
    _, model = trial(cut("apples", "pears", "store"), script)
    other = ScriptedModel(ORCHARD.reference, script)
    conducted(runtime_structured, pack=PACK, model=other)
    assert [request.messages for request in model.requests] == [request.messages for request in other.requests]


def test_it_gives_up_after_as_many_calls_as_there_are_attempts() -> None:
    result, _ = trial(cut("apples+pears+store"), {"apples+pears+store": ["no"] * 4})
    assert (result.record.outcome, len(calls(result))) == ("gave_up", 3)


def test_a_finding_against_an_earlier_call_takes_its_output_back_and_asks_for_it_alone() -> None:
    pack = load_pack("multi_file_debugging", ROOTS)
    names = [subtask.name for subtask in pack.task.subtasks]
    learned = PackPolicy(instances=("none",), calls=((names[0], names[1]), tuple(names[2:])), first_replies={})
    policy = POLICY.model_copy(update={"packs": {pack.name: learned}})
    fault: Any = {"point": "output", "effect": "says_no", "attempts": [1], "subtask": names[2]}
    result = conducted(partial(learned_policy, policy=policy), pack=pack.name, faults=[fault])
    assert result.record.outcome == "solved"
    assert {judged.reason for judged in events(result, Judged)} == {"", "found_wrong"}
    assert calls(result)[2] == (names[1], 2, "retry")


def matrix(policy: Path | None = FILE, **settings: Any) -> Any:
    variant = {"base": "learned_policy", **({"policy": policy} if policy else {})}
    return matrix_of("orchard", architecture={"learned": variant}, architectures=["static", "learned"], **settings)


def file_of(policy: LearnedPolicy, folder: Path) -> Path:
    file = folder / "policy.json"
    file.write_text(policy.model_dump_json(), encoding="utf-8")
    return file


def test_what_it_learned_is_in_the_ids_of_its_own_trials_and_of_no_others(tmp_path: Path) -> None:
    ids = [
        {spec.architecture: spec.id for spec in made.specs if spec.instance == ORCHARD.instance}
        for made in (matrix(), matrix(file_of(cut("apples", "pears+store"), tmp_path)))
    ]
    assert ids[0]["static"] == ids[1]["static"] and ids[0]["learned"] != ids[1]["learned"]


def test_from_which_run_it_was_learned_changes_no_id_where_the_same_was_learned(tmp_path: Path) -> None:
    other = POLICY.model_copy(update={"run": "another", "digest": "another"})
    assert [spec.id for spec in matrix(file_of(other, tmp_path)).specs] == [spec.id for spec in matrix().specs]


def test_no_instance_on_which_it_was_learned_is_run_by_any_architecture_and_the_manifest_says_which(tmp_path: Path) -> None:
    every = {spec.instance for spec in matrix().specs}
    seen = cut("apples", "pears", "store").packs["orchard"].model_copy(update={"instances": (ORCHARD.instance,)})
    made = matrix(file_of(POLICY.model_copy(update={"packs": {"orchard": seen}}), tmp_path))
    assert {(spec.architecture, spec.instance) for spec in made.specs} == {
        (name, instance) for name in ("static", "learned") for instance in every - {ORCHARD.instance}
    }
    manifest = manifest_of(made, "learned")
    assert manifest.policies["learned"].packs["orchard"].instances == (ORCHARD.instance,)
    assert ORCHARD.instance not in manifest.scenarios["orchard"].instances


def test_a_pack_of_which_no_instance_is_fresh_is_refused(tmp_path: Path) -> None:
    every = tuple({spec.instance for spec in matrix().specs})
    seen = POLICY.packs["orchard"].model_copy(update={"instances": every})
    with pytest.raises(ConfigError, match="'orchard' has no instance on which no policy of this config was learned; learn on"):
        matrix(file_of(POLICY.model_copy(update={"packs": {"orchard": seen}}), tmp_path))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"architecture": {"it": {"base": "learned_policy"}}},
            "'learned_policy' follows a learned policy; give its variant one",
        ),
        (
            {"architecture": {"it": {"base": "static", "policy": FILE}}},
            "architecture 'static' follows no learned policy; leave",
        ),
        (
            {"architecture": {"it": {"base": "learned_policy", "policy": FILE}}},
            "architecture.it: the policy was learned for orchard",
        ),
        (
            {"architecture": {"it": {"base": "learned_policy", "policy": "none.json"}}},
            "none.json: cannot be read: No such file",
        ),
        ({"architecture": {"it": {"base": "learned_policy", "policy": __file__}}}, "test_learned_policy.py: is not a policy: "),
    ],
)
def test_a_policy_that_is_missing_or_does_not_fit_is_refused_in_one_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        matrix_of("tiny", architectures=["it"], **settings)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_policy_for_other_subtasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="learned for other subtasks than those of scenario 'orchard'; learn it anew"):
        matrix(file_of(cut("apples", "plums", "store"), tmp_path))


def test_it_runs_as_a_variant_in_a_config() -> None:
    results = [result for result in run_all(matrix()) if result.record.architecture == "learned"]
    assert results and all(calls(result)[0] == ("apples+pears", 1, "first") for result in results)
