"""One `bench run` at work: it begins calls until it is asked not to, and then lets those in flight come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from bench.errors import BenchError
from bench.experiment.budget import Spending
from bench.experiment.repeated_call import RepeatedCalls
from bench.experiment.untrusted import Permission
from bench.models.base import Reply, Response
from bench.runtime.gate import Gate
from bench.runtime.slots import Slots

Result = TypeVar("Result")


class Session:
    """Until `end`, calls begin. From then on none does: those in flight are awaited and kept, a trial goes on to its own end or
    to its next call, where it is given up; it is run again later, and what it was answered is not asked again.

    spending    what it has spent of its budget; None where it has none
    permitted   how it is graded, if not as `permission` says of itself
    say         is told in one line what a person has to know at once
    why         why no call is begun any more; "" while they are
    has_begun   whether trials run
    """

    def __init__(
        self,
        spending: Spending | None = None,
        say: Callable[[str], object] = lambda _: None,
        permitted: Permission | None = None,
    ):
        self.say = say
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
        """Calls that are being awaited."""
        return sum(trial.in_flight for trial in self._trials)

    def begin(self, gates: Iterable[Gate]) -> None:
        """The first calls are about to be made, through these gates."""
        self.has_begun = True
        self._gates += gates
        self.check_budget()
        if self.spending and (minutes := self.spending.budget.minutes) is not None:
            why = f"--max-minutes {minutes:g} is reached"
            asyncio.get_running_loop().call_later(60.0 * minutes, self.end, why)

    def end(self, why: str, error: BenchError | None = None) -> None:
        """Begin no further call. `error`: it is that of the whole run (`raise_error`). The first reason stands."""
        if self.why:
            return
        self.why, self._error = why, error
        for gate in self._gates:
            gate.shut()
        for trial in list(self._trials):
            trial.changed()

    def raise_error(self) -> None:
        """Raise what ended the session, where it was an error."""
        if self._error:
            raise self._error

    def saw(self, response: Response) -> None:
        """A response came, is kept, and its tokens are counted."""
        if self.spending:
            self.spending.saw(response)
            self.check_budget()

    def watching(self, architecture: str) -> Callable[[Response], None]:
        """Return what is told of each response of one trial. Of an architecture it also says, once, that the model makes the
        same tool call again and again."""
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
        """Await a trial in the current task; None where it asked for a call that is not made any more."""
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
        """End the session where its budget is reached."""
        if self.spending and (why := self.spending.reached):
            self.end(why)
