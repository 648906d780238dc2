"""Worlds: what tools act on, outside of the agent. `docs/worlds.md` says what one is and how a pack declares it."""

from bench.environment.calling import Acted
from bench.environment.contracts import Quota, Role
from bench.environment.damage import Damage
from bench.environment.database import Db
from bench.environment.declaration import Environment, JudgmentState
from bench.environment.final import FinalWorld, final_world
from bench.environment.journal import Entry
from bench.environment.moment import Moment
from bench.environment.parts import Arrival, EventKind, Person, Policy, Scheduled, Standing, Tool, Verdict
from bench.environment.procedure import Call, Facts, Question, Step
from bench.environment.rules import KILL_SWITCH
from bench.environment.snapshot import CannotRestore, Snapshot
from bench.environment.world import World
from bench.errors import ToolRefused

__all__ = [
    "KILL_SWITCH",
    "Acted",
    "Arrival",
    "Call",
    "CannotRestore",
    "Damage",
    "Db",
    "Entry",
    "Environment",
    "EventKind",
    "Facts",
    "FinalWorld",
    "JudgmentState",
    "Moment",
    "Person",
    "Policy",
    "Question",
    "Quota",
    "Role",
    "Scheduled",
    "Snapshot",
    "Standing",
    "Step",
    "Tool",
    "ToolRefused",
    "Verdict",
    "World",
    "final_world",
]
