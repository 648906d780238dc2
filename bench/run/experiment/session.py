"""A running `bench run`. When the session ends, no further call begins, and the calls in flight are awaited."""

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
    """One invocation of `bench run`. Calls begin until `end`. After that no call begins: calls in flight are awaited and
    recorded, and a trial continues to its end or to its next call, where it is stopped. That trial is run again later, and its
    replies are reused.

    spending    the tokens and dollars spent of its budget; None without a budget
    permitted   how answers are graded; None leaves that to `permission`
    say         gets each line that the user must read at once
    workers     how many trials of commands run at the same time if no model is live
    why         why no call begins any more; "" while calls can begin
    has_begun   whether the trials have begun
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
        self._repeating: set[str] = set()

    @property
    def ending(self) -> str:
        """Why the session ended, and what it had spent by then."""
        return f"{self.why} ({self.spending.summary})" if self.spending else self.why

    @property
    def in_flight(self) -> int:
        """How many calls are in flight."""
        return sum(trial.in_flight for trial in self._trials)

    def begin(self, gates: Iterable[Gate]) -> None:
        """Register the gates of the session's calls, check the budget and start its time limit."""
        self.has_begun = True
        self._gates += gates
        self.check_budget()
        if self.spending and (minutes := self.spending.budget.minutes) is not None:
            why = f"--max-minutes {minutes:g} is reached"
            asyncio.get_running_loop().call_later(60.0 * minutes, self.end, why)

    def end(self, why: str, error: BenchError | None = None) -> None:
        """Let no further call begin. `error` is the error of the whole run, if there is one (`raise_error`). Only the first
        reason is kept."""
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

    def add_response(self, response: Response) -> None:
        """Add a stored response to the spending, and end the session if its budget is reached."""
        if self.spending:
            self.spending.add(response)
            self.check_budget()

    def response_watcher(self, architecture: str) -> Callable[[Response], None]:
        """Return a function that must be called with each response of one trial. The function adds the response to the
        spending. If the model repeats the same tool call again and again, the function prints a line, once for each
        architecture."""
        repeated = RepeatedCalls()

        def watch(response: Response) -> None:
            """Add a response to the spending, and report a repeated tool call."""
            self.add_response(response)
            if architecture not in self._repeating and isinstance(reply := response.outcome, Reply):
                repeated.add((message.role for message in response.request.messages), reply.tool_calls)
                if repeated.description:
                    self._repeating.add(architecture)
                    self.say(f"{architecture}: {repeated.description}")

        return watch

    async def run_until_end(self, trial: Coroutine[Any, Any, Result], slots: Slots) -> Result | None:
        """Await a trial in the current task. Return None if the trial asked for a call after the session had ended."""
        task = asyncio.current_task()
        assert task
        stopped = False

        def check() -> None:
            """Stop the trial if the session has ended and the trial waits for a call."""
            nonlocal stopped
            if self.why and slots.is_waiting and not stopped:
                stopped = True
                task.cancel()

        slots.changed = check
        self._trials.add(slots)
        try:
            return await trial
        except asyncio.CancelledError:
            if stopped and task.uncancel() == 0:
                return None
            raise
        finally:
            self._trials.remove(slots)

    def check_budget(self) -> None:
        """End the session if its budget is reached."""
        if self.spending and (why := self.spending.limit_reached):
            self.end(why)
