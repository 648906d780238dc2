"""What stands around a function: the gateway is asked before it runs and after it has run.

Without a fault the function gets the same arguments, gives the same object, and raises the same exception, on the same thread
or in the same task. A call that is made within a call, in its context, is a part of it, and is not asked about.
"""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .door import Door, DoorMessage
from .values import from_json, to_json

_within = ContextVar("bench_probe_within", default=False)
AnyCallable = Callable[..., Any]
Named = Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, Any] | None]
"""(positional arguments, named ones) -> the name of the tool that is called, and its arguments; None if it is no call."""


def around(door: Door, function: AnyCallable, named: Named) -> AnyCallable:
    """Return a function of the same kind that asks the gateway.

    Args:
        door: Where the gateway is asked.
        function: What is wrapped: a function, a coroutine function, or a generator function of either kind.
        named: Tells which tool is called, and with what.
    """

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall | None:
        if _within.get():
            return None
        try:
            given = named(args, kwargs)
        except (LookupError, AttributeError, TypeError):  # another version of a framework
            given = getattr(function, "__name__", "function"), arguments_of(function, args, kwargs)
        return FunctionCall(door, *given) if given else None

    async def asynchronous_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        made, items = call(args, kwargs), function(*args, **kwargs)
        async for item in made.iterate_in_loop(items) if made else items:
            yield item

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        made = call(args, kwargs)
        return await (made.run_in_loop(function, args, kwargs) if made else function(*args, **kwargs))

    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        made, items = call(args, kwargs), function(*args, **kwargs)
        return (yield from made.iterate(items) if made else items)

    def plain(*args: Any, **kwargs: Any) -> Any:
        made = call(args, kwargs)
        return made.run(function, args, kwargs) if made else function(*args, **kwargs)

    kinds: list[tuple[Callable[[object], bool], AnyCallable]] = [
        (inspect.isasyncgenfunction, asynchronous_generator),
        (inspect.iscoroutinefunction, coroutine),
        (inspect.isgeneratorfunction, generator),
    ]
    return functools.wraps(function)(next((wrapped for is_kind, wrapped in kinds if is_kind(function)), plain))


def arguments_of(function: AnyCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments of a call by the names of its parameters, without the object whose method it is."""
    try:
        arguments = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # it has no signature, or will say itself what is wrong
        return {"args": args, **kwargs} if args else kwargs
    if next(iter(arguments), "") in ("self", "cls"):
        del arguments[next(iter(arguments))]
    return arguments


@contextmanager
def inside() -> Iterator[None]:
    """What is called now is a part of a call."""
    token = _within.set(True)
    try:
        yield
    finally:
        _within.reset(token)


class FunctionCall:
    """One call of a function.

    Args:
        door: Where the gateway is asked.
        tool: The name of what is called.
        arguments: What it is called with.
    """

    def __init__(self, door: Door, tool: str, arguments: Any):
        self._door, self._number = door, door.number()
        self._arrival = {"call": self._number, "arrived": tool, "arguments": to_json(arguments)[0]}

    def run(self, function: AnyCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function as the gateway says, and return what it gives. If that is to be awaited
        or iterated, the call ends then."""
        before = self._ask(self._arrival)
        if before["do"] != "pass":
            return self._give(before)
        try:
            with self._running():
                value = function(*args, **kwargs)
        except Exception as error:
            return self._give(self._ask(self._failure(error)), error=error)
        if inspect.iscoroutine(value):
            return self._finish(value)
        if inspect.isgenerator(value):
            return self._rest(value)
        if inspect.isasyncgen(value):
            return self._rest_in_loop(value)
        return self._give(self._ask(self._success(value)), value)

    async def run_in_loop(self, function: AnyCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Await a coroutine as the gateway says, and return what it gives."""
        before = await self._ask_in_loop(self._arrival)
        if before["do"] != "pass":
            return self._give(before)
        return await self._finish(function(*args, **kwargs))

    async def _finish(self, coroutine: Awaitable[Any]) -> Any:
        try:
            with self._running():
                value = await coroutine
        except Exception as error:
            return self._give(await self._ask_in_loop(self._failure(error)), error=error)
        return self._give(await self._ask_in_loop(self._success(value)), value)

    def iterate(self, items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Yield what a generator does. It begins when it is first asked, and the call ends with it."""
        if (before := self._ask(self._arrival))["do"] != "pass":
            *items, last = self._give(before)
            yield from items
            return last
        return (yield from self._rest(items))

    async def iterate_in_loop(self, items: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
        """Yield what an asynchronous generator does, as `iterate`."""
        before = await self._ask_in_loop(self._arrival)
        if before["do"] != "pass":
            for item in self._give(before):
                yield item
            return
        async for item in self._rest_in_loop(items):
            yield item

    def _rest(self, items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        step: AnyCallable = items.send
        sent, given = None, list[Any]()
        while True:
            try:
                with self._running():
                    item = step(sent)
            except StopIteration as end:
                return self._give(self._ask(self._success([*given, end.value])), end.value)
            except Exception as error:
                return self._give(self._ask(self._failure(error)), error=error)
            given.append(item)
            try:
                step, sent = items.send, (yield item)
            except BaseException as error:
                step, sent = items.throw, error

    async def _rest_in_loop(self, items: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
        given = list[Any]()
        while True:
            try:
                with self._running():
                    given.append(await items.__anext__())
            except StopAsyncIteration:
                self._give(await self._ask_in_loop(self._success(given)))
                return
            except Exception as error:
                self._give(await self._ask_in_loop(self._failure(error)), error=error)
                return
            try:
                yield given[-1]
            except BaseException:
                self._tell("ended")
                await items.aclose()
                raise

    @contextmanager
    def _running(self) -> Iterator[None]:
        """What is called now is a part of this call. If it is cancelled, or its process ends, the call has ended."""
        with inside():
            try:
                yield
            except Exception:
                raise
            except BaseException:
                self._tell("ended")
                raise

    def _success(self, value: Any) -> DoorMessage:
        text, whole = to_json(value)
        return {"call": self._number, "answered": text, "whole": whole}

    def _failure(self, error: Exception) -> DoorMessage:
        return {"call": self._number, "answered": {"error": type(error).__name__, "text": str(error)}, "failed": True}

    def _tell(self, what: str) -> None:
        self._door.tell({"call": self._number, what: True})

    def _ask(self, message: DoorMessage) -> DoorMessage:
        try:
            return self._door.ask(message)
        except BaseException:  # such as a signal
            self._tell("left")
            raise

    async def _ask_in_loop(self, message: DoorMessage) -> DoorMessage:
        try:
            return await self._door.ask_in_loop(message)
        except BaseException:  # it was cancelled
            self._tell("left")
            raise

    def _give(self, fate: DoorMessage, value: Any = None, *, error: Exception | None = None) -> Any:
        """Return or raise what the gateway says; `value` is what the function gave, or `error` what it raised."""
        self._tell("given")
        if fate["do"] == "raise":
            raise _error(fate["kind"])(fate["text"]) from None
        if fate["do"] == "value":
            return from_json(fate["value"])
        if error is not None:
            raise error
        return value


def _error(kind: str) -> type[Exception]:
    """Return the type of an error: one of Python's own by its name, such as a tape has it."""
    error = getattr(builtins, kind, None)
    return error if isinstance(error, type) and issubclass(error, Exception) else ConnectionError
