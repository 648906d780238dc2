"""The pytest plug-in: `pytest --bench-impact` runs the tests that the present code invalidates, and keeps the others' results.

It does nothing, and imports nothing, unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("bench").addoption(
        "--bench-impact",
        nargs="?",
        const="select",
        choices=("select", "all", "reversed"),
        help="Run the tests that the present code invalidates, and keep the others' results; all: run and record all; "
        "reversed: the same in reverse order, which shows what tests share.",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, None, None]:
    mode = early_config.known_args_namespace.bench_impact
    if mode is None:
        return (yield)
    from bench.codebase.pytest_recording import RecordingPlugin  # noqa: PLC0415

    recording = RecordingPlugin(early_config, mode, args)
    early_config.pluginmanager.register(recording, "bench.codebase.recording")
    return (yield)
