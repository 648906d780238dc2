"""What frameworks keep of an agent's own knowledge, in one table: checkpoints, sessions, conversations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class KnownMemory:
    """What one framework keeps.

    what     in words, with the framework's name
    signs    tables that its SQLite database has, all of them, or keys of the object in its file of JSON
    more     patterns of further tables of the same framework
    """

    what: str
    signs: frozenset[str]
    more: tuple[str, ...] = ()

    def has(self, table: str) -> bool:
        """Return whether a table is the framework's."""
        return table in self.signs or any(fnmatchcase(table, pattern) for pattern in self.more)


KNOWN_MEMORY: Sequence[KnownMemory] = (
    KnownMemory("LangGraph's checkpoints", frozenset(("checkpoints", "writes")), ("checkpoint_*", "store", "store_*")),
    KnownMemory(
        "sessions of the OpenAI Agents SDK",
        frozenset(("agent_sessions", "agent_messages")),
        ("message_structure", "turn_usage", "branch_reservations", "session_clear_generations"),
    ),
    KnownMemory(
        "sessions of Google's ADK",
        frozenset(("sessions", "events", "app_states", "user_states")),
        ("adk_internal_metadata",),
    ),
    KnownMemory("Agno's sessions", frozenset(("agno_sessions",)), ("agno_*",)),
    KnownMemory("CrewAI's flow states", frozenset(("flow_states",)), ("pending_feedback",)),
    KnownMemory("CrewAI's task outputs", frozenset(("latest_kickoff_task_outputs",))),
    KnownMemory("LangChain's messages", frozenset(("message_store",))),
    KnownMemory("AutoGen's state", frozenset(("type", "version", "agent_states"))),
    KnownMemory("AutoGen's state", frozenset(("type", "version", "llm_context"))),
    KnownMemory("checkpoints of Microsoft's Agent Framework", frozenset(("checkpoint_id", "workflow_name", "iteration_count"))),
)


def memory_of(names: Collection[str]) -> KnownMemory | None:
    """Return what keeps a database with these tables, or a file with an object of these keys; None if nothing known does."""
    return next((known for known in KNOWN_MEMORY if known.signs <= {*names}), None)
