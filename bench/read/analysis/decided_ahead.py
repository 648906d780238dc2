"""Find the fault plans under which every trial has the same outcome, whatever the architecture does. Trials under these plans
are no evidence."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.record.config import FAULT_FREE
from bench.record.described import Described
from bench.record.plan_entries import FaultEntry

UNPAID_EFFECTS = ("rate_limit", "server_error")
"""Effects that refuse a call before any of it is paid."""
NO_ANSWER = (
    "a fault strikes every attempt, so no trial can be solved, whatever the architecture does: the loss is what the control "
    "solves"
)
AS_CONTROL = "the failed call is made again, and the response cache gives it the same reply, so each trial equals its control"


def reason_for_fixed_outcome(run: Run, model: str, plan: str) -> str:
    """Return why no trial of this model under the plan could have had another outcome; '' if one could.

    Args:
        run: The run, whose config has the plan's faults.
        model: The model's name in the run.
        plan: The fault plan's name.
    """
    faults, descriptions = run.config.faults_of(plan), run.manifest.descriptions
    if any(_leaves_no_answer(fault, descriptions, run.config.max_attempts) for fault in faults):
        return NO_ANSWER
    cached = run.parameters_of(model).cache
    return AS_CONTROL if cached and faults and plan != FAULT_FREE and all(map(_repeats_the_request, faults)) else ""


def _leaves_no_answer(fault: FaultEntry, descriptions: Described, max_attempts: int) -> bool:
    """Whether the fault makes every attempt at a subtask fail. A failed call is made again within the attempt, so a fault of
    calls must strike every try."""
    effect = descriptions.effect(fault.effect, fault.point)
    if fault.point == "call":
        return effect.fails and fault.attempts == "every"
    if fault.point == "output" and effect.breaks_form:
        return fault.attempts == "every" or set(range(1, max_attempts + 1)) <= set(fault.attempts)
    return False


def _repeats_the_request(fault: FaultEntry) -> bool:
    """Whether the fault fails a call before any of it is paid, so that the same request is sent again as the same attempt."""
    return fault.point == "call" and fault.effect in UNPAID_EFFECTS and fault.attempts != "every"
