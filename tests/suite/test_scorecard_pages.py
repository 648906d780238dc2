"""A committed scorecard's page is what the numbers beside it give."""

from __future__ import annotations

from pathlib import Path

import pytest
from scorecard_pages import PAGE, folders, page


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_committed_page_is_what_the_committed_numbers_give(folder: Path) -> None:
    assert page(folder) == (folder / PAGE).read_text(encoding="utf-8")
