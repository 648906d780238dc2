"""Which guards there are is asked of the kernel, and what is missing is named with its reason."""

from __future__ import annotations

import pytest

from bench.sandbox import Guard, Guards, guards, kernel


def on(monkeypatch: pytest.MonkeyPatch, landlock: int, filters: bool) -> Guards:
    monkeypatch.setattr(kernel, "landlock_version", lambda: landlock)
    monkeypatch.setattr(kernel, "can_filter_calls", lambda: filters)
    return guards.__wrapped__()


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
    found = on(monkeypatch, landlock, filters)
    kernels = {"other files", "truncation", "TCP", "signals", "system calls"}
    assert {guard.name for guard in found.missing} & kernels == missing
    assert all("needed" in guard.words for guard in found.missing if guard.name in kernels)


def test_what_is_said_names_the_reason() -> None:
    found = Guards((Guard("one", True, "does much"), Guard("two", False, "no kernel")))
    assert found.said() == {"one": "in force", "two": "missing: no kernel"}
