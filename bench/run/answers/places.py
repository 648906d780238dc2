"""Find the fields of an answer that contain code, by path and by name. Its JSON schema declares these fields as code
(`bench.scenario.Code`).

A field of code can be at any depth: `code`, `edits[0].replace`. Each entry of a table of files is such a field, too:
`files.main.py`. A list of only code texts has no such fields, since the JSON would not say how many texts there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.scenario import CODE, Json

Schema = Mapping[str, Any]
FieldPath = tuple[str | int, ...]
ANY = "NAME"
"""The step of a path that stands for every entry of a table."""


@dataclass(frozen=True)
class Places:
    """The fields of one answer that contain code, by the schema and by the lists and objects in the answer's JSON.

    fields   path -> language, for each field
    tables   path -> language, for each table of code, whose entries can have any name
    """

    fields: Mapping[FieldPath, str]
    tables: Mapping[FieldPath, str]

    def path_of(self, name: str) -> FieldPath | None:
        """Return the path of the field with this name, which can be a new entry of a table; None if there is none."""
        if name in self._by_name:
            return self._by_name[name]
        for path in self.tables:
            if name.startswith(f"{name_of(path)}."):
                return (*path, name.removeprefix(f"{name_of(path)}."))
        return None

    @cached_property
    def _by_name(self) -> Mapping[str, FieldPath]:
        return {name_of(path): path for path in self.fields}


def places(schema: Schema, value: Json) -> Places:
    """Return the fields of an answer that contain code."""
    fields, tables = dict[FieldPath, str](), dict[FieldPath, str]()
    for path, node, is_table in _walk(schema, {}, value, ()):
        if is_table:
            language = tables[path] = code_of(node) or ""
            entries = value_at(value, path)
            fields |= {(*path, key): language for key in entries} if isinstance(entries, dict) else {}
        else:
            fields[path] = code_of(node) or ""
    return Places(fields, tables)


def _walk(schema: Schema, defs: Schema, value: Json, path: FieldPath) -> Iterator[tuple[FieldPath, Schema, bool]]:
    """Yield (path, schema of the code, whether it is a table of code) for each field that contains code."""
    schema, defs = resolve(schema, defs)
    if code_of(schema) is not None:
        yield path, schema, False
        return
    if (entry := _table_of(schema, defs)) is not None:
        yield path, entry, True
    for inner, item, step in _contents(schema, defs, value, is_answer=not path):
        yield from _walk(inner, defs, item, (*path, *step))


def _contents(schema: Schema, defs: Schema, value: Json, is_answer: bool) -> Iterator[tuple[Schema, Json, FieldPath]]:
    """Yield (schema, value, path from here) for each part of a value, and for the parts that the answer itself lacks. A
    required object that has only code can be missing, since the answer's form does not ask for its JSON."""
    for option in schema.get("anyOf", ()):
        yield option, value, ()
    fields, required = schema.get("properties", {}), schema.get("required", ())
    if isinstance(value, dict):
        for name, field in fields.items():
            may_lack = name in required and _has_only_code(field, defs)
            yield field, value.get(name, {} if may_lack else None), (name,)
        entry = schema.get("additionalProperties")
        if isinstance(entry, Mapping) and _table_of(schema, defs) is None:
            yield from ((entry, item, (key,)) for key, item in value.items() if key not in fields)
    elif is_answer:
        yield from ((field, None, (name,)) for name, field in fields.items())
    if isinstance(value, list) and "items" in schema and code_of(resolve(schema["items"], defs)[0]) is None:
        yield from ((schema["items"], item, (index,)) for index, item in enumerate(value))


def _table_of(schema: Schema, defs: Schema) -> Schema | None:
    """Return the schema of the entries of a table of code; None if the schema describes anything else."""
    entry = schema.get("additionalProperties")
    entry = resolve(entry, defs)[0] if isinstance(entry, Mapping) else {}
    return entry if code_of(entry) is not None else None


