"""Sees which functions run.

On Python 3.11 it is the profiler in C, `cProfile`, which counts calls and knows the code object of each. It costs less than a
line tracer, and leaves `sys.settrace` to debuggers and coverage. From 3.12 on it is `sys.monitoring`, which sees all threads,
and tells of each function once for each context.
"""

from __future__ import annotations

import sys
from cProfile import Profile
from types import BuiltinFunctionType, CodeType
from typing import Any

MONITORED = sys.version_info >= (3, 12)
TOOL = 4
"""Our number among the tools of `sys.monitoring`; it belongs to no debugger, coverage tool or profiler."""


FunctionKey = tuple[str, int, str]
"""A function's file, first line and name. Code objects of equal content are equal, whichever file they are of."""


def key_of(code: CodeType) -> FunctionKey:
    """What tells a function apart from all others."""
    return code.co_filename, code.co_firstlineno, code.co_name


class Profiled:
    """The functions that ran in one thread while it was enabled, by `cProfile`."""

    def __init__(self) -> None:
        self._profile = Profile(timer=bool, timeunit=1.0, subcalls=False)  # nobody asks for times, so no clock is read

    def enable(self) -> None:
        self._profile.enable()

    def disable(self) -> bool:
        """See no more; False where somebody else's profiler has taken the place of this one."""
        alone = id(sys.getprofile()) == id(self._profile)
        self._profile.disable()
        return alone

    def functions(self) -> list[CodeType | str]:
        """Return the code of each function that ran; the name of a function in C."""
        return [entry.code for entry in self._profile.getstats()]

    def counts(self) -> list[tuple[CodeType | str, int]]:
        """Return each function that ran, and how often."""
        return [(entry.code, entry.callcount) for entry in self._profile.getstats()]

    def clear(self) -> None:
        self._profile.clear()


class Monitored:
    """The functions that ran in any thread while it was enabled, by `sys.monitoring`."""

    def __init__(self) -> None:
        self._seen: dict[FunctionKey | str, CodeType | str] = {}

    def enable(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events, disable, seen = monitoring.events, monitoring.DISABLE, self._seen

        def begun(code: CodeType, _offset: int) -> object:
            seen[key_of(code)] = code
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
        monitoring.set_events(TOOL, events.PY_START | events.PY_RESUME | events.PY_THROW | events.CALL)
        monitoring.restart_events()

    def disable(self) -> bool:
        """See no more. No other tool can take its place."""
        sys.monitoring.set_events(TOOL, 0)  # type: ignore[attr-defined,unused-ignore]
        return True

    def functions(self) -> list[CodeType | str]:
        """Return the code of each function that ran; the name of a function in C."""
        return list(self._seen.values())

    def clear(self) -> None:
        self._seen.clear()
