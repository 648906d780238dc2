"""Runs that hold the same: records and responses but for links and framework seconds, and texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

from bench.record.chain import unseal
from bench.record.files import RESPONSES, TRIALS
from bench.record.reading import read_texts
from bench.record.verify import verify

FRAMEWORK = re.compile(rb'"framework_seconds":[^,]+')


def lines_of(folder: Path, name: str) -> list[bytes]:
    """The lines of trials or responses without links and framework seconds, sorted."""
    lines, link = [], ""
    for line in (folder / name).read_bytes().splitlines(keepends=True):
        content, link = unseal(line, link)
        if json.loads(content).get("kind") != "session":
            lines.append(FRAMEWORK.sub(b"", content))
    return sorted(lines)


def assert_equal(left: Path, right: Path) -> None:
    """The runs hold the same, and the right one is sound."""
    for name in (TRIALS, RESPONSES):
        assert lines_of(left, name) == lines_of(right, name) != []
    assert read_texts(left) == read_texts(right)
    assert not verify(right).defects