def resolve(schema: Schema, defs: Schema) -> tuple[Schema, Schema]:
    """Return the schema that a schema refers to, and the definitions within it."""
    defs = {**defs, **schema["$defs"]} if "$defs" in schema else defs
    while "$ref" in schema:
        schema = {**defs[schema["$ref"].rsplit("/", 1)[-1]], **{key: schema[key] for key in schema if key != "$ref"}}
    return schema, defs


def code_of(schema: Schema) -> str | None:
    """Return the language of the code that this schema, or a choice in it, declares; None if it declares no code."""
    if CODE in schema:
        return str(schema[CODE])
    return next((str(option[CODE]) for option in schema.get("anyOf", ()) if CODE in option), None)


def code_fields(schema: Schema) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield (path, language, description) of each field of code that an answer can have: item 0 of a list, entry ANY of a
    table."""
    return _declared_fields(schema, {}, (), frozenset())


def _declared_fields(
    schema: Schema, defs: Schema, path: FieldPath, outer_refs: frozenset[str]
) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield (path, language, description) of each field of code that a schema declares. `outer_refs` holds the references that
    led to this schema: a type that contains itself is not followed again."""
    if schema.get("$ref") in outer_refs:
        return
    outer_refs |= {schema["$ref"]} if "$ref" in schema else frozenset()
    schema, defs = resolve(schema, defs)
    if (language := code_of(schema)) is not None:
        yield path, language, schema.get("description", "")
        return
    for option in schema.get("anyOf", ()):
        yield from _declared_fields(option, defs, path, outer_refs)
    for name, field in schema.get("properties", {}).items():
        yield from _declared_fields(field, defs, (*path, name), outer_refs)
    table, items = schema.get("additionalProperties"), schema.get("items", {})
    if isinstance(table, Mapping):
        for inner_path, language, description in _declared_fields(table, defs, (*path, ANY), outer_refs):
            yield inner_path, language, description or schema.get("description", "")
    if "items" in schema and code_of(resolve(items, defs)[0]) is None:
        yield from _declared_fields(items, defs, (*path, 0), outer_refs)


def holds_code(schema: Schema) -> bool:
    """Return whether an answer with this schema can have a field of code."""
    return next(code_fields(schema), None) is not None


def without_code(schema: Schema) -> Schema:
    """Return the schema of an answer's JSON without its code."""
    return _without_code(schema, schema.get("$defs", {}))


def _without_code(schema: Schema, defs: Schema) -> Schema:
    """Return the schema without its fields of code, at any depth."""
    reduced = dict(schema)
    if "properties" in reduced:
        reduced["properties"] = {
            name: _without_code(field, defs)
            for name, field in reduced["properties"].items()
            if not (_is_code(field, defs) or _has_only_code(field, defs))
        }
    if "$defs" in reduced:
        reduced["$defs"] = {name: _without_code(schema_, defs) for name, schema_ in reduced["$defs"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(reduced.get(key), Mapping):
            reduced[key] = _without_code(reduced[key], defs)
    if "anyOf" in reduced:
        reduced["anyOf"] = [_without_code(option, defs) for option in reduced["anyOf"]]
    return reduced


def _is_code(schema: Schema, defs: Schema) -> bool:
    """Return whether a schema declares code, or a table of code."""
    resolved = resolve(schema, defs)[0]
    return code_of(resolved) is not None or _table_of(resolved, defs) is not None


def _has_only_code(schema: Schema, defs: Schema) -> bool:
    """Return whether a schema declares an object whose fields are all code, or tables of code."""
    resolved, defs = resolve(schema, defs)
    fields = resolved.get("properties", {})
    return bool(fields) and all(_is_code(field, defs) for field in fields.values())


def is_all_code(schema: Schema) -> bool:
    """Return whether the answer is all code, so that its JSON would be empty."""
    return holds_code(schema) and not resolve(without_code(schema), {})[0].get("properties")


def name_of(path: FieldPath) -> str:
    """Return a path as a text such as `edits[0].replace`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def value_at(value: Json, path: FieldPath) -> Json:
    """Return the value at a path; None if there is none."""
    for step in path:
        exists = isinstance(value, dict) and step in value
        exists = exists or (isinstance(value, list) and isinstance(step, int) and step < len(value))
        if not exists:
            return None
        value = value[step]
    return value
