"""The event loop on which all asynchronous code here runs. It knows when nothing can run, and to which trial each task belongs.

Virtual time passes when asyncio would wait: no task is ready, and no connection has anything to read. asyncio then asks its
selector to block; ours first wakes those who sleep in virtual time. So virtual seconds depend neither on how many turns of the
loop a task needs nor on the machine.

Real timers and connections work as on any loop, and sleepers in virtual time do not wait for them: a timer can be a time limit.
A job in a thread is work of the trial that began it, and stops that trial's time.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar, TypeVarTuple

Result = TypeVar("Result")
Ts = TypeVarTuple("Ts")


class Sleeper(Protocol):
    """A trial that sleeps in virtual time."""

    def wake(self) -> bool:
        """Wake up because nothing else can run. Return whether the event loop now has something to do."""


class Observer(Protocol):
    """The interface of a trial's clock that follows the trial's work over tasks and threads."""

    def follow(self, work: Coroutine[Any, Any, Result]) -> Coroutine[Any, Any, Result]: ...

    def task_began(self, task: asyncio.Task[Any]) -> None: ...

    def job_began(self) -> None: ...

    def job_ended(self) -> None: ...


observer: contextvars.ContextVar[Observer | None] = contextvars.ContextVar("observer", default=None)
"""The trial whose work the present code is. Tasks inherit it."""
from_thread: contextvars.ContextVar[bool] = contextvars.ContextVar("from_thread", default=False)
"""Whether a thread put the present code on the loop."""


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on our loop: all asynchronous code here runs this way."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(work)


def run_whole(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the main coroutine of a process. The garbage collector then skips the objects that exist already: one pass over all
    modules took 70 ms, in which the event loop stood still."""
    gc.freeze()
    return run(work)


def running_loop() -> Loop:
    """Return the loop that the caller runs on. Raises RuntimeError if it is not ours."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, Loop):
        problem = f"a trial runs on the package's own event loop, not on {type(loop).__name__}"
        raise RuntimeError(f"{problem}: call bench.run.trial.loop.run(...) instead of asyncio.run(...)")
    return loop


class IdleSelector(selectors.DefaultSelector):
    """A selector that wakes the sleepers instead of blocking, as long as one of them has something to do."""

    def __init__(self) -> None:
        super().__init__()
        self.sleepers: dict[Sleeper, None] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the connections that are ready, after waiting at most `timeout` seconds. If the loop would wait, wake the
        sleepers first."""
        idle = timeout is None or timeout > 0
        if not idle or not self.sleepers:
            return super().select(timeout)
        return super().select(0) or ([] if self._wake() else super().select(timeout))

    def _wake(self) -> bool:
        """Wake every sleeper: they are different trials, and none waits for another. Return whether one has something to do."""
        return any([sleeper.wake() for sleeper in list(self.sleepers)])  # noqa: C419  a list, so that all wake


class Loop(asyncio.SelectorEventLoop):
    """The package's event loop. `sleepers` holds the trials that sleep in virtual time."""

    def __init__(self) -> None:
        selector = IdleSelector()
        super().__init__(selector)
        self.sleepers = selector.sleepers
        self._thread = threading.get_ident()
        self.set_task_factory(_observe)

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], Result], *args: *Ts) -> asyncio.Future[Result]:
        """Run a job in a thread, as on any event loop, and tell its trial when the job begins and ends."""
        job = super().run_in_executor(executor, func, *args)
        if trial := observer.get():
            trial.job_began()
            job.add_done_callback(lambda _: trial.job_ended())
        return job

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback, as on any event loop, and mark it if a thread schedules it."""
        if threading.get_ident() != self._thread:
            context = (context or contextvars.copy_context()).copy()
            context.run(from_thread.set, True)
        return super().call_soon_threadsafe(callback, *args, context=context)


def _observe(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Create a task whose time counts for the trial that created it."""
    trial = observer.get()
    task = asyncio.Task(trial.follow(work) if trial and asyncio.iscoroutine(work) else work, loop=loop, **options)
    if trial:
        trial.task_began(task)
    return task
