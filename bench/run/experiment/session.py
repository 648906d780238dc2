"""A running `bench run`: it begins calls until it is told to end, and then awaits those in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from bench.common.errors import BenchError
from bench.record.repeated_call import RepeatedCalls
from bench.run.experiment.budget import Spending
from bench.run.experiment.untrusted import Permission
from bench.run.models.base import Reply, Response
from bench.run.trial.gate import Gate
from bench.run.trial.slots import Slots

Result = TypeVar("Result")


class Session:
    """A session. Calls begin until `end`. After it none begins: calls in flight are awaited and kept, and a trial runs on to
    its end or to its next call, where it is given up. That trial is run again later, and its replies are reused.

    spending    what it has spent of its budget; None without a budget
    permitted   how it grades; None leaves that to `permission`
    say         gets, in one line, what the user must know at once
    workers     how many trials of commands run at a time where no model is live
    why         why no call begins any more; "" while calls begin
    has_begun   whether trials run
    """

    def __init__(
        self,
        spending: Spending | None = None,
        say: Callable[[str], object] = lambda _: None,
        permitted: Permission | None = None,
        workers: int = 1,
    ):
        self.say = say
        self.workers = workers
        self.permitted = permitted
        self.why = ""
        self.has_begun = False
        self._error: BenchError | None = None
        self.spending = spending
        self._gates: list[Gate] = []
        self._trials: set[Slots] = set()
        self._circling: set[str] = set()

    @property
    def ending(self) -> str:
        """Why it ended, and what it had spent by then."""
        return f"{self.why} ({self.spending.summary})" if self.spending else self.why

    @property
    def in_flight(self) -> int:
        """How many calls are in flight."""
        return sum(trial.in_flight for trial in self._trials)

    def begin(self, gates: Iterable[Gate]) -> None:
        """Prepare for the first calls, which go through these gates."""
        self.has_begun = True
        self._gates += gates
        self.check_budget()
        if self.spending and (minutes := self.spending.budget.minutes) is not None:
            why = f"--max-minutes {minutes:g} is reached"
            asyncio.get_running_loop().call_later(60.0 * minutes, self.end, why)

    def end(self, why: str, error: BenchError | None = None) -> None:
        """Begin no further call. `error` is the error of the whole run, if any (`raise_error`). The first reason stands."""
        if self.why:
            return
        self.why, self._error = why, error
        for gate in self._gates:
            gate.shut()
        for trial in list(self._trials):
            trial.changed()

    def raise_error(self) -> None:
        """Raise the error that ended the session, if one did."""
        if self._error:
            raise self._error

    def saw(self, response: Response) -> None:
        """Count a response that was kept and whose tokens are counted."""
        if self.spending:
            self.spending.saw(response)
            self.check_budget()

    def watching(self, architecture: str) -> Callable[[Response], None]:
        """Return the function that gets each response of one trial. It also says, once for an architecture, that the model
        makes the same tool call again and again."""
        repeated = RepeatedCalls()

        def saw(response: Response) -> None:
            self.saw(response)
            if architecture not in self._circling and isinstance(reply := response.outcome, Reply):
                repeated.add((message.role for message in response.request.messages), reply.tool_calls)
                if repeated.told:
                    self._circling.add(architecture)
                    self.say(f"{architecture}: {repeated.told}")

        return saw

    async def until_held(self, trial: Coroutine[Any, Any, Result], slots: Slots) -> Result | None:
        """Await a trial in the current task. Returns None if it asked for a call after the end."""
        task = asyncio.current_task()
        assert task
        held = False

        def check() -> None:
            nonlocal held
            if self.why and slots.is_waiting and not held:
                held = True
                task.cancel()

        slots.changed = check
        self._trials.add(slots)
        try:
            return await trial
        except asyncio.CancelledError:
            if held and task.uncancel() == 0:
                return None
            raise
        finally:
            self._trials.remove(slots)

    def check_budget(self) -> None:
        """End the session if its budget is reached."""
        if self.spending and (why := self.spending.reached):
            self.end(why)
