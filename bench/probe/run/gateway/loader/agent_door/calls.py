"""The wrapper of a tool's function. It asks the gateway before the function runs and after it has run.

Without a fault the function gets the same arguments, returns the same object, and raises the same exception, on the same
thread or in the same task. A call within a wrapped call, in the same context, is part of it: the gateway is not asked.
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

_is_within_call = ContextVar("bench_probe_within", default=False)
AnyCallable = Callable[..., Any]
Describe = Callable[[tuple[Any, ...], dict[str, Any]], tuple[str, Any] | None]
"""(positional arguments, named ones) -> the name of the tool that is called, and its arguments; None if it is no call."""


def wrap_function(door: Door, function: AnyCallable, describe: Describe) -> AnyCallable:
    """Return a function of the same kind that asks the gateway before and after each call.

    Args:
        door: Asks the gateway.
        function: A function, a coroutine function, or a generator function of either kind.
        describe: Returns the name of the tool and the arguments of a call; None if the gateway is not asked about it.
    """

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall | None:
        """Return the call for these arguments; None if it is part of another call, or no call of a tool."""
        if _is_within_call.get():
            return None
        try:
            description = describe(args, kwargs)
        except (LookupError, AttributeError, TypeError):  # another version of a framework
            description = getattr(function, "__name__", "function"), arguments_of(function, args, kwargs)
        return FunctionCall(door, *description) if description else None

    async def asynchronous_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        function_call, items = call(args, kwargs), function(*args, **kwargs)
        async for item in function_call.iterate_in_loop(items) if function_call else items:
            yield item

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        function_call = call(args, kwargs)
        return await (function_call.run_in_loop(function, args, kwargs) if function_call else function(*args, **kwargs))

    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        function_call, items = call(args, kwargs), function(*args, **kwargs)
        return (yield from function_call.iterate(items) if function_call else items)

    def plain(*args: Any, **kwargs: Any) -> Any:
        function_call = call(args, kwargs)
        return function_call.run(function, args, kwargs) if function_call else function(*args, **kwargs)

    wrappers_by_kind: list[tuple[Callable[[object], bool], AnyCallable]] = [
        (inspect.isasyncgenfunction, asynchronous_generator),
        (inspect.iscoroutinefunction, coroutine),
        (inspect.isgeneratorfunction, generator),
    ]
    return functools.wraps(function)(next((wrapper for is_kind, wrapper in wrappers_by_kind if is_kind(function)), plain))


def arguments_of(function: AnyCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments of a call by the names of its parameters, without `self` or `cls`."""
    try:
        arguments = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # it has no signature, or the call itself will raise
        return {"args": args, **kwargs} if args else kwargs
    if next(iter(arguments), "") in ("self", "cls"):
        del arguments[next(iter(arguments))]
    return arguments


@contextmanager
def within_call() -> Iterator[None]:
    """Mark the calls in the block as parts of a wrapped call."""
    token = _is_within_call.set(True)
    try:
        yield
    finally:
        _is_within_call.reset(token)


