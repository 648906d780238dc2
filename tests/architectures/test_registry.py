"""An architecture is found by its name or by its import path, and refused in one line."""

from __future__ import annotations

import pytest

from bench.architectures.registry import ARCHITECTURES, architecture_named, load_architecture
from bench.architectures.static import static
from bench.errors import ConfigError


@pytest.mark.parametrize("name", [part.name for part in ARCHITECTURES if not part.extra])
def test_every_registered_architecture_loads_under_its_own_name(name: str) -> None:
    assert getattr(load_architecture(ARCHITECTURES[name]), "__name__", "") == name


def test_any_other_loads_by_its_import_path() -> None:
    assert load_architecture(architecture_named("bench.architectures.static:static")) is static


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("statik", "unknown architecture 'statik'; did you mean 'static'?"),
        ("bench.nowhere:run", "architecture 'bench.nowhere:run' cannot be imported: No module named 'bench.nowhere'"),
        (
            "bench.seeding:run",
            "architecture 'bench.seeding:run' cannot be imported: module 'bench.seeding' has no attribute 'run'",
        ),
    ],
)
def test_an_unknown_one_is_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        architecture_named(name)
    assert str(refused.value) == words


@pytest.mark.parametrize("name", ["monolithic", "llm_compiler"])
def test_one_without_a_parallel_form_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_architecture(ARCHITECTURES[name], parallel=True)
    message = f"architecture '{name}' has no parallel form; leave `parallel` out of its variant: static and runtime_structured"
    assert str(refused.value) == f"{message} have one, and any function that takes `parallel`"
