"""Requests as SDKs send them by default, each recorded from the quick start of the SDK and version that its row names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.endpoint.dialect import DIALECTS
from bench.run.models.base import Reply
from bench.run.models.options import options_text
from bench.run.trial.endpoint_session import Exchange

ROWS = [json.loads(line) for line in (Path(__file__).parent / "sdk_requests.jsonl").read_text(encoding="utf-8").splitlines()]
LOOK = {"type": "function", "function": {"name": "look"}}
GIVEN = Reply("", "tool_calls", tool_calls=(ToolCall("c1", "look", '{"city": "Paris"}'),), extra='{"reasoning_content": "so"}')
EXCHANGES = {1: Exchange((Message("user", "What is the weather?"),), 0, options_text({"tools": [LOOK]}), GIVEN)}
"""What an SDK was given that goes on by an id."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['sdk']} {row['path']}")
def test_what_an_sdk_sends_by_default_is_taken_and_what_is_set_aside_of_it_is_known(
    row: dict[str, Any],
) -> None:
    [dialect] = [dialect for dialect in DIALECTS if dialect.path == row["path"]]
    chat = dialect.read(json.dumps(row["body"]).encode(), {}, EXCHANGES)
    assert chat.messages
    assert sorted(chat.set_aside) == row["set_aside"]


def test_a_client_that_goes_on_after_a_tools_result_sends_the_turn_that_called_it() -> None:
    """However it names the turn: whole, by its items' ids, by the answer's id, or by a thread."""
    for row in ROWS:
        if "sunny" not in json.dumps(row["body"]) or row["sdk"].startswith("smolagents"):
            continue
        [dialect] = [dialect for dialect in DIALECTS if dialect.path == row["path"]]
        chat = dialect.read(json.dumps(row["body"]).encode(), {}, EXCHANGES)
        *_, turn, result = chat.messages
        assert ([call.id for call in turn.tool_calls], result.tool_call_id) == (["c1"], "c1"), row["sdk"]
