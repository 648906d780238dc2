"""The places where known frameworks execute a tool, in one table, with the versions that were tried.

A place is as near to the owner's function as the framework's own way to an error of it allows: what a fault raises there is
handled as what the function raises. What the framework hands to a function beside the model's arguments is left out.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .calls import arguments_of

MARK = "__bench_probe__"
Around = Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]
"""(function, what names its calls) -> the function with the gateway around it"""


@dataclass(frozen=True)
class ToolPlace:
    """Where a framework executes a tool.

    module  which is imported when that place is there; `wrap` puts a wrapper around it
    tried   the distribution, and its version that was tried
    """

    module: str
    wrap: Callable[[ModuleType, Around], None]
    tried: str


def _methods(owner: type, names: Collection[str], around: Around, tool_call: Callable[..., Any]) -> None:
    """Wrap methods of a class that execute its tool. `tool_call` gets what they get, and returns a name and arguments."""
    for name in names:
        setattr(owner, name, around(owner.__dict__[name], lambda args, kwargs: tool_call(*args, **kwargs)))


def _attributes(owner: Any, maker: str, names: Collection[str], around: Around, tool_call: Callable[..., Any]) -> None:
    """Wrap functions that each object of a class holds, once it is made. `tool_call` gets the object and named arguments."""
    make = getattr(owner, maker)

    @functools.wraps(make)
    def make_and_wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = make(self, *args, **kwargs)
        for name in names:
            if function := getattr(self, name, None):
                setattr(self, name, around(function, _naming(self, function, tool_call)))
        return result

    setattr(owner, maker, make_and_wrap)


def _before(
    owner: Any,
    names: Collection[str],
    tool_of: Callable[[Any], Any],
    attribute: str,
    around: Around,
    tool_call: Callable[..., Any],
) -> None:
    """Wrap the function that a tool holds before a method executes it."""

    def executing(execute: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(execute)
        def wrap_and_execute(self: Any, *args: Any, **kwargs: Any) -> Any:
            tool = tool_of(self)
            function = getattr(tool, attribute)
            if function and not hasattr(function, MARK):
                setattr(tool, attribute, around(function, _naming(tool, function, tool_call)))
                setattr(getattr(tool, attribute), MARK, True)
            return execute(self, *args, **kwargs)

        return wrap_and_execute

    for name in names:
        setattr(owner, name, executing(getattr(owner, name)))


def _naming(tool: Any, function: Callable[..., Any], tool_call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda args, kwargs: tool_call(tool, arguments_of(function, args, kwargs))


def _by_schema(properties: Callable[[Any], Collection[str]], name: str = "name") -> Callable[..., Any]:
    """Return what names a call of a tool: its name, and of its arguments those that its schema has, as the model gave them."""

    def tool_call(self: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        given, names = arguments.pop("kwargs", {}) | arguments, properties(self)
        return getattr(self, name), {each: given[each] for each in given if each in names}

    return tool_call


def _langchain(module: ModuleType, around: Around) -> None:
    base = module.BaseTool
    extend = base.__init_subclass__.__func__

    def tool_call(self: Any, *args: Any, **kwargs: Any) -> tuple[str, Any]:
        given = {name: value for name, value in kwargs.items() if name not in ("config", "run_manager")}
        kept = getattr(self, "_filter_injected_args", dict)(given)
        return self.name, {"args": args, **kept} if args else kept

    def extend_and_wrap(cls: Any, /, **kwargs: Any) -> None:
        extend(cls, **kwargs)
        _methods(cls, [name for name in ("_run", "_arun") if name in cls.__dict__], around, tool_call)

    base.__init_subclass__ = classmethod(extend_and_wrap)


def _openai_agents(module: ModuleType, around: Around) -> None:
    def tool_call(_: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        context, text = [*arguments.values()][-2:]
        return context.tool_name, _read(text)

    invoker = module._FailureHandlingFunctionToolInvoker
    _attributes(invoker, "__init__", ["_invoke_tool_impl"], around, tool_call)
    make = module.FunctionTool.__post_init__

    def make_and_wrap(self: Any) -> None:
        make(self)
        if not isinstance(self.on_invoke_tool, invoker):
            self.on_invoke_tool = around(self.on_invoke_tool, _naming(self, self.on_invoke_tool, tool_call))

    module.FunctionTool.__post_init__ = make_and_wrap


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _pydantic_ai(module: ModuleType, around: Around) -> None:
    _methods(module.FunctionSchema, ["call"], around, lambda self, args, ctx: (ctx.tool_name or self.function.__name__, args))


def _autogen(module: ModuleType, around: Around) -> None:
    def tool_call(self: Any, args: Any, *_: Any, **__: Any) -> tuple[str, Any]:
        return self.name, dict(args)

    _methods(module.BaseTool, ["run_json"], around, tool_call)
    _methods(module.BaseStreamTool, ["run_json_stream"], around, tool_call)


def _crewai(module: ModuleType, around: Around) -> None:
    def tool_call(self: Any, *args: Any, **kwargs: Any) -> tuple[str, Any]:
        return self.name, {**dict(zip(self.args_schema.model_fields, args)), **kwargs}  # noqa: B905  Python 3.10

    for kind in (module.BaseTool, module.Tool):
        _methods(kind, [name for name in ("run", "arun") if name in kind.__dict__], around, tool_call)


def _crewai_structured(module: ModuleType, around: Around) -> None:
    def tool_call(self: Any, input: Any, *_: Any, **__: Any) -> tuple[str, Any]:  # noqa: A002  as it is called
        return self.name, _read(input) if isinstance(input, str) else input

    _methods(module.CrewStructuredTool, ["invoke", "ainvoke"], around, tool_call)


def _smolagents(module: ModuleType, around: Around) -> None:
    def tool_call(self: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        return self.name, arguments

    _before(module.Tool, ["__call__"], lambda self: self, "forward", around, tool_call)


def _llama_index(module: ModuleType, around: Around) -> None:
    def tool_call(self: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        given = arguments.pop("kwargs", {}) | arguments
        return self.metadata.name, {name: value for name, value in given.items() if name != self.ctx_param_name}

    _attributes(module.FunctionTool, "__init__", ["_fn", "_async_fn"], around, tool_call)


def _google_adk(module: ModuleType, around: Around) -> None:
    def tool_call(self: Any, target: Any, args_to_call: dict[str, Any]) -> tuple[str, Any] | None:
        given = {name: value for name, value in args_to_call.items() if name not in ("tool_context", "input_stream")}
        return (self.name, given) if target is self.func else None  # else it asks whether the call is confirmed

    _methods(module.FunctionTool, ["_invoke_callable"], around, tool_call)


def _strands(module: ModuleType, around: Around) -> None:
    tool_call = _by_schema(lambda tool: tool.tool_spec["inputSchema"]["json"]["properties"], "tool_name")
    _attributes(module.DecoratedFunctionTool, "__init__", ["_tool_func"], around, tool_call)


def _agno(module: ModuleType, around: Around) -> None:
    tool_call = _by_schema(lambda tool: tool.parameters["properties"])
    _before(module.FunctionCall, ["execute", "aexecute"], lambda self: self.function, "entrypoint", around, tool_call)


def _haystack(module: ModuleType, around: Around) -> None:
    tool_call = _by_schema(lambda tool: tool.parameters["properties"])
    _attributes(module.Tool, "__post_init__", ["function", "async_function"], around, tool_call)


def _agent_framework(module: ModuleType, around: Around) -> None:
    tool_call = _by_schema(lambda tool: tool.parameters()["properties"])
    _attributes(module.FunctionTool, "__init__", ["func"], around, tool_call)


PLACES: Sequence[ToolPlace] = (
    ToolPlace("langchain_core.tools.base", _langchain, "langchain-core 1.8.3"),
    ToolPlace("agents.tool", _openai_agents, "openai-agents 0.24.0"),
    ToolPlace("pydantic_ai._function_schema", _pydantic_ai, "pydantic-ai-slim 2.68.0"),
    ToolPlace("autogen_core.tools._base", _autogen, "autogen-core 0.7.5"),
    ToolPlace("crewai.tools.base_tool", _crewai, "crewai 1.15.30"),
    ToolPlace("crewai.tools.structured_tool", _crewai_structured, "crewai 1.15.30"),
    ToolPlace("smolagents.tools", _smolagents, "smolagents 1.26.0"),
    ToolPlace("llama_index.core.tools.function_tool", _llama_index, "llama-index-core 0.14.25"),
    ToolPlace("google.adk.tools.function_tool", _google_adk, "google-adk 2.13.0"),
    ToolPlace("strands.tools.decorator", _strands, "strands-agents 1.62.0"),
    ToolPlace("agno.tools.function", _agno, "agno 3.1.10"),
    ToolPlace("haystack.tools.tool", _haystack, "haystack-ai 3.4.1"),
    ToolPlace("agent_framework._tools", _agent_framework, "agent-framework-core 1.23.0"),
)
