"""What all tests share: the slow ones, and those that repeat a short one many times, run only where they are asked for (`pytest
-m slow`, `-m endurance`), and none has a deadline: how long a thing takes is measured by `nox -s perf` and asserted nowhere.
A property that names no number of examples is tried on 40, and in the long form on 200."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
from undrawn import leave_undrawn, leave_unmade

FOLDER = Path(__file__).parent
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each core has a worker of its own, which loads numpy later than this
gc.disable()  # until all tests are collected: it would look in vain for garbage in what they import
hypothesis.settings.register_profile("short", deadline=None, max_examples=40)
hypothesis.settings.register_profile("long", deadline=None, max_examples=200)
hypothesis.settings.load_profile("short")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: minutes, not seconds; left out unless -m asks for it")
    config.addinivalue_line("markers", "endurance: the long form of a test whose short form always runs; `nox -s endurance`")
    if not config.option.markexpr:
        config.option.markexpr = "not slow and not endurance"
    if _is_long(config):
        hypothesis.settings.load_profile("long")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Two more than there are cores: a test that waits, for a time limit or a process, leaves its core to others."""
    return (yield) + 2


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Workers begin at different folders: what one has compiled, the others read."""
    report = yield
    if collector.path == FOLDER and (worker := getattr(collector.config, "workerinput", None)):
        begin = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = [*report.result[begin:], *report.result[:begin]]
    return report


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All workers have one order. The long form of a property is the same test on more examples."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.parts)
    for item in items if _is_long(config) else ():
        if hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("endurance")


def _is_long(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "endurance")


def pytest_collection_finish() -> None:
    """What is loaded now stays: the collector need not look at it again during every test."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """What commands remember for the user is not remembered for who runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_signal_is_ignored_below() -> Generator[None]:
    """A process that a test starts hears Ctrl-C and a closed terminal even where `nohup` or a script's background ignores them:
    a new process inherits an ignored signal, and no handler."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def _git_is_asked_once() -> None:
    """Each new run asks git about the checkout, and no test changes the checkout."""
    if code := sys.modules.get("bench.run.experiment.code"):
        vars(code)["_git"] = functools.cache(vars(code)["_git"])


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made, and their files left empty."""
    leave_undrawn(monkeypatch.setattr)


@pytest.fixture
def unmade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures have a name, a title and a caption, and nothing else."""
    leave_unmade(monkeypatch.setattr)
