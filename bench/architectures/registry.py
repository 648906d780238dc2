"""The architectures by name: adding one is one file and one line here. Others load by import path, `module:function`.

ARCHITECTURES  our own, on the workbench's own line: always there
ACTING         our own that act in a world
INSTRUMENTS    what measures in a world and is no architecture
SYSTEMS        what people use, over the measuring endpoint; most need an optional dependency
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.architectures.parts.form import Form
from bench.errors import ConfigError, nearest
from bench.packs.place import one_line, place_of
from bench.runtime.workbench import Workbench
from bench.scenario import Task

Architecture = Callable[[Task, Workbench], Coroutine[Any, Any, None]]
"""Works on a task at a workbench until the state holds an output of every subtask. Raises GaveUp through the workbench."""

ARCHITECTURES = {
    "monolithic": "bench.architectures.monolithic:monolithic",
    "static": "bench.architectures.static:static",
    "runtime_structured": "bench.architectures.runtime_structured:runtime_structured",
    "llm_compiler": "bench.architectures.llm_compiler:llm_compiler",
}

ACTING = {
    name: f"bench.architectures.{name}:{name}"
    for name in (
        "bare_agent",
        "hierarchical_delegation",
        "scatter_gather_saga",
        "event_driven",
        "supervisor_gate",
        "state_machine",
        "human_in_the_loop",
        "plan_execute_evaluate",
        "composition",
    )
}
"""Our own that act in a world. They run on packs that declare one, and the others on packs that do not."""

INSTRUMENTS = {"every_judgment": "bench.architectures.every_judgment:every_judgment"}
"""What measures in a world and is no architecture: it asks, and does nothing."""


@dataclass(frozen=True)
class System:
    """An architecture that makes its calls itself.

    extra    the optional dependency that brings its packages: `pip install '.[EXTRA]'`; empty where it needs none
    limits   what it cannot express, or where it differs from ours: a line each. They stand here and not in its module, so
             that they can be read where its packages are not installed
    reads_json_alone   its own words or its own parser are for JSON, whatever our prompt asks for
    """

    path: str
    extra: str
    limits: tuple[str, ...]
    reads_json_alone: bool = False


SYSTEMS = {
    "mellea": System(
        "bench.architectures.mellea:mellea",
        "mellea",
        (
            "requirements are words: the checks beyond the schema cannot be said in them, and a model judges each one",
            "what its judges let pass is handed on; the verifier sees it at the end only, where nothing is asked again",
            "the judges of one output are asked at once: which is answered first is open",
        ),
        reads_json_alone=True,
    ),
    "mellea_code": System(
        "bench.architectures.mellea:mellea_code",
        "mellea",
        ("a finding against an earlier output reaches its repair as words behind the instruction, not as a requirement",),
    ),
    "langgraph": System(
        "bench.architectures.langgraph:langgraph",
        "langgraph",
        ("the graph is a chain: what runs again after a rejection is a new chain, laid outside of LangGraph",),
    ),
    "langgraph_retry": System(
        "bench.architectures.langgraph:langgraph_retry",
        "langgraph",
        ("its edges know a rejection only: nothing is skipped, found too weak, or reopened by a later subtask",),
    ),
    "dspy": System(
        "bench.architectures.dspy:dspy",
        "dspy",
        (
            "Refine runs the whole program again; it cannot keep the subtasks that were right",
            "an output that DSPy cannot parse fails the run before there is a reward: Refine then tries again without advice",
            "DSPy repairs broken JSON before it reads it",
            "its advice is accounted for as judging",
        ),
        reads_json_alone=True,
    ),
    "reflexion": System(
        "bench.architectures.reflexion:reflexion",
        "",
        ("one call does the whole task: faults in what one subtask reads of another have nothing to strike",),
    ),
    "autogen_graph": System(
        "bench.architectures.autogen_graph:autogen_graph",
        "autogen",
        (
            "AutoGen passes the outputs on itself: faults in what is read strike documents only, and only once a trial",
            "prompts are fixed when the agents are made: outputs that are read follow behind the form of the answer",
        ),
    ),
}
OURS = ARCHITECTURES | ACTING | INSTRUMENTS


def load_architecture(name: str, variants: Iterable[str] = ()) -> Architecture:
    """The architecture of this name or import path. Raises ConfigError where there is none, its packages are missing, or its
    module cannot be loaded. A module of one's own may lie in the current folder. `variants` are names
    that a config adds."""
    system = SYSTEMS.get(name)
    path = system.path if system else OURS.get(name, name)
    module, _, function = path.partition(":")
    if not function:
        raise ConfigError(f"unknown architecture '{name}'; {nearest(name, (*OURS, *SYSTEMS, *variants))}")
    if system:
        keep_quiet()
    try:
        if path != name:
            return _loaded(module, function)
        with _importable(Path.cwd()):
            return _loaded(module, function)
    except (Exception, SystemExit) as error:  # a module of somebody's own may raise whatever it likes
        if system and system.extra and isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("bench"):
            raise ConfigError(f"architecture '{name}' needs: pip install '.[{system.extra}]'") from error
        raise ConfigError(f"architecture '{name}' cannot be imported: {_why(error)}") from error


def in_parallel(architecture: Callable[..., Coroutine[Any, Any, None]], name: str) -> Architecture:
    """Its form that asks at the same time for what can be asked at the same time. Raises ConfigError where it has none."""
    if "parallel" not in inspect.signature(architecture).parameters:
        said = f"architecture '{name}' has no parallel form; leave `parallel` out of its variant"
        raise ConfigError(f"{said}: static and runtime_structured have one, and any function that takes `parallel`")
    return functools.update_wrapper(functools.partial(architecture, parallel=True), architecture)


def in_form(architecture: Callable[..., Coroutine[Any, Any, None]], name: str, form: Form) -> Architecture:
    """It, in this form. Raises ConfigError where it has but one."""
    if "form" not in inspect.signature(architecture).parameters:
        said = f"architecture '{name}' has but one form; leave `remedies`, `strength`, `commit` and `signal` out of its variant"
        raise ConfigError(f"{said}: {', '.join(ACTING)} have several, and any function that takes `form`")
    return functools.update_wrapper(functools.partial(architecture, form=form), architecture)


def _loaded(module: str, function: str) -> Architecture:
    loaded: Architecture = getattr(importlib.import_module(module), function)
    return loaded


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """While inside, the modules in this folder can be imported, as they can by `python -m`."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with suppress(ValueError):  # the module has taken it away itself
            sys.path.remove(str(folder))


