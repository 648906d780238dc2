"""Which guards there are is asked of the kernel, and what is missing is named with its reason."""

from __future__ import annotations

import pytest

from bench.common.errors import ConfigError
from bench.run.sandbox import Guard, Guards, guards, kernel, run_python
from bench.run.sandbox.guards import WITHOUT_ENV, guards_of_machine


def on(monkeypatch: pytest.MonkeyPatch, landlock: int, filters: bool) -> Guards:
    monkeypatch.setattr(kernel, "landlock_version", lambda: landlock)
    monkeypatch.setattr(kernel, "can_filter_calls", lambda: filters)
    return Guards(guards_of_machine.__wrapped__(""))


@pytest.mark.parametrize(
    ("landlock", "filters", "missing"),
    [
        (6, True, set()),
        (5, True, {"signals"}),
        (3, True, {"TCP", "signals"}),
        (1, True, {"truncation", "TCP", "signals"}),
        (0, True, {"other files", "truncation", "TCP", "signals"}),
        (7, False, {"system calls"}),
    ],
)
def test_a_guard_that_the_kernel_lacks_is_missing(
    monkeypatch: pytest.MonkeyPatch, landlock: int, filters: bool, missing: set[str]
) -> None:
    guards = on(monkeypatch, landlock, filters)
    kernels = {"other files", "truncation", "TCP", "signals", "system calls"}
    assert {guard.name for guard in guards.missing} & kernels == missing
    assert all("needed" in guard.words for guard in guards.missing if guard.name in kernels)


def test_what_is_said_names_the_reason() -> None:
    guards = Guards((Guard("one", True, "does much"), Guard("two", False, "no kernel")))
    assert guards.as_json() == {"one": "in force", "two": "missing: no kernel"}


def test_a_guard_that_is_left_out_is_missing_and_says_who_did_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {guard.name for guard in guards().missing}
    monkeypatch.setenv(WITHOUT_ENV, "idle time, trip-wire")
    assert {guard.name for guard in guards().missing} - before == {"idle time", "trip-wire"}
    assert guards().as_json()["trip-wire"] == f"missing: left out, as {WITHOUT_ENV} says"


def test_code_runs_without_a_guard_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = "import os\ndef main(value): os.kill(0, 0)"
    assert "forbidden" in run_python({}, tries, None).problem
    monkeypatch.setenv(WITHOUT_ENV, "trip-wire")
    assert "forbidden" not in run_python({}, tries, None).problem


def test_a_guard_that_there_is_not_cannot_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITHOUT_ENV, "signal")
    with pytest.raises(ConfigError, match="there is no guard 'signal'; did you mean 'signals'"):
        guards()
