"""The log of notices is the source of truth. Each notice is consumed at least once. The steps that a notice begins are done
before the position in the log is saved.

Without remedies, a notice that comes twice, or is read again after a crash, begins its steps again. With remedies, an event has
an identity, so that a second notice of the event begins nothing, and each effect has a key. A decision names the model that
made it: if another model goes on, the decision is kept and the divergence is noted. The versions in notices show which notices
came late or out of order, and which changes had no notice."""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Arrival
from bench.worlds.run.patterns.accounts import IrregularityLog
from bench.worlds.run.patterns.procedure_runner import ProcedureRunner

LOG_POSITION = "place in the log"


async def event_driven(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    """Do the steps that each notice starts. With remedies, note missed and contradictory notices."""
    runner = ProcedureRunner(task, workbench, form, keeps="steps")
    irregularities = IrregularityLog(workbench, runner.memory) if form.remedies else None
    if irregularities:
        irregularities.note_other_models()
    while True:
        event = await workbench.world.next_event(workbench.world.store.get(LOG_POSITION, 0), runner.next_start())
        if event and irregularities:
            irregularities.note_irregular_notice(event)
        elif event:
            _reopen_steps(runner, event)
        caught_up = await runner.catch_up()
        await _drain(runner, irregularities)
        if event:
            workbench.world.store.put(LOG_POSITION, event.number)
        elif runner.next_start() is None and not caught_up:
            if irregularities:
                irregularities.note_missed_notices()
            return


def _reopen_steps(runner: ProcedureRunner, event: Arrival) -> None:
    """Reopen the steps that began at this kind of event, because a notice of the event came again."""
    for step in runner.steps:
        if step.on == event.kind and runner.memory.is_done(step.name):
            runner.reopen(step.name)


async def _drain(runner: ProcedureRunner, irregularities: IrregularityLog | None) -> None:
    """Do the steps that can begin, and the steps that become possible by these, until none is ready."""
    while ready := runner.ready():
        await runner.work(ready[0])
        if irregularities:
            irregularities.note_unannounced_changes()
