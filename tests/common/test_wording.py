"""What is wrong with a value from outside is said in words that name the place and what to write instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from bench.common.errors import ConfigError
from bench.common.paths import CONFIGS
from bench.common.wording import first_violation, first_violations
from bench.probe.run.probe_file import (
    CheckEntry,
    McpEntry,
    MeanwhileEntry,
    ModelSourceEntry,
    ProbeFile,
    ServiceEntry,
    StoreEntry,
)
from bench.read.analysis.published import PUBLISHED_FILE, Published
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.config import BackOffEntry
from bench.rerun.workload import EvidenceEntry, HeldOutEntry, WorkEntry, WorkloadEntry
from bench.run.experiment.config import Config, load_config
from bench.run.experiment.model_entries import MODELS
from bench.run.experiment.plan_entries import WrittenFault, WrittenPlan

CONFIG = """
name = "test"
scenarios = ["demo"]
architectures = ["static"]
models = ["m"]
repetitions = 2
seed = 7
[model.m]
kind = "openai"
"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*Config.model_fields, "x"]), inner, max_size=4)
    ),
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("repetitions = 2", 'repetitions = "two"', "repetitions: must be a whole number, not 'two'"),
        ("repetitions = 2", "repetitions = 0", "repetitions: must be at least 1, not 0"),
        ("repetitions = 2", "", "repetitions: is missing"),
        ('scenarios = ["demo"]', 'scenarios = "demo"', "scenarios: must be a list, not 'demo'"),
        ('scenarios = ["demo"]', "scenarios = []", "scenarios: must hold at least 1, and holds 0"),
        ('kind = "openai"', 'kind = "openai"\nprice_in = -1', "model.m.price_in: must be at least 0.0, not -1"),
        ('kind = "openai"', 'kind = "openai"\nprice_in = "free"', "model.m.price_in: must be a number, not 'free'"),
        (
            'kind = "openai"',
            'kind = "opena"',
            "model.m: unknown kind of model 'opena'; did you mean 'openai'?",
        ),
        ('kind = "openai"', "", 'model.m: says no kind; add kind = "...", one of simulated, recorded, routed, openai'),
        ('kind = "openai"', 'kind = "openai"\nprize_in = 1', "unknown key 'model.m.prize_in'; did you mean 'price_in'?"),
        ("seed = 7", "seed = 7\ndeadline_seconds = 0", "deadline_seconds: must be more than 0.0, not 0"),
    ],
)
def test_a_config_is_refused_in_words_that_say_what_to_write(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "test.toml"
    assert old in CONFIG
    path.write_text(CONFIG.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(path, {})
    assert str(refused.value) == f"{path}: {message}"


@given(st.dictionaries(st.sampled_from([*Config.model_fields, "x"]), VALUES))
def test_whatever_a_config_holds_its_faults_are_lines(values: dict[str, object]) -> None:
    try:
        Config.model_validate(values)
    except ValidationError as error:
        for kind in {detail["type"] for detail in first_violations(error, error.error_count())}:
            violation = first_violation(error, kind)
            assert (
                violation.kind == kind
                and violation.words
                and "{" not in violation.words.replace(str(values), "").split("not ")[0]
            )


PROBE = """
agent = "python agent.py"
mcp = [{ path = ".mcp.json", variable = "MCP" }]
functions = ["shop:pay"]
[[store]]
sqlite = "bank.db"
[[service]]
name = "shop"
url = "http://127.0.0.1:1"
command = ["serve"]
[model]
script = "serve {port}"
[environment]
"a b" = "x"
[[check]]
sql = "SELECT 1"
[[meanwhile]]
sql = "UPDATE bill SET cents = 1"
"""
WHOLE_CONFIG = f"""{CONFIG}
[model."gpt-4.1"]
kind = "openai"
[plan.p]
faults = [{{ point = "output", effect = "missing_field", attempts = [1] }}]
[architecture.mine]
base = "static"
[back_off]
"""
WORKLOAD = (CONFIGS / "workloads" / "returns.toml").read_text(encoding="utf-8")
SCHEMAS: list[tuple[type[BaseModel], str, dict[tuple[str | int, ...], type[BaseModel]]]] = [
    (
        ProbeFile,
        PROBE,
        {
            ("mcp", 0): McpEntry,
            ("store", 0): StoreEntry,
            ("service", 0): ServiceEntry,
            ("model",): ModelSourceEntry,
            ("check", 0): CheckEntry,
            ("meanwhile", 0): MeanwhileEntry,
        },
    ),
    (
        Config,
        WHOLE_CONFIG,
        {
            ("model", "gpt-4.1"): MODELS["openai"].settings,
            ("plan", "p"): WrittenPlan,
            ("plan", "p", "faults", 0): WrittenFault,
            ("architecture", "mine"): ArchitectureEntry,
            ("back_off",): BackOffEntry,
        },
    ),
    (WorkloadEntry, WORKLOAD, {("work",): WorkEntry, ("evidence",): EvidenceEntry, ("held_out",): HeldOutEntry}),
    (Published, PUBLISHED_FILE.read_text(encoding="utf-8"), {}),
]
WRONG = [5, -1.5, True, "?", [], [5], ["a", 5], [["a"]], {}, {"x y": 5}, [{}], [{"x y": 5}], date(2026, 1, 2)]
"""Values of TOML, of which each key can have but a few."""


def key_paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all keys and items in a document."""
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from key_paths(inner, (*path, key))


def value_at(document: object, path: Sequence[str | int]) -> Any:
    for step in path:
        document = document[step]  # type: ignore[index]
    return document


@pytest.mark.parametrize(("schema", "text", "tables"), SCHEMAS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_wrong_value_of_any_key_is_told_with_the_path_that_the_user_wrote(
    schema: type[BaseModel], text: str, tables: dict[tuple[str | int, ...], type[BaseModel]]
) -> None:
    assert schema.model_validate(tomllib.loads(text))
    paths = set(islice(key_paths(tomllib.loads(text)), 100))
    paths |= {(*place, key) for place, table in {(): schema, **tables}.items() for key in table.model_fields}
    violations = 0
    for path in sorted(paths, key=str):
        for wrong in WRONG:
            document = tomllib.loads(text)
            value_at(document, path[:-1])[path[-1]] = wrong
            try:
                schema.model_validate(document)
            except ValidationError as error:
                violation = first_violation(error, value=document)
                violations += 1
            else:
                continue
            is_missing = violation.words == "is missing"
            value_at(document, violation.path[:-1] if is_missing else violation.path)  # each of its keys is there
            keys = [key if re.fullmatch(r"[\w-]+", key) else f'"{key}"' for key in map(str, violation.path)]
            assert violation.place == ".".join(keys)
            assert violation.line.startswith(f"{violation.place}: ") or not violation.path
            shared = list(zip(violation.path, path, strict=False))
            assert all(ours == theirs for ours, theirs in shared), (path, wrong, violation)
            assert not re.search(r"Input should|function-|tuple\[|\[key\]|dict\[|instance", violation.words), (
                path,
                wrong,
                violation,
            )
            if violation.kind.endswith("_type"):  # of this key, or of a value in it
                assert violation.path[: len(path)] == path, (path, wrong, violation)
    assert violations > 5 * len(paths)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"agent": 5}, "agent: must be a text or a list, not 5"),
        ({"agent": ["a", 5]}, "agent.1: must be a text, not 5"),
        ({"mcp": 5}, "mcp: must be a text or a list, not 5"),
        ({"mcp": [5]}, "mcp.0: must be a text or a table, not 5"),
        ({"mcp": [{"path": 5}]}, "mcp.0.path: must be a text, not 5"),
        ({"said_done": {"a": 1}}, "said_done: must be a text or a list, not {'a': 1}"),
        ({"environment": {"a=b": "x"}}, "environment.\"a=b\": does not fit ^[^=]*$: 'a=b'"),
    ],
)
def test_what_the_types_of_a_union_say_is_one_line(table: dict[str, object], line: str) -> None:
    document = {"agent": "a", "store": [{"sqlite": "b.db"}], **table}
    with pytest.raises(ValidationError) as refused:
        ProbeFile.model_validate(document)
    assert first_violation(refused.value, value=document).line == line
