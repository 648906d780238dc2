"""A file is written in the place of a file or a link, and nothing that other programs use is replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bench.common import files
from bench.common.files import write_whole


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="is a device or a pipe; name a file"):
        write_whole(tmp_path / "pipe", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_link_among_the_devices_stays_and_any_other_link_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "stdout"
    link.symlink_to("target")
    monkeypatch.setattr(files, "DEVICES", tmp_path)
    with pytest.raises(OSError, match="is a device or a pipe; name a file"):
        write_whole(link, b"text")
    assert link.is_symlink()
    monkeypatch.undo()
    write_whole(link, b"text")
    assert not link.is_symlink()
    assert link.read_bytes() == b"text"
    assert not (tmp_path / "target").exists()