def _why(error: BaseException) -> str:
    """What hindered an import, in one line; where it lies in somebody's code, the file and line come first."""
    if isinstance(error, ImportError | AttributeError):
        return " ".join(str(error).split())
    return ": ".join(filter(None, (place_of(error, Path.cwd()), one_line(error))))


def extras_of(names: Iterable[str]) -> tuple[str, ...]:
    """The optional dependencies that these architectures stand on, each once."""
    return tuple(sorted({SYSTEMS[name].extra for name in names if name in SYSTEMS and SYSTEMS[name].extra}))


def keep_quiet() -> None:
    """Keep the frameworks off the network, the home folder and the terminal; what a user has set stays."""
    quiet = {
        "AUTOGEN_DISABLE_RUNTIME_TRACING": "true",
        "DSPY_CACHEDIR": str(Path(tempfile.gettempdir()) / "dspy_cache"),
        "LANGCHAIN_TRACING_V2": "false",
        "LANGSMITH_TRACING": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "MELLEA_LOGS_ENABLED": "false",
        "MELLEA_LOGS_LEVEL": "ERROR",
    }
    for variable, value in quiet.items():
        os.environ.setdefault(variable, value)
    # Without a handler Python prints a logger's errors itself: AutoGen's traceback of each agent, for one call that failed.
    logging.getLogger("autogen_core").addHandler(logging.NullHandler())
