"""An architecture is found by its name or by its import path, and refused in one line."""

from __future__ import annotations

import sys

import pytest

from bench.common.errors import ConfigError
from bench.run.architectures.registry import ARCHITECTURES, architecture_named, load_architecture
from bench.run.architectures.static import static
from bench.run.experiment.code import _version_of


@pytest.mark.parametrize("name", [part.name for part in ARCHITECTURES if not part.extra])
def test_every_registered_architecture_loads_under_its_own_name(name: str) -> None:
    assert getattr(load_architecture(ARCHITECTURES[name]), "__name__", "") == name


def test_any_other_loads_by_its_import_path() -> None:
    assert load_architecture(architecture_named("bench.run.architectures.static:static")) is static


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("statik", "unknown architecture 'statik'; did you mean 'static'?"),
        ("bench.nowhere:run", "architecture 'bench.nowhere:run' cannot be imported: No module named 'bench.nowhere'"),
        (
            "bench.common.seeding:run",
            "architecture 'bench.common.seeding:run' cannot be imported: module 'bench.common.seeding' has no attribute 'run'",
        ),
    ],
)
def test_an_unknown_one_is_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        architecture_named(name)
    assert str(refused.value) == words


@pytest.mark.parametrize(
    "name", ["os:system", "os:environ", "builtins:dict", "sys:maxsize", "os:getcwd", "types:SimpleNamespace"]
)
def test_what_takes_no_task_and_workbench_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^architecture '{name}' is no function of a task and a workbench; name one that"):
        architecture_named(name)


def test_the_program_itself_has_no_version_where_an_architecture_leads_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)  # as in the script `bench`
    assert _version_of.__wrapped__("__main__") is None


@pytest.mark.parametrize("name", ["monolithic", "llm_compiler"])
def test_one_without_a_parallel_form_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_architecture(ARCHITECTURES[name], parallel=True)
    message = f"architecture '{name}' has no parallel form; leave `parallel` out of its variant: static and runtime_structured"
    assert str(refused.value) == f"{message} have one, and any function that takes `parallel`"
