"""Copies of packs, to be edited."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.common.errors import PackError
from bench.run.packs import load_pack

PACKS = Path(__file__).parent / "packs"

Edit = Callable[[Path], object]


def copy_of(name: str, into: Path) -> Path:
    """A copy of one of the tests' packs; its folder."""
    return Path(shutil.copytree(PACKS / name, into / name, ignore=shutil.ignore_patterns("__pycache__")))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refusal(pack: Path, name: str = "", instance: str = "") -> str:
    """The line with which a pack is refused."""
    with pytest.raises(PackError) as refused:
        load_pack(name or pack.name, [pack.parent], instance)
    line = str(refused.value)
    assert "\n" not in line
    return line


def in_file(name: str, old: str, new: str) -> Edit:
    return lambda pack: edit(pack / name, old, new)


def in_code(old: str, new: str) -> Edit:
    return in_file("scenario.py", old, new)
