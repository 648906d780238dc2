"""What a manifest must hold so that it can be read: its writer and its readers agree on it here."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.bounds import SPARSE, Listed, Table, crowded
from bench.numbers import Count, Price, Seconds
from bench.wording import first_violation

Keys = Table[str, Any]


class _Part(BaseModel):
    """More keys may stand beside these: a later version's, or those that nobody calculates with."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Model(_Part):
    price_in: Price | None = None
    price_out: Price | None = None
    answer_format: str = ""
    recording: Keys | None = None
    cache_from: Listed[Table[str, str]] = Field(default_factory=list)
    models: Table[str, _Model] = Field(default_factory=dict)


class _Pack(_Part):
    variant: str = ""
    asked: str = ""
    graded_by: str = ""
    instances: Listed[str] = Field(default_factory=list)
    asked_by_instance: Table[str, str] = Field(default_factory=dict)
    subtasks: Listed[str] = Field(default_factory=list)
    stages: Listed[Listed[str]] = Field(default_factory=list)
    document_tokens: Count = 0
    baseline: Table[str, Seconds] | None = None


class _Plan(_Part):
    faults: Listed[Keys] = Field(default_factory=list)


class _Config(_Part):
    scenarios: Listed[str] = Field(default_factory=list)
    architectures: Listed[str] = Field(default_factory=list)
    models: Listed[str] = Field(default_factory=list)
    plans: Listed[str] = Field(default_factory=list)
    seed: int = 0
    repetitions: Count = 1
    max_attempts: int = Field(1, ge=0, le=1_000)
    instances: Count | None = None
    study: str | None = None
    plan: Table[str, _Plan] = Field(default_factory=dict)
    architecture: Table[str, Keys] = Field(default_factory=dict)


class _Manifest(_Part):
    name: str = ""
    started: str = ""
    config: _Config
    models: Table[str, _Model]
    scenarios: Table[str, _Pack]
    concurrency: Table[str, Count] = Field(default_factory=dict)
    architectures: Keys = Field(default_factory=dict)
    parts: Table[str, str] = Field(default_factory=dict)
    code: Keys = Field(default_factory=dict)
    packages: Table[str, str | None] = Field(default_factory=dict)
    machine: Keys = Field(default_factory=dict)
    recordings: Keys = Field(default_factory=dict)
    sandbox: Table[str, str] = Field(default_factory=dict)
    unguarded: Listed[str] | None = None
    stored_grades: Table[str, Table[str, str]] = Field(default_factory=dict)


def manifest_in(text: bytes) -> Any:
    """The JSON of a manifest, an object or not. Raises ValueError or RecursionError for what is no JSON, for more values than
    any run has, for numbers that do not fit into 64 bits, and for half a surrogate pair, which no file of a report could
    hold."""
    if why := crowded(text, 2 * SPARSE):
        raise ValueError(why)
    value = json.loads(text.decode(), parse_constant=_no_number, parse_float=_finite, parse_int=_whole)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def wrong_with(manifest: object) -> str:
    """What in a manifest has not the shape that it must have, in words; "" where nothing has."""
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        return first_violation(error).line
    return ""


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number that can be calculated with")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _whole(text: str) -> int:
    return int(text) if len(text) < 22 and -(2**63) <= int(text) < 2**64 else _no_number(text)
