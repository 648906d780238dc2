"""The places where known frameworks execute a tool, in one table, with the versions that were tried.

Each place is as close to the owner's function as possible, inside the framework's own error handling: an exception of a
fault is handled like an exception of the function. Arguments that the framework adds to the model's arguments are left out.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .calls import arguments_of

WRAPPED_MARK = "__bench_probe__"
Wrap = Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]
"""(function, function that describes its calls) -> the wrapped function"""


@dataclass(frozen=True)
class ToolPlace:
    """A place where a framework executes a tool.

    module  the module that executes tools
    wrap    wraps the tools' functions once the module is imported
    tried   the distribution and version with which this was tried
    """

    module: str
    wrap: Callable[[ModuleType, Wrap], None]
    tried: str


def _wrap_methods(owner: type, names: Collection[str], wrap: Wrap, tool_call: Callable[..., Any]) -> None:
    """Wrap the methods of a class that execute its tool. `tool_call` gets their arguments, and returns the tool's name and
    arguments."""
    for name in names:
        setattr(owner, name, wrap(owner.__dict__[name], lambda args, kwargs: tool_call(*args, **kwargs)))


def _wrap_attributes(owner: Any, maker: str, names: Collection[str], wrap: Wrap, tool_call: Callable[..., Any]) -> None:
    """Wrap functions that are attributes of objects, after the method `maker` has made an object. `tool_call` gets the object
    and the named arguments."""
    original = getattr(owner, maker)

    @functools.wraps(original)
    def make_and_wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        for name in names:
            if function := getattr(self, name, None):
                setattr(self, name, wrap(function, _describe_by(self, function, tool_call)))
        return result

    setattr(owner, maker, make_and_wrap)


def _wrap_before(
    owner: Any, names: Collection[str], tool_of: Callable[[Any], Any], attribute: str, wrap: Wrap, tool_call: Callable[..., Any]
) -> None:
    """Wrap the function that is an attribute of a tool, right before one of these methods executes the tool."""

    def executing(execute: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that wraps the tool's function, unless it is wrapped, and then executes the tool."""

        @functools.wraps(execute)
        def wrap_and_execute(self: Any, *args: Any, **kwargs: Any) -> Any:
            tool = tool_of(self)
            function = getattr(tool, attribute)
            if function and not hasattr(function, WRAPPED_MARK):
                setattr(tool, attribute, wrap(function, _describe_by(tool, function, tool_call)))
                setattr(getattr(tool, attribute), WRAPPED_MARK, True)
            return execute(self, *args, **kwargs)

        return wrap_and_execute

    for name in names:
        setattr(owner, name, executing(getattr(owner, name)))


