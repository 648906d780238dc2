"""Worlds: the state outside the agent on which its tools act. `docs/worlds.md` says how a pack declares a world."""

from bench.common.errors import ToolRefused
from bench.record.damage import Damage
from bench.record.journal import JournalEntry
from bench.record.moment import Moment
from bench.scenario import Call
from bench.worlds.run.environment.calling import Acted
from bench.worlds.run.environment.contracts import Quota, Role
from bench.worlds.run.environment.database import Db
from bench.worlds.run.environment.declaration import Environment, JudgmentState
from bench.worlds.run.environment.final import FinalWorld, final_world
from bench.worlds.run.environment.parts import Arrival, EventKind, Person, Policy, PolicyVerdict, Scheduled, Standing, Tool
from bench.worlds.run.environment.procedure import Facts, ProcedureStep, Question
from bench.worlds.run.environment.rules import KILL_SWITCH
from bench.worlds.run.environment.snapshot import CannotRestore, Snapshot
from bench.worlds.run.environment.world import World

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
