"""A config is read whole or refused in one line, an unknown name with the nearest known one."""

from __future__ import annotations

import re
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from trials import AVAILABLE, ROOTS

from bench.common.errors import ConfigError
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.resolved_plans import at_position, resolve_plan
from bench.run.packs import load_pack
from bench.run.trial.faults import Fault
from tests.run.frameworks.test_systems import BROUGHT

CHECKOUT = ROOTS[0].parent
EXPERIMENTS = sorted([*CHECKOUT.glob("configs/*.toml"), *CHECKOUT.glob("studies/*/*.toml")])
CONFIG = """
name = "tiny"
scenarios = ["tiny"]
architectures = ["static", "runtime_structured"]
models = ["simulated"]
plans = ["none", "broken"]
repetitions = 3
seed = 1

[plan.broken]
faults = [{ point = "output", effect = "missing_field", attempts = [1], subtask = "total" }]

[model.simulated]
kind = "simulated"

[model.local]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
"""


def read(folder: Path, text: str = CONFIG, **overrides: Any) -> Config:
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path, overrides)


def built(folder: Path, text: str = CONFIG, code: str = "code", **overrides: Any) -> Matrix:
    return build_matrix(read(folder, text, **overrides), ROOTS, code)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        built(folder, text)
    line = str(refused.value).removeprefix(f"{folder / 'tiny.toml'}: ")
    assert "\n" not in line
    return line


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.parent.name if path.name == "config.toml" else path.stem)
def test_every_config_that_ships_can_be_run_and_read_from_what_a_manifest_keeps(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    few = {"instances": 3} if path.parent.name == "retesting" else {}  # each of its 120 takes a while to be made
    config = load_config(path, {"repetitions": 1, **few})
    extras = {ARCHITECTURES[name].extra for name in config.architectures if name in ARCHITECTURES} - {""}
    if any(util.find_spec(BROUGHT[extra]) is None for extra in extras):
        pytest.skip("its systems' packages are not installed")
    if not {scenario.partition(":")[0] for scenario in config.scenarios} <= AVAILABLE.keys():
        pytest.skip("its pack is not here")
    try:
        matrix = build_matrix(config, ROOTS, "code")
    except ConfigError as error:
        assert any(words in str(error) for words in ("is not installed", "there is no program")), error
        pytest.skip("what its commands stand on is not installed")
    assert matrix.specs
    assert Config.model_validate(config.model_dump(mode="json")) == config


def test_an_override_takes_the_place_of_a_key_and_none_leaves_it(tmp_path: Path) -> None:
    assert read(tmp_path, repetitions=7, seed=None).repetitions == 7
    assert read(tmp_path, seed=None).seed == 1


ONE_TRIGGER = 'a fault has one trigger: either attempts = [1, ...] or "every", or a probability above 0'
UNKNOWN = {
    ("repetitions = 3", "repetition = 3"): "unknown key 'repetition'; did you mean 'repetitions'?",
    ('"simulated"\n\n', '"simulated"\nfailur_rate = 1\n\n'): "failur_rate'; did you mean 'failure_rate'?",
    ("attempts = [1]", "attempt = [1]"): "unknown key 'plan.broken.faults.0.attempt'; did you mean 'attempts'?",
    (
        "seed = 1",
        "seed = 1\narchitecture = { quick = { base = 'static', repar = 'none' } }",
    ): "quick.repar'; did you mean 'repair'?",
    ("seed = 1", "seed = 1\nback_off = { trys = 2 }"): "unknown key 'back_off.trys'; did you mean 'tries'?",
    ("seed = 1", "seed = 1\nask_once = true"): "the key 'ask_once' is called 'cache' now; rename it in the config",
    ('["simulated"]', '["simulatd"]'): (
        "unknown model 'simulatd'; did you mean 'simulated'?; for another add the table [model.simulatd] with the line "
        'kind = "openai", and base_url = "URL" where it is not OpenAI\'s'
    ),
    ("missing_field", "missing_feild"): "unknown effect 'missing_feild'; did you mean 'missing_field'?",
    ('"broken"]', '"brocken"]'): "unknown fault plan 'brocken'; did you mean 'broken'?",
    ('"static"', '"statik"'): "unknown architecture 'statik'; did you mean 'static'?",
    ('"total"', '"totl"'): "plan 'broken': scenario 'tiny' has no subtask 'totl'; did you mean 'total'?",
}
SENSELESS = {
    ('"total"', '{ other = "x" }'): "missing_field names no subtask for scenario 'tiny'; add tiny = \"...\" to it",
    ('"output"', '"call"'): "effect 'missing_field' cannot strike at 'call', only at input, output, state",
    ("attempts = [1], ", ""): ONE_TRIGGER,
    ("[1]", "[1], probability = 0.5"): ONE_TRIGGER,
    ("[1]", '"every", probability = 0.5'): ONE_TRIGGER,
    ("[1]", '"evry"'): "attempts: must be a list of attempts, counted from 1, or \"every\", not 'evry'",
    ("[1]", "[0]"): 'attempts: must be a list of attempts, counted from 1, or "every", not [0]',
    ('subtask = "total"', 'position = "frist"'): "position: must be 'first', 'middle' or 'last', not 'frist'",
    ("[1]", '[1], position = "last"'): "a fault strikes a subtask or a position: give one of the two",
    ('"static", "runtime_structured"', '"static", "static"'): "architectures: 'static' appears twice",
    ('"none", "broken"', '"none", "none"'): "plans: 'none' appears twice",
}


@pytest.mark.parametrize("change", [*UNKNOWN, *SENSELESS], ids=" for ".join)
def test_what_cannot_be_run_is_refused_in_one_line_that_says_why(tmp_path: Path, change: tuple[str, str]) -> None:
    old, new = change
    assert old in CONFIG
    assert {**UNKNOWN, **SENSELESS}[change] in refusal(tmp_path, CONFIG.replace(old, new, 1))


def test_a_fault_that_could_never_strike_is_refused(tmp_path: Path) -> None:
    never = CONFIG.replace('"output"', '"input"').replace('"total"', '"gather"')
    assert refusal(tmp_path, never) == (
        "plan 'broken': 'gather' reads only documents, so missing_field can never strike its input"
    )


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("repetitions = 3", "repetitions = 0", "repetitions: "),
        ("seed = 1", "", "seed: is missing"),
        ('name = "tiny"', 'name = "../up"', "name: "),
        ("attempts = [1]", "probability = 1.5", "plan.broken.faults.0.probability: "),
        ('kind = "simulated"', 'kind = "magic"', "model.simulated: "),
        ("seed = 1", 'seed = 1\nrepair = "always"', "repair: "),
        ("seed = 1", "seed = ", "is not TOML: "),
        ('kind = "simulated"', 'kind = "simulated"\nprice_in = 2e6', "model.simulated.price_in: must be at most 1000000"),
        (
            'kind = "simulated"',
            'kind = "simulated"\nprice_out = 1e308',
            "model.simulated.price_out: must be a number of at most",
        ),
        ("repetitions = 3", "repetitions = 1000000000", "repetitions: must be at most 100000"),
        ("seed = 1", "seed = 1\nmax_attempts = 1000000000", "max_attempts: must be at most 1000"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert refusal(tmp_path, CONFIG.replace(old, new, 1)).startswith(place)


def test_a_config_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.toml: cannot be read: "):
        load_config(tmp_path / "none.toml", {})


def test_a_fault_may_name_another_subtask_for_each_scenario(tmp_path: Path) -> None:
    table = 'subtask = { tiny = "review", k8s_oomkill = "log_triage" }'
    config = read(tmp_path, CONFIG.replace('subtask = "total"', table))
    named = [resolve_plan(config, "broken", load_pack(name, ROOTS)).faults for name in ("tiny", "k8s_oomkill:large")]
    assert named == [
        (Fault("output", "missing_field", "review", (1,)),),
        (Fault("output", "missing_field", "log_triage", (1,)),),
    ]
    assert resolve_plan(config, "none", load_pack("tiny", ROOTS)).faults == ()


def test_a_fault_may_name_its_subtask_by_position_in_the_tasks_order(tmp_path: Path) -> None:
    def struck(position: str, pack: str = "tiny") -> list[str]:
        config = read(tmp_path, CONFIG.replace('subtask = "total"', f'position = "{position}"'))
        return [fault.subtask for fault in resolve_plan(config, "broken", load_pack(pack, ROOTS)).faults]

    names = [subtask.name for subtask in load_pack("k8s_oomkill", ROOTS).task.subtasks]
    for place, position in enumerate(("first", "middle", "last")):
        assert struck(position) == [("gather", "total", "review")[place]]
        assert struck(position, "k8s_oomkill") == [names[(0, 2, 4)[place]]]
    assert [at_position(names[:n], "middle") for n in (1, 2, 3, 4)] == [names[0], names[0], names[1], names[1]]


def test_only_a_position_that_is_given_stands_in_the_manifest(tmp_path: Path) -> None:
    [fault] = read(tmp_path).model_dump(mode="json")["plan"]["broken"]["faults"]
    assert fault.keys() == {"point", "effect", "subtask", "attempts", "probability", "seconds"}
    text = CONFIG.replace('subtask = "total"', 'position = "last"').replace("[1]", '"every"')
    [fault] = read(tmp_path, text).model_dump(mode="json")["plan"]["broken"]["faults"]
    assert (fault["position"], fault["attempts"]) == ("last", "every")


def test_the_matrix_holds_every_arm_of_a_repetition_before_the_next(tmp_path: Path) -> None:
    specs = built(tmp_path).specs
    assert [spec.repetition for spec in specs] == [1] * 4 + [2] * 4 + [3] * 4
    arms = [{(spec.architecture, spec.plan.name) for spec in specs[at : at + 4]} for at in (0, 4, 8)]
    assert all(len(arm) == 4 for arm in arms)
    assert len({spec.id for spec in specs}) == 12


def test_an_id_changes_with_whatever_determines_a_trial_and_with_nothing_else(tmp_path: Path) -> None:
    def ids(text: str = CONFIG, **overrides: Any) -> set[str]:
        return {spec.id for spec in built(tmp_path, text, **overrides).specs}

    assert ids() == ids(name="other")
    assert ids() == {spec.id for spec in built(tmp_path, repetitions=3, models=["simulated"]).specs}
    assert ids() < ids(repetitions=4)
    for change in ({"seed": 2}, {"max_attempts": 2}, {"repair": "none"}, {"code": "other"}, {"back_off": {"tries": 2}}):
        assert not ids() & ids(**change), change
    for old, new in (('kind = "simulated"', 'kind = "simulated"\njitter = 0.0'), ("attempts = [1]", "attempts = [1, 2]")):
        changed = ids(CONFIG.replace(old, new))
        assert changed != ids()


def test_no_id_holds_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = CONFIG.replace('models = ["simulated"]', 'models = ["local"]')
    without = [spec.id for spec in built(tmp_path, text).specs]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert [spec.id for spec in built(tmp_path, text).specs] == without
    assert not re.search("sk-secret", repr(built(tmp_path, text)))
