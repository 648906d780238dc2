"""A headless Chromium for the tests of `nox -s browser`, which are skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is on the path"),
    # The driver's own event loop is closed by the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextmanager
def launched(*further: str) -> Iterator[Any]:
    """A browser with these further switches."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright and a Chromium: nox -s browser")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*QUIET, *further])
        yield browser
        browser.close()
