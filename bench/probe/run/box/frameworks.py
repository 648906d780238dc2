"""Files in which frameworks keep what an agent knows: checkpoints, sessions, conversations. They are known by their form."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bench.common.files import opened

SQLITE = b"SQLite format 3\0"
LARGEST = 2**24
"""Bytes of a file of JSON that is looked at."""
MOST = 1000
"""The most columns of a database that are looked at."""
_COLUMNS = f"""
SELECT s.name || '.' || c.name FROM sqlite_schema AS s JOIN pragma_table_info(s.name) AS c WHERE s.type = 'table' LIMIT {MOST}
"""


@dataclass(frozen=True)
class FrameworkFile:
    """A form of file that a framework writes.

    whose    the framework, and what it calls the file
    columns  `TABLE.COLUMN` of an SQLite database, all of which it has; () for a file of JSON
    keys     keys of an object, all of which it has; for a list its first object
    values   what some of these keys hold, one of them each
    more     patterns of further tables that the framework makes in such a database
    """

    whose: str
    columns: Sequence[str] = ()
    keys: Sequence[str] = ()
    values: Mapping[str, Sequence[str]] | None = None
    more: Sequence[str] = ()

    def has(self, table: str) -> bool:
        """Return whether a table of such a database is the framework's."""
        named = any(column.startswith(f"{table}.") for column in self.columns)
        return named or any(fnmatchcase(table, pattern) for pattern in self.more)


@dataclass(frozen=True)
class FileForm:
    """What is known of a file by its form.

    is_database  whether it is one of SQLite
    whose        whose file it is in which an agent keeps what it knows, in words; "" if no framework known here writes such
    tables       the tables of this framework, and `others` all others
    """

    is_database: bool = False
    whose: str = ""
    tables: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


KNOWN = (
    FrameworkFile(
        "LangGraph's checkpoints",
        ("checkpoints.checkpoint_ns", "writes.checkpoint_ns"),
        more=("checkpoint_*", "store", "store_*"),
    ),
    FrameworkFile("LangGraph's store", ("store.prefix", "store_migrations.v")),
    FrameworkFile(
        "a session of OpenAI's Agents SDK",
        ("agent_sessions.session_id", "agent_messages.message_data"),
        more=("message_structure", "turn_usage", "branch_reservations", "session_clear_generations"),
    ),
    FrameworkFile("CrewAI's checkpoints", ("checkpoints.branch", "checkpoints.parent_id")),
    FrameworkFile("CrewAI's states of flows", ("flow_states.flow_uuid", "flow_states.state_json"), more=("pending_feedback",)),
    FrameworkFile(
        "sessions of Google's ADK",
        ("sessions.app_name", "events.app_name", "app_states.app_name"),
        more=("user_states", "adk_internal_metadata"),
    ),
    FrameworkFile("Agno's sessions", ("agno_sessions.session_id", "agno_sessions.session_data"), more=("agno_*",)),
    FrameworkFile(
        "AutoGen's state",
        keys=("type", "version"),
        values={"type": ("TeamState", "AssistantAgentState", "SocietyOfMindAgentState", "ChatAgentContainerState")},
    ),
    FrameworkFile("Pydantic AI's messages", keys=("parts", "kind"), values={"kind": ("request", "response")}),
    FrameworkFile("LangChain's messages", keys=("type", "data"), values={"type": ("human", "ai", "system", "tool")}),
    FrameworkFile("a checkpoint of the Agent Framework", keys=("workflow_name", "graph_signature_hash", "checkpoint_id")),
)


def whose_memory(path: Path) -> str:
    """Return whose file it is in which an agent keeps what it knows, in words; "" if no framework known here writes such."""
    with suppress(OSError, sqlite3.Error, ValueError, RecursionError):
        with opened(path) as file:
            text = file.read(LARGEST)
        if text.startswith(SQLITE):
            columns = _columns(path)
            return next((each.whose for each in KNOWN if each.columns and columns.issuperset(each.columns)), "")
        if text[:1] in (b"{", b"["):
            value = json.loads(text)
            value = value[0] if isinstance(value, list) and value else value
            return next((each.whose for each in KNOWN if isinstance(value, dict) and _is_such(each, value)), "")
    return ""


def form_of(path: Path) -> FileForm:
    """Return what is known of a file by its form."""
    with suppress(OSError, sqlite3.Error):
        with opened(path) as file:
            is_database = file.read(len(SQLITE)) == SQLITE
        whose = whose_memory(path)
        if not is_database:
            return FileForm(whose=whose)
        known = next((each for each in KNOWN if each.whose == whose), None)
        tables = sorted({column.partition(".")[0] for column in _columns(path)} - {"sqlite_sequence"})
        kept = tuple(table for table in tables if known and known.has(table))
        return FileForm(is_database, whose, kept, tuple(table for table in tables if table not in kept))
    return FileForm()


def _columns(path: Path) -> frozenset[str]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        return frozenset(column for (column,) in database.execute(_COLUMNS))


def _is_such(known: FrameworkFile, value: Mapping[str, object]) -> bool:
    held = all(value.get(key) in values for key, values in (known.values or {}).items())
    return bool(known.keys) and held and all(key in value for key in known.keys)
