"""What all tests share: the slow ones run only where they are asked for (`pytest -m slow`), and no example has a deadline."""

from __future__ import annotations

import hypothesis
import pytest

hypothesis.settings.register_profile("shared", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("shared")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: minutes, not seconds; left out unless -m asks for it")
    if not config.option.markexpr:
        config.option.markexpr = "not slow"
