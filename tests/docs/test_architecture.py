"""The page on the architecture names each room of the package and files that there are, and it is short."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LONGEST = 900
"""The most words of the page, its picture left out."""


def test_the_page_is_short() -> None:
    assert len(re.sub(r"```.*?```|\|", " ", PAGE, flags=re.DOTALL).split()) < LONGEST


def test_each_room_of_the_package_is_described() -> None:
    section = PAGE.split("## The rooms", 1)[1].split("##", 1)[0]
    rooms = [path for path in (ROOT / "bench").iterdir() if not path.name.startswith("_") and path.name != "py.typed"]
    names = [f"{path.name}/" if path.is_dir() else path.name for path in rooms]
    assert [name for name in names if f"`{name}`" not in section and f"`bench/{name}`" not in section] == []


def test_each_file_that_the_page_names_is_there() -> None:
    section = PAGE.split("## Where to look", 1)[1]
    files = re.findall(r"`([a-z_/]+\.py)`", section)
    assert len(files) > 20
    assert [file for file in files if not (ROOT / "bench" / file).is_file()] == []