def _describe_by(tool: Any, function: Callable[..., Any], tool_call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that describes a call of this tool."""
    return lambda args, kwargs: tool_call(tool, arguments_of(function, args, kwargs))


def _describe_by_schema(properties: Callable[[Any], Collection[str]], name: str = "name") -> Callable[..., Any]:
    """Return a function that describes a call of a tool: by the tool's name, and the arguments that are in its schema."""

    def tool_call(self: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        values, names = arguments.pop("kwargs", {}) | arguments, properties(self)
        return getattr(self, name), {argument: values[argument] for argument in values if argument in names}

    return tool_call


def _langchain(module: ModuleType, wrap: Wrap) -> None:
    """Wrap LangChain's tools."""
    base = module.BaseTool
    extend = base.__init_subclass__.__func__

    def tool_call(self: Any, *args: Any, **kwargs: Any) -> tuple[str, Any]:
        arguments = {name: value for name, value in kwargs.items() if name not in ("config", "run_manager")}
        model_arguments = getattr(self, "_filter_injected_args", dict)(arguments)
        return self.name, {"args": args, **model_arguments} if args else model_arguments

    def extend_and_wrap(cls: Any, /, **kwargs: Any) -> None:
        extend(cls, **kwargs)
        _wrap_methods(cls, [name for name in ("_run", "_arun") if name in cls.__dict__], wrap, tool_call)

    base.__init_subclass__ = classmethod(extend_and_wrap)


def _openai_agents(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of OpenAI's Agents SDK."""

    def tool_call(_: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        context, text = [*arguments.values()][-2:]
        return context.tool_name, _parse_arguments(text)

    invoker = module._FailureHandlingFunctionToolInvoker
    _wrap_attributes(invoker, "__init__", ["_invoke_tool_impl"], wrap, tool_call)
    post_init = module.FunctionTool.__post_init__

    def make_and_wrap(self: Any) -> None:
        post_init(self)
        if not isinstance(self.on_invoke_tool, invoker):
            self.on_invoke_tool = wrap(self.on_invoke_tool, _describe_by(self, self.on_invoke_tool, tool_call))

    module.FunctionTool.__post_init__ = make_and_wrap


def _parse_arguments(arguments: str) -> Any:
    """Return parsed arguments; the text itself if it is no JSON."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _pydantic_ai(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of Pydantic AI."""
    _wrap_methods(
        module.FunctionSchema, ["call"], wrap, lambda self, args, ctx: (ctx.tool_name or self.function.__name__, args)
    )


def _autogen(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of AutoGen."""

    def tool_call(self: Any, args: Any, *_: Any, **__: Any) -> tuple[str, Any]:
        return self.name, dict(args)

    _wrap_methods(module.BaseTool, ["run_json"], wrap, tool_call)
    _wrap_methods(module.BaseStreamTool, ["run_json_stream"], wrap, tool_call)


def _crewai(module: ModuleType, wrap: Wrap) -> None:
    """Wrap CrewAI's tools that are classes."""

    def tool_call(self: Any, *args: Any, **kwargs: Any) -> tuple[str, Any]:
        return self.name, {**dict(zip(self.args_schema.model_fields, args)), **kwargs}  # noqa: B905  Python 3.10

    for kind in (module.BaseTool, module.Tool):
        _wrap_methods(kind, [name for name in ("run", "arun") if name in kind.__dict__], wrap, tool_call)


def _crewai_structured(module: ModuleType, wrap: Wrap) -> None:
    """Wrap CrewAI's tools that are made from functions."""

    def tool_call(self: Any, input: Any, *_: Any, **__: Any) -> tuple[str, Any]:  # noqa: A002  as it is called
        return self.name, _parse_arguments(input) if isinstance(input, str) else input

    _wrap_methods(module.CrewStructuredTool, ["invoke", "ainvoke"], wrap, tool_call)


def _smolagents(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of smolagents."""

    def tool_call(self: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        return self.name, arguments

    _wrap_before(module.Tool, ["__call__"], lambda self: self, "forward", wrap, tool_call)


def _llama_index(module: ModuleType, wrap: Wrap) -> None:
    """Wrap LlamaIndex's tools that are made from functions."""

    def tool_call(self: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
        values = arguments.pop("kwargs", {}) | arguments
        return self.metadata.name, {name: value for name, value in values.items() if name != self.ctx_param_name}

    _wrap_attributes(module.FunctionTool, "__init__", ["_fn", "_async_fn"], wrap, tool_call)


def _google_adk(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of Google's Agent Development Kit that are made from functions."""

    def tool_call(self: Any, target: Any, args_to_call: dict[str, Any]) -> tuple[str, Any] | None:
        arguments = {name: value for name, value in args_to_call.items() if name not in ("tool_context", "input_stream")}
        return (self.name, arguments) if target is self.func else None  # else it asks whether the call is confirmed

    _wrap_methods(module.FunctionTool, ["_invoke_callable"], wrap, tool_call)


def _strands(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of Strands."""
    tool_call = _describe_by_schema(lambda tool: tool.tool_spec["inputSchema"]["json"]["properties"], "tool_name")
    _wrap_attributes(module.DecoratedFunctionTool, "__init__", ["_tool_func"], wrap, tool_call)


def _agno(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of Agno."""
    tool_call = _describe_by_schema(lambda tool: tool.parameters["properties"])
    _wrap_before(module.FunctionCall, ["execute", "aexecute"], lambda self: self.function, "entrypoint", wrap, tool_call)


def _haystack(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of Haystack."""
    tool_call = _describe_by_schema(lambda tool: tool.parameters["properties"])
    _wrap_attributes(module.Tool, "__post_init__", ["function", "async_function"], wrap, tool_call)


def _agent_framework(module: ModuleType, wrap: Wrap) -> None:
    """Wrap the tools of Microsoft's Agent Framework."""
    tool_call = _describe_by_schema(lambda tool: tool.parameters()["properties"])
    _wrap_attributes(module.FunctionTool, "__init__", ["func"], wrap, tool_call)


TOOL_PLACES: Sequence[ToolPlace] = (
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
