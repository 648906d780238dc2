"""The files in which agent frameworks keep an agent's memory: checkpoints, sessions, conversations. They are recognised by
their format."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bench.common.files import opened

SQLITE_HEADER = b"SQLite format 3\0"
MAX_JSON_BYTES = 2**24
"""The most bytes of a JSON file that are read."""
MAX_COLUMNS = 1000
"""The most columns of a database that are read."""
_COLUMNS = f"""
SELECT s.name || '.' || c.name FROM sqlite_schema AS s JOIN pragma_table_info(s.name) AS c WHERE s.type = 'table'
LIMIT {MAX_COLUMNS}
"""


@dataclass(frozen=True)
class FrameworkFormat:
    """A file format in which a framework keeps the agent's memory.

    owner    the framework and the kind of file, in words
    columns  the columns, `TABLE.COLUMN`, that an SQLite database of this format has; () for a JSON file
    keys     the keys that a JSON object of this format has; in a list only its first object is examined
    values   the possible values of some keys
    more     patterns of further tables that the framework creates in the database
    """

    owner: str
    columns: Sequence[str] = ()
    keys: Sequence[str] = ()
    values: Mapping[str, Sequence[str]] | None = None
    more: Sequence[str] = ()

    def has(self, table: str) -> bool:
        """Return whether the framework makes this table in a database of this format."""
        has_column = any(column.startswith(f"{table}.") for column in self.columns)
        return has_column or any(fnmatchcase(table, pattern) for pattern in self.more)


@dataclass(frozen=True)
class FileForm:
    """The format of a file.

    is_database  whether it is an SQLite database
    owner        the framework that keeps the agent's memory in it, in words; "" if no known framework does
    tables       the tables of this framework; `others`: all other tables
    """

    is_database: bool = False
    owner: str = ""
    tables: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


KNOWN_FORMATS = (
    FrameworkFormat(
        "LangGraph's checkpoints",
        ("checkpoints.checkpoint_ns", "writes.checkpoint_ns"),
        more=("checkpoint_*", "store", "store_*"),
    ),
    FrameworkFormat("LangGraph's store", ("store.prefix", "store_migrations.v")),
    FrameworkFormat(
        "a session of OpenAI's Agents SDK",
        ("agent_sessions.session_id", "agent_messages.message_data"),
        more=("message_structure", "turn_usage", "branch_reservations", "session_clear_generations"),
    ),
    FrameworkFormat("CrewAI's checkpoints", ("checkpoints.branch", "checkpoints.parent_id")),
    FrameworkFormat(
        "CrewAI's states of flows", ("flow_states.flow_uuid", "flow_states.state_json"), more=("pending_feedback",)
    ),
    FrameworkFormat(
        "sessions of Google's ADK",
        ("sessions.app_name", "events.app_name", "app_states.app_name"),
        more=("user_states", "adk_internal_metadata"),
    ),
    FrameworkFormat("Agno's sessions", ("agno_sessions.session_id", "agno_sessions.session_data"), more=("agno_*",)),
    FrameworkFormat(
        "AutoGen's state",
        keys=("type", "version"),
        values={"type": ("TeamState", "AssistantAgentState", "SocietyOfMindAgentState", "ChatAgentContainerState")},
    ),
    FrameworkFormat("Pydantic AI's messages", keys=("parts", "kind"), values={"kind": ("request", "response")}),
    FrameworkFormat("LangChain's messages", keys=("type", "data"), values={"type": ("human", "ai", "system", "tool")}),
    FrameworkFormat("a checkpoint of the Agent Framework", keys=("workflow_name", "graph_signature_hash", "checkpoint_id")),
)


def memory_owner(path: Path) -> str:
    """Return the framework that keeps the agent's memory in a file, in words; "" if no known framework does."""
    with suppress(OSError, sqlite3.Error, ValueError, RecursionError):
        with opened(path) as file:
            text = file.read(MAX_JSON_BYTES)
        if text.startswith(SQLITE_HEADER):
            columns = _columns(path)
            return next(
                (format_.owner for format_ in KNOWN_FORMATS if format_.columns and columns.issuperset(format_.columns)), ""
            )
        if text[:1] in (b"{", b"["):
            value = json.loads(text)
            value = value[0] if isinstance(value, list) and value else value
            formats = KNOWN_FORMATS if isinstance(value, dict) else ()
            return next((format_.owner for format_ in formats if _has_values(format_, value)), "")
    return ""


def file_form(path: Path) -> FileForm:
    """Return the format of a file; of a file that cannot be read, an empty `FileForm`."""
    with suppress(OSError, sqlite3.Error):
        with opened(path) as file:
            is_database = file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
        owner = memory_owner(path)
        if not is_database:
            return FileForm(owner=owner)
        format_ = next((candidate for candidate in KNOWN_FORMATS if candidate.owner == owner), None)
        tables = sorted({column.partition(".")[0] for column in _columns(path)} - {"sqlite_sequence"})
        frameworks_tables = tuple(table for table in tables if format_ and format_.has(table))
        others = tuple(table for table in tables if table not in frameworks_tables)
        return FileForm(is_database, owner, frameworks_tables, others)
    return FileForm()


def _columns(path: Path) -> frozenset[str]:
    """Return `TABLE.COLUMN` of each column in a database."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        return frozenset(column for (column,) in database.execute(_COLUMNS))


def _has_values(format_: FrameworkFormat, value: Mapping[str, object]) -> bool:
    """Return whether a JSON object has the keys and values of a format."""
    has_allowed_values = all(value.get(key) in values for key, values in (format_.values or {}).items())
    return bool(format_.keys) and has_allowed_values and all(key in value for key in format_.keys)
