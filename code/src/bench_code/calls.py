"""Records which functions run.

Python 3.11 uses `cProfile`, the profiler in C, which counts the calls of each code object. It costs less than a line
tracer, and leaves `sys.settrace` to debuggers and coverage. Later versions use `sys.monitoring`, which sees all threads and
reports each function once in each context.
"""

from __future__ import annotations

import sys
from cProfile import Profile
from types import BuiltinFunctionType, CodeType
from typing import Any, ClassVar

MONITORED = sys.version_info >= (3, 12)
TOOL = 4
"""Our number among the tools of `sys.monitoring`; it belongs to no debugger, coverage tool or profiler."""

UNSEEN_CALLS = frozenset({"now", "utcnow", "today", "fork_exec"})
"""The names of functions in C that nothing else shows."""

FunctionKey = tuple[str, int, str]
"""A function's file, first line and name. A code object is no key: two of equal content are equal, even in different files."""


def key_of(code: CodeType) -> FunctionKey:
    """Return the key of a function, which no other function has."""
    return code.co_filename, code.co_firstlineno, code.co_name


def _is_text(value: object) -> bool:
    return isinstance(value, str)


class Profiled:
    """Records with `cProfile` which functions run in one thread while it is enabled."""

    def __init__(self) -> None:
        self._profile = Profile(timer=bool, timeunit=1.0, subcalls=False)  # nobody asks for times, so no clock is read

    def enable(self) -> None:
        self._profile.enable()

    def disable(self) -> bool:
        """Stop recording. Return False if another profiler has replaced this one."""
        alone = id(sys.getprofile()) == id(self._profile)
        self._profile.disable()
        return alone

    def functions(self) -> list[CodeType | str]:
        """Return the code object of each function that ran, or the name of a function in C."""
        return [entry.code for entry in self._profile.getstats()]

    def counts(self) -> list[tuple[CodeType | str, int]]:
        """Return each function that ran, with the number of its calls."""
        return [(entry.code, entry.callcount) for entry in self._profile.getstats()]

    def clear(self) -> None:
        self._profile.clear()


class Monitored:
    """Records with `sys.monitoring` which functions run in any thread while it is enabled.

    Attributes:
        calls: The event of a call, once code has run that names a function in C whose calls matter; 0 before. To see all calls
            costs more than all else.
        judged: The functions of which it is known whether they name such a function.
    """

    calls = 0
    judged: ClassVar[set[FunctionKey]] = set()

    def __init__(self) -> None:
        self._seen: dict[FunctionKey | str, CodeType | str] = {}

    def enable(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events, disable, seen = monitoring.events, monitoring.DISABLE, self._seen
        starts = events.PY_START | events.PY_RESUME | events.PY_THROW

        def begun(code: CodeType, _offset: int) -> object:
            key = key_of(code)
            seen[key] = code
            if not self.calls and key not in self.judged:
                self.judged.add(key)
                if not UNSEEN_CALLS.isdisjoint((*code.co_names, *code.co_varnames, *filter(_is_text, code.co_consts))):
                    Monitored.calls = events.CALL  # from now on, as the function may be handed on to any other code
                    monitoring.set_events(TOOL, starts | events.CALL)
            return disable

        def thrown(code: CodeType, _offset: int, _error: BaseException) -> None:
            seen[key_of(code)] = code

        def called(_code: CodeType, _offset: int, function: object, _first: object) -> None:
            if type(function) is BuiltinFunctionType:
                module = f"{function.__module__}." if function.__module__ else ""
                name = f"<built-in method {module}{function.__name__}>"
                seen[name] = name

        if monitoring.get_tool(TOOL) is None:
            monitoring.use_tool_id(TOOL, "bench code")
        monitoring.register_callback(TOOL, events.PY_START, begun)
        monitoring.register_callback(TOOL, events.PY_RESUME, begun)
        monitoring.register_callback(TOOL, events.PY_THROW, thrown)
        monitoring.register_callback(TOOL, events.CALL, called)
        monitoring.set_events(TOOL, starts | self.calls)
        monitoring.restart_events()

    def disable(self) -> bool:
        """Stop recording. Return True, since no other tool can replace this one."""
        sys.monitoring.set_events(TOOL, 0)  # type: ignore[attr-defined,unused-ignore]
        return True

    def functions(self) -> list[CodeType | str]:
        """Return the code object of each function that ran, or the name of a function in C."""
        return list(self._seen.values())

    def clear(self) -> None:
        self._seen.clear()
