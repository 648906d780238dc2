"""What an agent that is a process is told: its work and its tools, so that it could know what is to be done."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from little_worlds import REFUNDS

from bench.run.packs import load_pack
from bench.scenario import Scenario
from bench.worlds.run.driver.task_text import CLOSING_WORDS, task_text
from bench.worlds.run.environment import Environment

PACKS = [Path(__file__).parents[4] / "scenarios"]
WORLDS = ("contract_renewal", "contract_renewal:epsilon_1", "incident_response", "support_desk")


def loaded(name: str) -> tuple[Scenario, Environment, str]:
    scenario = load_pack(name, PACKS, "case_01")
    assert scenario.environment
    return scenario, scenario.environment, task_text(scenario.task, scenario.environment.work)


@pytest.mark.parametrize("name", WORLDS)
def test_an_agent_is_told_its_work_in_the_place_of_the_role_of_one_who_answers_in_json(name: str) -> None:
    scenario, environment, text = loaded(name)
    assert text.startswith(environment.work.strip()) and text.endswith(CLOSING_WORDS)
    assert "JSON only" not in text
    assert all(f"# {subtask.name}\n" in text for subtask in scenario.task.subtasks)


def test_where_a_pack_has_no_words_for_it_the_role_stands_first() -> None:
    assert task_text(REFUNDS.task).startswith(REFUNDS.task.role)


@pytest.mark.parametrize("name", WORLDS)
def test_each_notice_that_changes_what_is_to_be_done_is_named(name: str) -> None:
    _, environment, text = loaded(name)
    assert [step.on for step in environment.procedure if step.on and f"`{step.on}`" not in text] == []


@pytest.mark.parametrize("name", WORLDS)
def test_each_tool_says_what_it_does(name: str) -> None:
    _, environment, _ = loaded(name)
    assert [tool.name for tool in environment.tools if len(tool.description.split()) < 3] == []


def test_the_days_of_a_renewal_are_those_of_its_procedure() -> None:
    _, environment, text = loaded("contract_renewal")
    days = {step.starts.day for step in environment.procedure if step.starts}
    assert days == {-30, -7, 0}
    assert [day for day in (-90, -47, *days) if f"day {day}" not in text] == []


def test_the_minutes_of_an_incident_are_those_of_its_procedure() -> None:
    limits = import_module("scenarios.incident_response.limits")
    _, _, text = loaded("incident_response")
    assert [minute for minute in (limits.LOOK, limits.LAST_LOOK) if f"minute {minute}" not in text] == []
