"""Every list and table that is read from outside stops at its first violation."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

import bench

OURS = {
    "bench.read.analysis.published": "a file of the package itself",
    "bench.cli.templates": "text that begins a user's own pack",
    "bench.run.architectures": "what plans make of a reply, whose size is bounded by `too_large`",
    "bench.cli.authoring.templates": "text that begins a user's own pack",
    "bench.run.frameworks": "what frameworks and plans make of a reply, whose size is bounded by `too_large`",
    "bench.run.openai": "replies of an endpoint, which have bounds of their own",
}
"""Modules whose models are not read from outside, or are bounded elsewhere, and why. A text is as long as what holds it, which
is bounded wherever it is read, and costs no more than its length."""


def unbounded(schema: Any, place: str) -> Iterator[str]:
    """The places of lists and tables that collect violations without end."""
    if isinstance(schema, dict):
        kind = schema.get("type")
        many = kind in ("list", "set", "frozenset", "dict") or (kind == "tuple" and "variadic_item_index" in schema)
        any_ = kind == "list" and "items_schema" not in schema
        if many and not any_ and not schema.get("fail_fast"):
            yield f"{place}: {kind}"
        for key, value in schema.items():
            if key not in ("metadata", "serialization", "ref", "cls", "config"):
                yield from unbounded(value, f"{place}.{key}" if key not in ("schema", "type") else place)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from unbounded(value, place)


def readers() -> Iterator[tuple[str, Any]]:
    """The models and adapters of the package, by name, with their schemas."""
    for module in pkgutil.walk_packages(bench.__path__, "bench."):
        if module.name.startswith(tuple(OURS)) or module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ModuleNotFoundError:  # an extra that is not installed
            continue
        for name, value in vars(loaded).items():
            if isinstance(value, TypeAdapter):
                yield f"{module.name}.{name}", value.core_schema
            elif isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.name:
                yield f"{module.name}.{name}", value.__pydantic_core_schema__


def test_every_list_and_table_from_outside_stops_at_its_first_violation() -> None:
    result = dict(readers())
    assert {"bench.record.record.RECORD", "bench.run.experiment.config.Config"} <= result.keys()
    assert sorted({place for name, schema in result.items() for place in unbounded(schema, name)}) == []


@pytest.mark.parametrize("form", [list[int], tuple[int, ...], dict[str, int], set[int], list[dict[str, int]]])
def test_a_list_without_a_bound_is_found(form: Any) -> None:
    assert list(unbounded(TypeAdapter(form).core_schema, "it"))
