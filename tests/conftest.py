"""What all tests share: the slow ones run only where they are asked for (`pytest -m slow`), and none has a deadline: how long a
thing takes is measured by `nox -s perf` and asserted nowhere."""

from __future__ import annotations

import hypothesis
import pytest

hypothesis.settings.register_profile("bench", deadline=None)
hypothesis.settings.load_profile("bench")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: minutes, not seconds; left out unless -m asks for it")
    if not config.option.markexpr:
        config.option.markexpr = "not slow"
