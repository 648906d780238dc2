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
    group.addoption(
        "--bench-record",
        choices=("usual", "reversed"),
        help="Run and record all tests, in the usual order or in reverse, which shows what tests share.",
    )
    group.addoption("--bench-json", metavar="FILE", help="Write what ran, what was kept and what failed to this file, as JSON.")
    parser.addini(
        "bench_impact_ignores",
        "What does not matter to the tests that read it: clock, chance. Their results are kept all the same.",
        type="args",
        default=[],
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, None, None]:
    options = early_config.known_args_namespace
    mode = options.bench_record or ("select" if options.bench_impact else "")
    if not mode:
        return (yield)
    from bench.codebase.pytest_recording import RecordingPlugin  # noqa: PLC0415
    from bench.codebase.pytest_session import ImpactSession  # noqa: PLC0415

    session = ImpactSession(early_config, mode, args)
    early_config.pluginmanager.register(session, "bench.codebase.session")
    if session.records:
        early_config.pluginmanager.register(RecordingPlugin(early_config, session), "bench.codebase.recording")
    return (yield)
