"""Which files are taken for what an agent knows. The tables are those that the frameworks' own code makes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.box.frameworks import memory_owner

LANGGRAPH = """
PRAGMA journal_mode = WAL;
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, type TEXT);
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, task_id TEXT NOT NULL, value BLOB);
"""
DATABASES = (
    ("LangGraph's checkpoints", LANGGRAPH),
    (
        "a session of OpenAI's Agents SDK",
        "CREATE TABLE agent_sessions (session_id TEXT); CREATE TABLE agent_messages (id INTEGER, message_data TEXT)",
    ),
    ("CrewAI's checkpoints", "CREATE TABLE checkpoints (id TEXT, parent_id TEXT, branch TEXT, data JSONB)"),
    ("CrewAI's states of flows", "CREATE TABLE flow_states (id INTEGER, flow_uuid TEXT, state_json TEXT)"),
    (
        "sessions of Google's ADK",
        "CREATE TABLE app_states (app_name TEXT); CREATE TABLE sessions (app_name TEXT); CREATE TABLE events (app_name TEXT)",
    ),
    ("Agno's sessions", "CREATE TABLE agno_sessions (session_id TEXT, session_data JSON)"),
    (
        "",
        "CREATE TABLE checkpoints (id TEXT, name TEXT); CREATE TABLE sessions (id TEXT); CREATE TABLE writes (id TEXT)",
    ),
    ("", "CREATE TABLE paid (cents INTEGER)"),
)
FILES: tuple[tuple[str, Any], ...] = (
    ("AutoGen's state", {"type": "TeamState", "version": "1.0.0", "agent_states": {}}),
    ("AutoGen's state", {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": []}}),
    ("Pydantic AI's messages", [{"parts": [{"content": "hi", "part_kind": "user-prompt"}], "kind": "request"}]),
    ("LangChain's messages", [{"type": "human", "data": {"content": "hi"}}]),
    (
        "a checkpoint of the Agent Framework",
        {"workflow_name": "w", "graph_signature_hash": "h", "checkpoint_id": "1", "messages": {}},
    ),
    ("", {"type": "invoice", "version": "1.0.0"}),
    ("", [{"type": "payment", "data": {}}]),
    ("", []),
    ("", [120, 80]),
    ("", {"parts": 3, "kind": "wheel"}),
)


@pytest.mark.parametrize(("whose", "tables"), DATABASES)
def test_a_database_is_a_frameworks_if_it_has_the_columns_of_its_tables(tmp_path: Path, whose: str, tables: str) -> None:
    with closing(sqlite3.connect(tmp_path / "x")) as database:
        database.executescript(tables)
        assert memory_owner(tmp_path / "x") == whose
    assert memory_owner(tmp_path / "x") == whose


@pytest.mark.parametrize(("whose", "value"), FILES)
def test_a_file_of_json_is_a_frameworks_if_it_has_the_keys_of_its_objects(tmp_path: Path, whose: str, value: Any) -> None:
    (tmp_path / "x").write_text(json.dumps(value))
    assert memory_owner(tmp_path / "x") == whose


def test_what_is_gone_or_no_file_is_nobodys(tmp_path: Path) -> None:
    assert memory_owner(tmp_path / "gone") == memory_owner(tmp_path) == ""


@given(st.one_of(st.binary(max_size=200), st.text(alphabet='{}[]":,a1', max_size=40).map(str.encode)))
def test_any_bytes_are_nobodys(text: bytes) -> None:
    with TemporaryDirectory() as made:
        for begins in (b"", b"SQLite format 3\0"):
            (path := Path(made, "x")).write_bytes(begins + text)
            assert memory_owner(path) == ""
