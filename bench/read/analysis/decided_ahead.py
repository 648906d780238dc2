"""Fault plans that leave each trial only one possible result. Measurements under these plans are no evidence."""

from __future__ import annotations

from bench.read.analysis.frames import Run
from bench.record.config import FAULT_FREE
from bench.record.described import Described
from bench.record.plan_entries import FaultEntry

UNPAID = ("rate_limit", "server_error")
"""Effects that refuse a call before any of it is paid."""
NO_ANSWER = (
    "a fault strikes every attempt, so no trial can be solved, whatever the architecture does: the loss is what the control "
    "solves"
)
AS_CONTROL = "the failed call is made again, and the response cache gives it the same reply, so each trial equals its control"


def reason_for_fixed_outcome(run: Run, model: str, plan: str) -> str:
    """Return why no trial of this model under the plan could have had another result; '' if one could.

    Args:
        run: The run, whose config says what the plan's faults do.
        model: The model's name in the run.
        plan: The fault plan's name.
    """
    faults, known = run.config.faults_of(plan), run.manifest.descriptions
    if any(_leaves_no_answer(fault, known, run.config.max_attempts) for fault in faults):
        return NO_ANSWER
    cached = run.parameters_of(model).cache
    return AS_CONTROL if cached and faults and plan != FAULT_FREE and all(_goes_away(fault) for fault in faults) else ""


def _leaves_no_answer(fault: FaultEntry, known: Described, most: int) -> bool:
    """Return whether the fault makes every attempt at a subtask fail. A call that fails once is made again within the attempt,
    so a call must fail at every try."""
    effect = known.effect(fault.effect, fault.point)
    if fault.point == "call":
        return effect.fails and fault.attempts == "every"
    if fault.point == "output" and effect.breaks_form:
        return fault.attempts == "every" or set(range(1, most + 1)) <= set(fault.attempts)
    return False


def _goes_away(fault: FaultEntry) -> bool:
    """Return whether the fault fails a call before anything is paid. The same request is then sent again, as the same
    attempt."""
    return fault.point == "call" and fault.effect in UNPAID and fault.attempts != "every"
