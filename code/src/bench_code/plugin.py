"""The pytest plug-in: `pytest --bench-impact` runs the tests that the present code invalidates, and keeps the others' results.

It does nothing and imports nothing unless one of its options is given.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bench")
    group.addoption(
        "--bench-impact",
        action="store_true",
        help="Run the tests that the present code invalidates, and keep the others' results.",
    )
    group.addoption("--bench-all", action="store_true", help="Run all tests, and note what each of them runs.")
    group.addoption("--bench-json", metavar="FILE", help="Write what ran, what was kept and what failed to this file, as JSON.")
    parser.addini(
        "bench_impact_from", "Tests that take less than so many seconds in all run all at once.", type="string", default="1"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    options = early_config.known_args_namespace
    if not (options.bench_impact or options.bench_all):
        return (yield)
    from bench_code.pytest_session import ImpactSession  # noqa: PLC0415

    session = ImpactSession(early_config, options.bench_all)
    early_config.pluginmanager.register(session, "bench_code.session")
    early_config.add_cleanup(session.close)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Let a session of ours have one process, whatever the project's own options are."""
    if (config.option.bench_impact or config.option.bench_all) and hasattr(config.option, "numprocesses"):
        config.option.numprocesses = 0
    return (yield)
