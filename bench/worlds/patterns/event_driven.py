"""The log of notices is the truth: each is consumed at least once, and what it begins is done before the log's place is kept.

Bare a notice that comes twice, or is read again after a crash, begins its steps again. With remedies an event has an identity,
by which a second notice of it begins nothing, and each effect a key. What is decided upon an event names the model that did:
where another model goes on, the decision stands and the divergence is noted. Watermarks tell what came late or out of order,
and what was never told.
"""

from __future__ import annotations

from bench.architectures.form import BARE, Form
from bench.runtime.workbench import Workbench
from bench.scenario import Task
from bench.worlds.environment import Arrival
from bench.worlds.patterns.parts.accounts import Accounts
from bench.worlds.patterns.parts.procedure_runner import ProcedureRunner

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
    """Consume what the steps that are done have begun, until they begin nothing more."""
    while ready := office.ready():
        await office.work(ready[0])
        if accounts:
            accounts.worked()
