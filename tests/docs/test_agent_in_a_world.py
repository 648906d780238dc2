"""The agents of the page on agents in worlds: each, as it stands, survives the crashes that the page speaks of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from blocks import blocks_of
from driven import driven, receipts
from little_worlds import ended, harm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "own_agent_in_a_world.md"
PLAN = [{"point": "process", "effect": "unacknowledged", "tool": "refund", "probability": 0.4}]  # by its seed one crash


@pytest.mark.parametrize(("program", "name"), [("python", "my_agent.py"), ("node", "my_agent.mjs")])
def test_the_agents_of_the_page_do_all_exactly_once(program: str, name: str, tmp_path: Path) -> None:
    if not shutil.which(program):
        pytest.skip(f"there is no {program} on this machine")
    shown = {block.file: block.text for block in blocks_of(PAGE.read_text(encoding="utf-8"))}
    text = shown.get(name) or (ROOT / "configs" / "systems" / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    result = driven([program, name], PLAN, folder=str(tmp_path))
    assert (result.record.outcome, harm(result), ended(result).lives) == ("solved", {}, 2)
    assert receipts(result)["planned"] == receipts(result)["delivered"] == 1


@pytest.mark.endurance
def test_without_its_keys_the_agent_of_the_page_doubles(tmp_path: Path) -> None:
    [text] = [block.text for block in blocks_of(PAGE.read_text(encoding="utf-8")) if block.file == "my_agent.py"]
    keyless = text.replace('{"Idempotency-Key": call.id}', "{}")
    assert keyless != text
    (tmp_path / "my_agent.py").write_text(keyless, encoding="utf-8")
    result = driven(["python", "my_agent.py"], PLAN, folder=str(tmp_path))
    assert harm(result)["doubled"] == 1
