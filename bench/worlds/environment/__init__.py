"""Worlds: the state outside the agent on which its tools act. `docs/worlds.md` says how a pack declares a world."""

from bench.errors import ToolRefused
from bench.scenario import Call
from bench.worlds.environment.calling import Acted
from bench.worlds.environment.contracts import Quota, Role
from bench.worlds.environment.damage import Damage
from bench.worlds.environment.database import Db
from bench.worlds.environment.declaration import Environment, JudgmentState
from bench.worlds.environment.final import FinalWorld, final_world
from bench.worlds.environment.journal import JournalEntry
from bench.worlds.environment.moment import Moment
from bench.worlds.environment.parts import Arrival, EventKind, Person, Policy, PolicyVerdict, Scheduled, Standing, Tool
from bench.worlds.environment.procedure import Facts, ProcedureStep, Question
from bench.worlds.environment.rules import KILL_SWITCH
from bench.worlds.environment.snapshot import CannotRestore, Snapshot
from bench.worlds.environment.world import World

__all__ = [
    "KILL_SWITCH",
    "Acted",
    "Arrival",
    "Call",
    "CannotRestore",
    "Damage",
    "Db",
    "Environment",
    "EventKind",
    "Facts",
    "FinalWorld",
    "JournalEntry",
    "JudgmentState",
    "Moment",
    "Person",
    "Policy",
    "PolicyVerdict",
    "ProcedureStep",
    "Question",
    "Quota",
    "Role",
    "Scheduled",
    "Snapshot",
    "Standing",
    "Tool",
    "ToolRefused",
    "World",
    "final_world",
]
