"""A config means the same trials, in the same order, under the same ids, until something that determines them changes."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.cli.authoring.new import new_scenario
from bench.common.errors import ConfigError, PackError
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.model_entries import SimulatedEntry
from bench.run.trial.trial import Settings
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

ARCHITECTURES = ("static", "runtime_structured")


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    new_scenario("demo", tmp_path)
    new_scenario("other", tmp_path)
    return tmp_path


def config(**changes: Any) -> Config:
    values: dict[str, Any] = {
        "name": "test",
        "scenarios": ("demo", "other"),
        "architectures": ARCHITECTURES,
        "models": ("simulated",),
        "plans": ("none", "first"),
        "repetitions": 4,
        "seed": 7,
        "model": {"simulated": SimulatedEntry(kind="simulated")},
        "plan": {"first": {"faults": [{"point": "output", "effect": "empty", "attempts": [1]}]}},
    }
    return Config.model_validate({**values, **changes})


def ids(matrix: Matrix) -> set[str]:
    return {spec.id for spec in matrix.specs}


def test_every_combination_is_there_once(packs: Path) -> None:
    matrix = build_matrix(config(), [packs], "code")
    arms = Counter((spec.scenario, spec.architecture, spec.plan.name, spec.repetition) for spec in matrix.specs)
    assert len(arms) == 2 * 2 * 2 * 4 and set(arms.values()) == {1}
    assert len(ids(matrix)) == len(matrix.specs)


def limited(*packs: str) -> Config:
    fault = {"point": "output", "effect": "empty", "attempts": [1]}
    return config(plan={"first": {"scenarios": packs, "faults": [fault]}})


def test_a_plan_is_run_on_the_packs_that_it_names_and_no_others(packs: Path) -> None:
    whole, matrix = (build_matrix(given, [packs], "code") for given in (config(), limited("other")))
    assert {(spec.scenario, spec.plan.name) for spec in matrix.specs} == {
        ("demo", "none"),
        ("other", "none"),
        ("other", "first"),
    }
    assert len(matrix.specs) == len(list(matrix.specs)) == 3 * 2 * 4
    assert ids(matrix) < ids(whole), "the trials are those of a plan without a limit"


def test_a_plan_for_a_pack_that_nobody_has_is_refused_and_one_for_a_pack_that_is_left_out_is_not(packs: Path) -> None:
    with pytest.raises(ConfigError, match=r"plan 'first': scenarios names no pack 'ohter'; did you mean 'other'"):
        build_matrix(limited("ohter"), [packs], "code")
    alone = limited("other").model_copy(update={"scenarios": ("demo",)})
    assert {spec.plan.name for spec in build_matrix(alone, [packs], "code").specs} == {"none"}


def test_all_arms_of_a_repetition_run_before_the_next_begins_each_time_in_another_order(packs: Path) -> None:
    specs = build_matrix(config(), [packs], "code").specs
    assert [spec.repetition for spec in specs] == sorted(spec.repetition for spec in specs)
    orders = {
        tuple((spec.scenario, spec.architecture, spec.plan.name) for spec in specs if spec.repetition == repetition)
        for repetition in range(1, 5)
    }
    assert len(orders) == 4


def test_the_same_config_gives_the_same_trials_in_the_same_order(packs: Path) -> None:
    first, second = (build_matrix(config(), [packs], "code").specs for _ in range(2))
    assert [spec.id for spec in first] == [spec.id for spec in second]


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"max_attempts": 2},
        {"repair": "none"},
        {"back_off": {"tries": 2}},
        {"model": {"simulated": SimulatedEntry(kind="simulated", failure_rate=0.5)}},
    ],
)
def test_whatever_determines_a_trial_changes_every_id(packs: Path, change: dict[str, Any]) -> None:
    assert not ids(build_matrix(config(), [packs], "code")) & ids(build_matrix(config(**change), [packs], "code"))


def test_other_code_gives_other_ids(packs: Path) -> None:
    assert not ids(build_matrix(config(), [packs], "code")) & ids(build_matrix(config(), [packs], "other code"))


def test_an_edited_pack_changes_its_own_ids_and_no_others(packs: Path) -> None:
    before = build_matrix(config(), [packs], "code").specs
    prompt = packs / "demo" / "prompts" / "decide.md"
    prompt.write_text(prompt.read_text() + "Think twice.\n")
    after = ids(build_matrix(config(), [packs], "code"))
    assert {spec.scenario for spec in before if spec.id in after} == {"other"}


def test_another_plan_changes_only_the_trials_under_it(packs: Path) -> None:
    plan = {"first": {"faults": [{"point": "output", "effect": "refusal", "attempts": [1]}]}}
    before, after = build_matrix(config(), [packs], "code").specs, ids(build_matrix(config(plan=plan), [packs], "code"))
    assert {spec.plan.name for spec in before if spec.id in after} == {"none"}


VARIANTS = {"quick": {"base": "static", "max_attempts": 1}, "mute": {"base": "runtime_structured", "repair": "none"}}


def test_a_variant_has_its_own_settings_and_the_experiments_where_it_names_none(packs: Path) -> None:
    matrix = build_matrix(config(architectures=("static", "quick", "mute"), architecture=VARIANTS), [packs], "code")
    settings = {name: architecture.settings for name, architecture in matrix.architectures.items()}
    assert settings == {"static": Settings(3, "reason"), "quick": Settings(1, "reason"), "mute": Settings(3, "none")}
    static, quick, mute = (architecture.work for architecture in matrix.architectures.values())
    assert quick is static is not mute


def test_another_setting_of_a_variant_changes_its_own_ids_and_no_others(packs: Path) -> None:
    names = ("static", "quick", "mute")
    before = build_matrix(config(architectures=names, architecture=VARIANTS), [packs], "code").specs
    quicker = {**VARIANTS, "quick": {"base": "monolithic", "max_attempts": 1}}
    after = ids(build_matrix(config(architectures=names, architecture=quicker), [packs], "code"))
    assert {spec.architecture for spec in before if spec.id in after} == {"static", "mute"}


def test_parallel_is_in_the_ids_and_in_what_is_kept_of_a_variant_only_where_it_is_set(packs: Path) -> None:
    def built(**form: bool) -> Matrix:
        variants = {"quick": {"base": "static", **form}}
        return build_matrix(config(architectures=("quick",), architecture=variants), [packs], "code")

    usual, explicit, parallel = built(), built(parallel=False), built(parallel=True)
    assert ids(usual) == ids(explicit) and not ids(usual) & ids(parallel)
    digests = [matrix.architectures["quick"].digest for matrix in (usual, parallel)]
    assert digests[0] == digests[1] != ""
    kept = [matrix.config.model_dump(mode="json")["architecture"]["quick"] for matrix in (usual, explicit, parallel)]
    assert ["parallel" in settings for settings in kept] == [False, False, True]


def test_an_architecture_of_ones_own_has_a_parallel_form_where_it_takes_one(packs: Path) -> None:
    settings = {"base": f"{__name__}:mine", "parallel": True}
    matrix = build_matrix(config(architectures=("own",), architecture={"own": settings}), [packs], "code")
    assert matrix.architectures["own"].work.keywords == {"parallel": True}  # type: ignore[attr-defined]
    without = {"base": f"{__name__}:plain", "parallel": True}
    with pytest.raises(ConfigError, match="test_matrix:plain' has no parallel form"):
        build_matrix(config(architectures=("own",), architecture={"own": without}), [packs], "code")


async def mine(task: Task, workbench: Workbench, *, parallel: bool = False) -> None:
    """An architecture with a parallel form; only what it takes matters here."""


async def plain(task: Task, workbench: Workbench) -> None:
    """One without."""


def test_a_variant_under_an_architectures_own_name_is_refused(packs: Path) -> None:
    with pytest.raises(ConfigError, match=r"architecture\.static: there is an architecture of this name"):
        build_matrix(config(architecture={"static": {"base": "monolithic"}}), [packs], "code")


def test_a_variant_of_nothing_is_refused_with_the_nearest(packs: Path) -> None:
    with pytest.raises(ConfigError, match="unknown architecture 'statik'; did you mean 'static'"):
        build_matrix(config(architectures=("quick",), architecture={"quick": {"base": "statik"}}), [packs], "code")


def test_more_repetitions_keep_the_ids_of_the_first(packs: Path) -> None:
    assert ids(build_matrix(config(), [packs], "code")) < ids(build_matrix(config(repetitions=6), [packs], "code"))


def test_one_variant_of_a_pack_under_two_names_is_refused(packs: Path) -> None:
    with pytest.raises(ConfigError, match="two of demo, demo:paper are the same pack and variant"):
        build_matrix(config(scenarios=("demo", "demo:paper")), [packs], "code")


def test_a_trial_is_made_when_it_is_asked_for_and_is_not_kept(packs: Path) -> None:
    few, many = (build_matrix(config(repetitions=number), [packs], "code").specs for number in (1, 100_000))
    assert len(many) == 100_000 * len(few)
    assert list(itertools.islice(many, len(few))) == list(few)
    made = list(map(weakref.ref, itertools.islice(many, 5)))
    assert [spec() for spec in made] == [None] * 5


def test_unknown_names_are_refused_with_the_nearest(packs: Path) -> None:
    with pytest.raises(PackError, match="did you mean 'demo'"):
        build_matrix(config(scenarios=("demmo",)), [packs], "code")
    with pytest.raises(PackError, match="has no variant 'big'"):
        build_matrix(config(scenarios=("demo:big",)), [packs], "code")
    with pytest.raises(ConfigError, match="cannot be imported"):
        build_matrix(config(architectures=("nowhere.to:find",)), [packs], "code")
