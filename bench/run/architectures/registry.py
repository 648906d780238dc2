"""The entries of our architectures, each of which is a file in this folder, and the loading of architectures. Other
architectures come from a package's entry points, or are loaded by import path, `module:function`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from bench.common.errors import ConfigError
from bench.common.registry import Registry, attribute_at, importable, is_path, why_not_imported
from bench.record.described import Structure
from bench.record.form import Form
from bench.record.formats import AnswerFormat
from bench.record.policy import LearnedPolicy
from bench.run.architectures.part import Architecture, ArchitecturePart

IN_WORDS: tuple[AnswerFormat, ...] = ("json", "fenced")
"""The formats of architectures that make their own calls, in which nothing holds a reply to a schema."""

EARLY = "before it is handed on"
"""When most of these architectures verify an output."""


OURS = (
    ArchitecturePart(
        "monolithic",
        "bench.run.architectures.monolithic:monolithic",
        structure=Structure("one call for all", "at the end", "everything"),
    ),
    ArchitecturePart(
        "monolithic_system_message",
        "bench.run.architectures.monolithic_system_message:monolithic_system_message",
        lineage="the monolithic configuration of arXiv:2605.15425",
    ),
    ArchitecturePart(
        "static",
        "bench.run.architectures.static:static",
        parallel=True,
        structure=Structure("a call by subtask", "at checkpoints", "from the rejected subtask to the checkpoint"),
    ),
    ArchitecturePart(
        "runtime_structured",
        "bench.run.architectures.runtime_structured:runtime_structured",
        parallel=True,
        structure=Structure("a call by subtask", EARLY, "the rejected subtask", "why"),
    ),
    ArchitecturePart(
        "derived_subtasks",
        "bench.run.architectures.derived_subtasks:derived_subtasks",
        structure=Structure("a call by part of a model's split, then one for the answer", EARLY, "the rejected call", "why"),
        limits=(
            "the task is told by the pack's own instructions, so that the pack's cut can be read in it",
            "the answer is one call: a rejected output of it is asked for again with all others",
        ),
    ),
    ArchitecturePart(
        "learned_policy",
        "bench.run.architectures.learned_policy:learned_policy",
        learns=True,
        structure=Structure("in the calls of a learned policy", EARLY, "the rejected call", "why"),
        limits=(
            "what shares a call is asked for again together, where one output of it is rejected",
            "the policy takes rejections of different subtasks to be independent",
        ),
    ),
)
ARCHITECTURES = Registry("architecture", ArchitecturePart)
OUTSIDE = Registry("outside system", ArchitecturePart, plural="outside_systems")
"""The entries of agents run as a `command`, and of systems that are `served` their trials."""


def architecture_named(name: str, variants: Iterable[str] = ()) -> ArchitecturePart:
    """Return the entry of the architecture with this name. The name can be an import path of a function or of an entry, in a
    module that can be in the current folder. `variants` are names that a config adds, for the message of the error.

    Raises ConfigError if there is no such architecture, or its module cannot be loaded.
    """
    if not is_path(name):
        return ARCHITECTURES.named(name, *variants)
    function: Any = load_architecture(ArchitecturePart(name, name))
    if isinstance(function, ArchitecturePart):
        return function
    try:
        signature = inspect.signature(function)
        signature.bind_partial("task", "workbench")
    except (TypeError, ValueError):
        problem = f"architecture '{name}' is no function of a task and a workbench"
        raise ConfigError(f"{problem}; name one that begins `async def NAME(task: Task, workbench: Workbench)`") from None
    parameters = signature.parameters
    return ArchitecturePart(
        name,
        name,
        acts_in="either",
        makes_own_calls=True,
        parallel="parallel" in parameters,
        forms="form" in parameters,
        learns="policy" in parameters,
    )


def load_architecture(
    part: ArchitecturePart, parallel: bool = False, form: Form | None = None, policy: LearnedPolicy | None = None
) -> Architecture:
    """Return the function of an architecture, in the form that a variant asks for, with the policy that it has learned.

    Raises ConfigError if the architecture lacks that form, learns no policy, or cannot be imported.
    """
    if parallel and not part.parallel:
        names = " and ".join(entry.name for entry in ARCHITECTURES if entry.parallel)
        problem = f"architecture '{part.name}' has no parallel form; leave `parallel` out of its variant"
        raise ConfigError(f"{problem}: {names} have one, and any function that takes `parallel`")
    if form and not part.forms:
        names = ", ".join(entry.name for entry in ARCHITECTURES if entry.forms)
        problem = (
            f"architecture '{part.name}' has but one form; leave `remedies` and its boundary's settings out of its variant"
        )
        raise ConfigError(f"{problem}: {names} have several, and any function that takes `form`")
    if policy and not part.learns:
        names = ", ".join(entry.name for entry in ARCHITECTURES if entry.learns)
        problem = f"architecture '{part.name}' follows no learned policy; leave `policy` out of its variant"
        raise ConfigError(f"{problem}: {names} does, and any function that takes `policy`")
    try:
        if part.prepare:
            attribute_at(part.prepare)()
        with importable(Path.cwd()) if part.path == part.name else nullcontext():
            function: Callable[..., Coroutine[Any, Any, None]] = attribute_at(part.path)
    except (Exception, SystemExit) as error:  # a user's module can raise anything
        if part.extra and isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("bench"):
            raise ConfigError(f"architecture '{part.name}' needs: pip install '{part.package or '.'}[{part.extra}]'") from error
        raise ConfigError(f"architecture '{part.name}' cannot be imported: {why_not_imported(error, Path.cwd())}") from error
    variant: dict[str, Any] = {"parallel": parallel, "form": form, "policy": policy}
    options = {name: value for name, value in variant.items() if value}
    return functools.update_wrapper(functools.partial(function, **options), function) if options else function
