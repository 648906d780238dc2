"""A routed model passes each request on by its subtasks; whoever answers is recorded, paid, and waited for."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_model import Line, ScriptedModel
from trials import ROOTS, TINY, events, matrix_of, run_all

from bench.common.errors import BenchError, CallFailed, ConfigError, ServerFailed
from bench.record.cost import Tariff
from bench.record.events import Called
from bench.record.messages import Message
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.preview import preview
from bench.run.models.base import Request, RequestContext
from bench.run.models.routed import RoutedModel, RoutedSettings, answerers, answering

SUBSTITUTION = ROOTS[0].parent / "configs" / "substitution.toml"
ROUTES = RoutedSettings(default="small", subtasks={"total": "big", "review": "big"})
SIMULATED = {"kind": "simulated"}
MIXED = {"kind": "routed", "default": "small", "subtasks": {"total": "big"}}


def scripted(name: str, script: Mapping[str, Sequence[Line]] | None = None, **attributes: Any) -> ScriptedModel:
    model = ScriptedModel(TINY.reference, script)
    for attribute, value in {"name": name, "endpoint": f"at-{name}", **attributes}.items():
        setattr(model, attribute, value)
    return model


def routed(**big: Any) -> tuple[RoutedModel, ScriptedModel, ScriptedModel]:
    small, large = scripted("small"), scripted("big", **big)
    return RoutedModel("mixed", ROUTES, {"small": small, "big": large}), small, large


def request(*subtasks: str) -> Request:
    return Request((Message("user", "?"),), 1, RequestContext("tiny", subtasks, 1, 1))


async def no_sleep(_: float) -> None:
    pass


def values_of(**models: dict[str, Any]) -> dict[str, Any]:
    return {"small": SIMULATED, "big": SIMULATED, **models}


@pytest.mark.parametrize(
    ("subtasks", "answers"),
    [
        (("total",), "big"),
        (("gather",), "small"),
        (("total", "review"), "big"),
        (("gather", "total"), "small"),
        (("gather", "total", "review"), "small"),
    ],
)
def test_a_request_goes_where_all_its_subtasks_are_routed_else_to_the_default(subtasks: tuple[str, ...], answers: str) -> None:
    assert ROUTES.target(subtasks) == answers


def test_after_a_crash_the_newer_model_answers_and_is_the_version_that_decisions_name() -> None:
    small, big = scripted("small"), scripted("big")
    model = RoutedModel("upgraded", RoutedSettings(default="small", after_crash="big"), {"small": small, "big": big})
    before, after = (replace(request("total"), context=replace(request("total").context, life=life)) for life in (1, 2))
    assert (answering(model, before), answering(model, after)) == (small, big)
    assert (model.in_life(1), model.in_life(2), model.in_life(3)) == (small, big, big)
    assert answerers(model) == (small, big)


def test_a_model_that_no_crash_exchanges_has_the_parameters_that_it_always_had() -> None:
    assert "after_crash" not in routed()[0].parameters


def test_the_reply_comes_from_the_routed_model_and_names_it() -> None:
    model, small, big = routed()
    reply = asyncio.run(model.reply(request("total"), no_sleep))
    assert (reply.by, len(small.requests), len(big.requests)) == ("big", 0, 1)
    assert big.requests[0].context.subtasks == ("total",)


def test_a_failure_names_the_model_that_failed() -> None:
    model, _, _ = routed(script={"total": [ServerFailed("500")]})
    with pytest.raises(CallFailed) as failed:
        asyncio.run(model.reply(request("total"), no_sleep))
    assert failed.value.by == "big"


def test_each_call_of_a_trial_is_recorded_with_the_model_that_answered_it() -> None:
    matrix = matrix_of(architectures=["static"], models=["m"], model=None)
    models = values_of(mixed=MIXED)
    matrix = build_matrix(
        matrix.config.model_copy(update={"models": ("mixed", "big"), "model": _entries(models)}), ROOTS, "code"
    )
    by = {result.record.model: {call.subtasks: call.by for call in events(result, Called)} for result in run_all(matrix)}
    assert by["mixed"] == {("gather",): "small", ("total",): "big", ("review",): "small"}
    assert set(by["big"].values()) == {""}


def _entries(models: dict[str, Any]) -> Any:
    return Config.model_validate({**_tiny(models), "models": ["small"]}).model


def _tiny(models: dict[str, Any]) -> dict[str, Any]:
    return {"name": "t", "scenarios": ["tiny"], "architectures": ["static"], "repetitions": 1, "seed": 1, "model": models}


def test_its_parameters_hold_those_of_every_model_it_routes_to() -> None:
    model, small, big = routed()
    assert model.parameters["models"] == {"small": small.parameters, "big": big.parameters}
    assert (model.parameters["default"], model.parameters["subtasks"]) == ("small", {"total": "big", "review": "big"})


def test_models_whose_seconds_are_of_two_kinds_are_refused() -> None:
    with pytest.raises(ConfigError, match="model 'mixed': 'small' is simulated, 'big' is live"):
        routed(timing="live")


def test_it_is_known_who_answers_a_request() -> None:
    small, big = scripted("small", timing="live", concurrency=3), scripted("big", timing="live")
    model = RoutedModel("mixed", ROUTES, {"small": small, "big": big})
    assert answering(model, request("total")) is big and answering(model, request("gather")) is small
    assert answerers(model) == (small, big) and answerers(small) == (small,)
    assert model.concurrency == 3


@pytest.mark.parametrize(
    ("mixed", "words"),
    [
        ({**MIXED, "default": "smal"}, "model 'mixed' routes to an unknown model 'smal'; did you mean 'small'?"),
        ({**MIXED, "subtasks": {"total": "bigg"}}, "model 'mixed' routes to an unknown model 'bigg'; did you mean 'big'?"),
        ({**MIXED, "default": "mixed"}, "model 'mixed' routes to 'mixed', which is routed itself; name a model that answers"),
        ({**MIXED, "default": "other"}, "model 'mixed' routes to 'other', which is routed itself; name a model that answers"),
        ({**MIXED, "subtasks": {"totl": "big"}}, "model 'mixed': no scenario has a subtask 'totl'; did you mean 'total'?"),
        ({**MIXED, "defaults": "small"}, "unknown key 'model.mixed.defaults'; did you mean 'default'?"),
        (
            {"kind": "routed", "default": "small", "subtasks": {}},
            "name either the subtasks that another model does, or the model after_",
        ),
        (
            {**MIXED, "after_crash": "big"},
            "name either the subtasks that another model does, or the model after_crash",
        ),
        (
            {"kind": "routed", "default": "small", "after_crash": "bigg"},
            "routes to an unknown model 'bigg'; did you mean 'big'?",
        ),
    ],
)
def test_a_route_that_leads_nowhere_is_refused_in_one_line(tmp_path: Path, mixed: dict[str, Any], words: str) -> None:
    path = tmp_path / "t.toml"
    other = '[model.other]\nkind = "routed"\ndefault = "small"\nsubtasks = { total = "big" }\n'
    lines = [f"{key} = {_toml(value)}" for key, value in {**_tiny({}), **{"models": ["mixed"]}}.items() if key != "model"]
    tables = [f"[model.{name}]\nkind = 'simulated'" for name in ("small", "big")]
    tables.append("[model.mixed]\n" + "\n".join(f"{key} = {_toml(value)}" for key, value in mixed.items()))
    path.write_text("\n".join([*lines, *tables, other]))
    with pytest.raises(BenchError) as refused:
        build_matrix(load_config(path, {}), ROOTS, "code")
    assert words in str(refused.value) and "\n" not in str(refused.value)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)


def test_a_route_for_a_scenario_that_this_run_leaves_out_is_none_to_refuse() -> None:
    config = Config.model_validate(
        {**_tiny(values_of(mixed={**MIXED, "subtasks": {"log_triage": "big"}})), "models": ["mixed"]}
    )
    assert build_matrix(config, ROOTS, "code").specs


def test_a_dry_run_charges_each_call_to_the_model_that_would_answer() -> None:
    prices = {"price_in": 1.0, "price_out": 1.0}
    models = values_of(small={**SIMULATED, **prices}, big={**SIMULATED, "price_in": 1000.0, "price_out": 1000.0}, mixed=MIXED)
    config = Config.model_validate({**_tiny(models), "models": ["small", "mixed", "big"]})
    small, mixed, big = (row.cost for row in sorted(preview(build_matrix(config, ROOTS, "c")), key=lambda row: row.cost or 0))
    assert small and mixed and big and small < mixed < big


def test_a_call_that_no_model_was_asked_is_charged_to_the_one_that_would_have_been() -> None:
    fault = {"point": "call", "effect": "timeout", "subtask": "total", "attempts": [1]}
    matrix = matrix_of(plans={"p": [fault]}, architectures=["static"])
    models = values_of(big={**SIMULATED, "price_in": 1e6, "price_out": 0.0}, mixed={**MIXED})
    models["small"] = {**SIMULATED, "price_in": 0.0, "price_out": 0.0}
    config = matrix.config.model_copy(update={"models": ("mixed",), "model": _entries(models)})
    matrix = build_matrix(config, ROOTS, "code")
    [result] = run_all(matrix)
    late, again = (call for call in events(result, Called) if call.subtasks == ("total",))
    assert (late.failure, late.asked, again.by) == ("timed_out", False, "big")
    cost = Tariff.of(matrix.models).cost(result.record)
    assert cost == pytest.approx(late.tokens_in + (again.usage_in or 0)) and late.tokens_in > 0


def test_the_substitution_config_also_runs_on_simulated_models() -> None:
    written = tomllib.loads(SUBSTITUTION.read_text())
    for name in ("small", "big"):
        written["model"][name] = SIMULATED
    matrix = build_matrix(Config.model_validate({**written, "repetitions": 1, "plans": ["none"]}), ROOTS, "code")
    results = run_all(matrix)
    assert {result.record.outcome for result in results} == {"solved"}
    routed = [call for result in results if result.record.model == "mixed" for call in events(result, Called)]
    by_big = {call.subtasks for call in routed if call.by == "big"}
    assert by_big == {("analysis",), ("root_cause_analysis",)}
    assert {call.by for call in routed} == {"small", "big"}
