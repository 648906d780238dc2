"""The pytest plug-in: `pytest --bench-impact` runs the tests that the present code invalidates, and keeps the others' results.

It does nothing and imports nothing unless one of its options is given.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

PLAIN = {"maxfail": 0, "lf": False, "failedfirst": False, "stepwise": False, "usepdb": False, "xmlpath": None}
"""Options of pytest, each with the value under which all chosen tests run and no report is written."""


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
    group.addoption(
        "--bench-plain", metavar="FILE", help="Run the tests that this file names, unrecorded; it then has the outcomes."
    )
    group.addoption("--bench-json", metavar="FILE", help="Write what ran, what was kept and what failed to this file, as JSON.")
    parser.addini(
        "bench_impact_ignores",
        "What does not matter to the tests that read it: clock, chance. Their results are kept all the same.",
        type="args",
        default=[],
    )


def _mode(options: Any) -> str:
    return str(options.bench_record or ("select" if options.bench_impact else "")) if not options.bench_plain else "plain"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, None, None]:
    mode = _mode(early_config.known_args_namespace)
    if not mode:
        return (yield)
    from bench_code.pytest_outcomes import PlainSession  # noqa: PLC0415

    manager = early_config.pluginmanager
    if mode == "plain":
        manager.register(PlainSession(Path(early_config.known_args_namespace.bench_plain)), "bench_code.plain")
        return (yield)
    from bench_code.pytest_recording import RecordingPlugin  # noqa: PLC0415
    from bench_code.pytest_session import ImpactSession  # noqa: PLC0415

    session = ImpactSession(early_config, mode, args)
    if session.records:
        manager.register(RecordingPlugin(early_config, session), "bench_code.recording")
    manager.register(session, "bench_code.session")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Set the options that a session of ours needs: it has one process, whatever the project's own options are."""
    mode = _mode(config.option)
    for name, value in (({"numprocesses": 0} if mode else {}) | (PLAIN if mode == "plain" else {})).items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    return (yield)
