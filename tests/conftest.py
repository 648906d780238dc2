"""What all tests share: the slow ones, and those that repeat a short one many times, run only where they are asked for (`pytest
-m slow`, `-m endurance`), and none has a deadline: how long a thing takes is measured by `nox -s perf` and asserted nowhere."""

from __future__ import annotations

import gc
import os

import hypothesis
import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each core has a worker of its own, which loads numpy later than this
hypothesis.settings.register_profile("bench", deadline=None)
hypothesis.settings.load_profile("bench")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: minutes, not seconds; left out unless -m asks for it")
    config.addinivalue_line("markers", "endurance: the long form of a test whose short form always runs; `nox -s endurance`")
    if not config.option.markexpr:
        config.option.markexpr = "not slow and not endurance"


def pytest_collection_finish() -> None:
    """What is loaded now stays: the collector need not look at it again during every test."""
    gc.freeze()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made, and their files left empty: for tests of a report's words, of whose time rendering would be most."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # here, as few tests need it
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415

    monkeypatch.setattr("bench.render.drawing._settle", lambda _: None)
    monkeypatch.setattr(FigureCanvasAgg, "print_png", lambda *_, **__: None)
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", lambda *_, **__: None)
