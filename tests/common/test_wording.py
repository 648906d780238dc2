"""What is wrong with a value from outside is said in words that name the place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bench.common.errors import ConfigError
from bench.common.wording import first_violation, first_violations
from bench.run.experiment.config import Config, load_config

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
