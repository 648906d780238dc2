"""Every key of a config, as Markdown, from the pydantic models that read a config: a section for each table."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from bench.run.experiment.config import Config
from bench.run.experiment.model_entries import MODELS

Schema = Mapping[str, Any]
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "object": "table"}
LIMITS = (("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most"), ("exclusiveMaximum", "below"))


@dataclass(frozen=True)
class Table:
    """One table of a config: its heading, what it is for, and its keys."""

    heading: str
    about: str
    schema: Schema


class Described(GenerateJsonSchema):
    """Describes each key by the text below it in the code. The package reads no source at its start, which would be slow."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        for key, text in _texts_below(schema["cls"]).items():
            made["properties"][key].setdefault("description", text)
        return made


def _texts_below(model: type) -> dict[str, str]:
    """The text below each key of a model, and of what it derives from."""
    texts: dict[str, str] = {}
    for part in (part for part in reversed(model.__mro__) if part.__module__.startswith("bench.")):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
        assert isinstance(definition, ast.ClassDef)
        for key, text in pairwise(definition.body):
            match key, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    texts[name] = inspect.cleandoc(said)
    return texts


def page() -> str:
    """Return a section for each table, with a row for each key."""
    return "\n\n".join(map(section, tables()))


def tables() -> list[Table]:
    """Return the config itself and every table in it, each before its own tables."""
    schema = Config.model_json_schema(schema_generator=Described)
    inner = list(tables_below(schema, "", schema["$defs"]))
    return [Table("The config itself", inspect.getdoc(Config) or "", schema), *_models(), *inner]


def tables_below(schema: Schema, place: str, definitions: Mapping[str, Schema]) -> Iterator[Table]:
    """Yield every table in a table."""
    for key, value in schema["properties"].items():
        for suffix, name in _tables_in(value):
            path = f"{place}{key}{suffix}"
            inner = definitions[name]
            yield Table(_heading(path, inner), inner.get("description", ""), inner)
            yield from tables_below(inner, f"{path}.", definitions)


def _models() -> Iterator[Table]:
    """The table of each kind of model that is ours."""
    for part in MODELS:
        if not part.package:
            schema = part.settings.model_json_schema(schema_generator=Described)
            yield Table(_heading("model.NAME", schema), inspect.getdoc(part.settings) or "", schema)


def _tables_in(value: Schema) -> Iterator[tuple[str, str]]:
    """The tables that a key's value is made of: what follows the key, and the definition's name."""
    if "$ref" in value:
        yield "", value["$ref"].rsplit("/", 1)[-1]
    for entry in (*value.get("oneOf", ()), *value.get("anyOf", ())):
        yield from _tables_in(entry)
    if isinstance(items := value.get("items"), dict):
        yield from ((f"[]{suffix}", name) for suffix, name in _tables_in(items))
    for named in (value.get("additionalProperties"), *value.get("patternProperties", {}).values()):
        if isinstance(named, dict):
            yield from ((f".NAME{suffix}", name) for suffix, name in _tables_in(named))


def _heading(path: str, schema: Schema) -> str:
    if path.endswith("[]"):
        return f"Each entry of `{path.removesuffix('[]')}`"
    kind = schema["properties"].get("kind", {}).get("const")
    return f'`[{path}]` with `kind = "{kind}"`' if kind else f"`[{path}]`"


def section(table: Table) -> str:
    required = table.schema.get("required", ())
    rows = [
        f"| `{key}` | {_kind(value)} | {_default(key, value, required)} | {_flat(value.get('description', ''))} |"
        for key, value in table.schema["properties"].items()
        if "const" not in value
    ]
    head = "| key | value | if not given | what it means |\n| --- | --- | --- | --- |"
    return "\n\n".join((f"## {table.heading}", table.about, "\n".join((head, *rows))))


def _kind(value: Schema) -> str:
    """What may be written there, in words."""
    if choices := value.get("anyOf"):
        return " or ".join(_kind(choice) for choice in choices if choice.get("type") != "null")
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if "prefixItems" in value:
        return f"({', '.join(map(_kind, value['prefixItems']))})"
    if value.get("type") == "array":
        return f"list: {_kind(value['items'])}"
    word = WORDS.get(value.get("type", "object"), "table")
    limits = [f"{words} {value[key]:g}" for key, words in LIMITS if key in value]
    return " ".join((word, *limits))


def _default(key: str, value: Schema, required: tuple[str, ...]) -> str:
    if key in required:
        return "required"
    default = value.get("default")
    if default is None or default == [] or isinstance(default, dict) or "default" not in value:
        return "–"
    return f"`{json.dumps(default)}`"


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
