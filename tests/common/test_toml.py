"""Whatever a file in TOML holds, it is read, or refused in one line that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cost import processor_time
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.common.errors import ConfigError
from bench.common.toml import LARGEST_INTEGER, MAX_BYTES, MAX_LEVELS, read_toml
from bench.read.analysis.published import load_published
from bench.run.experiment.config import load_config

KEYS = st.sampled_from(["seed", "model", "model.m", "plan", "plan.p.faults", "architecture.a", "a.b", '"a b"', "models"])
VALUES = st.recursive(
    st.sampled_from(["1", "-1", "nan", "1e999", "0xffffffffffffffffff", '"x"', '"\\u0000"', "true", "1979-05-27", "07:32:00"])
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.tuples(KEYS, inner).map(lambda pair: f"{{{pair[0]} = {pair[1]}}}")
    ),
    max_leaves=5,
)
LINES = st.tuples(KEYS, VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}") | KEYS.map(lambda key: f"[{key}]")
TEXTS = st.lists(LINES, max_size=6).map(lambda lines: "\n".join(lines).encode()) | st.binary()
WHOLE = """
name = "test"
scenarios = ["demo"]
architectures = ["static"]
models = ["n"]
repetitions = 2
seed = 7"""
OTHERS = {"n": {"kind": "simulated"}}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=TEXTS)
def test_whatever_stands_there_is_read_or_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.toml"
    path.write_bytes(content)
    for read in (lambda: load_config(path, {}, OTHERS), lambda: load_published(path)):
        try:
            read()
        except ConfigError as error:
            assert "\n" not in str(error) and str(error).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"x = {'[' * 5000}", "is not TOML: it is nested too deeply"),
        (f"x = {'{a=' * 5000}", "is not TOML: it is nested too deeply"),
        (f"x{'.a' * 300} = 1", f"x{'.a' * 19}.…: is nested more than {MAX_LEVELS} levels deep"),
        (f"model.m.extra_body{'.a' * 62} = 1", "levels deep"),
        (f"max_attempts = {'1' * 5000}", "is not TOML: Exceeds the limit"),
        (f"a.b = [1, {LARGEST_INTEGER + 1}]", f"a.b.1: must be at most {LARGEST_INTEGER}"),
        (f"max_attempts = 0x{'f' * 5000}", f"max_attempts: must be at most {LARGEST_INTEGER}"),
        ('run = "a\\u0000b"', "run: holds a zero character; take it out"),
        ("model = 3", "model: must be a table, not 3"),
        ("model.m.kind = 'openai'\nmodel.m.extra_body.since = 1979-05-27", "extra_body must hold what JSON can: no date"),
        ("model.m.extra_body.most = inf", "model.m.extra_body.most: must be a number of at most 1,000,000,000, not inf"),
        ("deadline_seconds = nan", "deadline_seconds: must be a number"),
    ],
)
def test_what_no_reader_expects_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "extreme.toml"
    path.write_text(f"{WHOLE}\n{text}")
    with pytest.raises(ConfigError) as refused:
        load_config(path, {}, OTHERS)
    assert message in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_what_is_just_as_deep_and_as_large_as_may_be_is_read(tmp_path: Path) -> None:
    path = tmp_path / "just.toml"
    path.write_text(f"x{'.a' * (MAX_LEVELS - 1)} = {LARGEST_INTEGER}")
    values = read_toml(path)["x"]
    for _ in range(MAX_LEVELS - 1):
        values = values["a"]
    assert values == LARGEST_INTEGER


DEEP = (f"a{'.a' * 20_000} = 1", f"[a{'.a' * 4000}]\n" + "".join(f"b{number} = 1\n" for number in range(4000)), "a" * 250_000)


@pytest.mark.parametrize("text", DEEP, ids=["a key", "a heading", "a word"])
def test_no_key_takes_longer_to_read_than_its_length_allows(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text)
    with processor_time(at_most=1.0), pytest.raises(ConfigError):
        read_toml(tmp_path / "deep.toml")


def test_a_file_that_is_larger_than_any_config_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match=r"large.toml: cannot be read: it has more than 262,144 bytes"):
        read_toml(tmp_path / "large.toml")


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none.toml: cannot be read: No such file"):
        read_toml(tmp_path / "none.toml")
