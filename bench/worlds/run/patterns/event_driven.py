"""The log of notices is the source of truth. Each notice is consumed at least once. The steps that it begins are done before
the place in the log is saved.

Bare, a notice that comes twice, or is read again after a crash, begins its steps again. With remedies, an event has an
identity, so that a second notice of it begins nothing, and each effect has a key. A decision names the model that made it: if
another model goes on, the decision stands and the divergence is noted. Watermarks show which notices came late or out of order,
and which changes were never told.
"""

from __future__ import annotations

from bench.record.form import BARE, Form
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Arrival
from bench.worlds.run.patterns.parts.accounts import Accounts
from bench.worlds.run.patterns.parts.procedure_runner import ProcedureRunner

PLACE = "place in the log"


async def event_driven(task: Task, workbench: Workbench, form: Form = BARE) -> None:
    office = ProcedureRunner(task, workbench, form, keeps="steps")
    accounts = Accounts(workbench, office.memory) if form.remedies else None
    if accounts:
        accounts.begun()
    while True:
        event = await workbench.world.next_event(workbench.world.store.get(PLACE, 0), office.next_start())
        if event and accounts:
            accounts.consumed(event)
        elif event:
            _begin_anew(office, event)
        caught_up = await office.catch_up()
        await _drain(office, accounts)
        if event:
            workbench.world.store.put(PLACE, event.number)
        elif office.next_start() is None and not caught_up:
            if accounts:
                accounts.ended()
            return


def _begin_anew(office: ProcedureRunner, event: Arrival) -> None:
    for step in office.steps:
        if step.on == event.kind and office.memory.done(step.name):
            office.reopen(step.name)


async def _drain(office: ProcedureRunner, accounts: Accounts | None) -> None:
    """Do the steps that can begin, and the steps that these make possible, until none is ready."""
    while ready := office.ready():
        await office.work(ready[0])
        if accounts:
            accounts.worked()