class FunctionCall:
    """One call of a wrapped function.

    Args:
        door: Asks the gateway.
        tool: The name of the tool.
        arguments: The arguments of the call.
    """

    def __init__(self, door: Door, tool: str, arguments: Any):
        self._door, self._number = door, door.next_number()
        self._arrival = {"call": self._number, "arrived": tool, "arguments": to_json(arguments)[0]}

    def run(self, function: AnyCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function as the gateway says, and return its result. If the result is a coroutine or a generator, the call
        ends when this has ended."""
        reply = self._ask(self._arrival)
        if reply["do"] != "pass":
            return self._return_or_raise(reply)
        try:
            with self._running():
                value = function(*args, **kwargs)
        except Exception as error:
            return self._return_or_raise(self._ask(self._failure(error)), error=error)
        if inspect.iscoroutine(value):
            return self._finish(value)
        if inspect.isgenerator(value):
            return self._iterate_running(value)
        if inspect.isasyncgen(value):
            return self._iterate_running_in_loop(value)
        return self._return_or_raise(self._ask(self._success(value)), value)

    async def run_in_loop(self, function: AnyCallable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Await a coroutine as the gateway says, and return its result."""
        reply = await self._ask_in_loop(self._arrival)
        if reply["do"] != "pass":
            return self._return_or_raise(reply)
        return await self._finish(function(*args, **kwargs))

    async def _finish(self, coroutine: Awaitable[Any]) -> Any:
        """Await a coroutine, and return or raise what the gateway says."""
        try:
            with self._running():
                value = await coroutine
        except Exception as error:
            return self._return_or_raise(await self._ask_in_loop(self._failure(error)), error=error)
        return self._return_or_raise(await self._ask_in_loop(self._success(value)), value)

    def iterate(self, items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Yield the items of a generator as the gateway says. The call ends with the generator."""
        if (reply := self._ask(self._arrival))["do"] != "pass":
            *items, last = self._return_or_raise(reply)
            yield from items
            return last
        return (yield from self._iterate_running(items))

    async def iterate_in_loop(self, items: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
        """Yield the items of an asynchronous generator as the gateway says."""
        reply = await self._ask_in_loop(self._arrival)
        if reply["do"] != "pass":
            for item in self._return_or_raise(reply):
                yield item
            return
        async for item in self._iterate_running_in_loop(items):
            yield item

    def _iterate_running(self, items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Yield the items of a generator, and show the gateway all of them at its end."""
        step: AnyCallable = items.send
        sent, yielded = None, list[Any]()
        while True:
            try:
                with self._running():
                    item = step(sent)
            except StopIteration as end:
                return self._return_or_raise(self._ask(self._success([*yielded, end.value])), end.value)
            except Exception as error:
                return self._return_or_raise(self._ask(self._failure(error)), error=error)
            yielded.append(item)
            try:
                step, sent = items.send, (yield item)
            except BaseException as error:
                step, sent = items.throw, error

    async def _iterate_running_in_loop(self, items: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
        """Yield the items of an asynchronous generator, and show the gateway all of them at its end."""
        yielded = list[Any]()
        while True:
            try:
                with self._running():
                    yielded.append(await items.__anext__())
            except StopAsyncIteration:
                self._return_or_raise(await self._ask_in_loop(self._success(yielded)))
                return
            except Exception as error:
                self._return_or_raise(await self._ask_in_loop(self._failure(error)), error=error)
                return
            try:
                yield yielded[-1]
            except BaseException:
                self._tell("ended")
                await items.aclose()
                raise

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Mark the calls in the block as parts of this call. If the block is cancelled, or its process ends, tell the
        gateway."""
        with within_call():
            try:
                yield
            except Exception:
                raise
            except BaseException:
                self._tell("ended")
                raise

    def _success(self, value: Any) -> DoorMessage:
        """Return the message about a result."""
        text, whole = to_json(value)
        return {"call": self._number, "answered": text, "whole": whole}

    def _failure(self, error: Exception) -> DoorMessage:
        """Return the message about an exception."""
        return {"call": self._number, "answered": {"error": type(error).__name__, "text": str(error)}, "failed": True}

    def _tell(self, event: str) -> None:
        """Tell the gateway an event of this call that has no reply: `given`, `ended` or `left`."""
        self._door.tell({"call": self._number, event: True})

    def _ask(self, message: DoorMessage) -> DoorMessage:
        """Ask the gateway; tell it if the caller stops waiting."""
        try:
            return self._door.ask(message)
        except BaseException:  # such as a signal
            self._tell("left")
            raise

    async def _ask_in_loop(self, message: DoorMessage) -> DoorMessage:
        """Ask the gateway in the event loop; tell it if the caller stops waiting."""
        try:
            return await self._door.ask_in_loop(message)
        except BaseException:  # it was cancelled
            self._tell("left")
            raise

    def _return_or_raise(self, reply: DoorMessage, value: Any = None, *, error: Exception | None = None) -> Any:
        """Return or raise what the gateway says: the function's own `value` or `error`, or a replacement."""
        self._tell("given")
        if reply["do"] == "raise":
            raise _exception_type(reply["kind"])(reply["text"]) from None
        if reply["do"] == "value":
            return from_json(reply["value"])
        if error is not None:
            raise error
        return value


def _exception_type(kind: str) -> type[Exception]:
    """Return the built-in exception type with this name; ConnectionError if there is none."""
    error = getattr(builtins, kind, None)
    return error if isinstance(error, type) and issubclass(error, Exception) else ConnectionError
