"""A folder as a store: what is copied, what differs, what a reset brings back."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.common.errors import ConfigError
from bench.probe.run.witness.folder import FolderStore
from bench.probe.run.witness.rows import MAX_VALUE_CHARS, Encoding
from bench.record.probe_rows import RowDifference


class Fixture:
    """A folder and its store."""

    def __init__(self, folder: Path) -> None:
        self.source, self.copies = folder / "owner" / "ordner ä 文", folder / "copies"
        (self.source / "sub" / "empty").mkdir(parents=True)
        (self.source / "a.txt").write_text("first\n")
        (self.source / "sub" / "ключ.bin").write_bytes(b"\0\xff")
        (self.source / "big").write_bytes(b"x" * 3 * MAX_VALUE_CHARS)
        (self.source / "run").write_text("#!/bin/sh\n")
        (self.source / "run").chmod(0o750)
        (self.source / "near").symlink_to("sub/ключ.bin")
        (self.source / "whole").symlink_to(self.source.absolute() / "a.txt")
        self.store = FolderStore("files", self.source, self.copies, Encoding(), {"ROOT": "{store}"})

    @property
    def copy(self) -> Path:
        return Path(self.store.environment["ROOT"])

    def rows(self, most: int = 100) -> dict[str, RowDifference]:
        return {row.key: row for row in self.store.read(most).differences}


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Fixture]:
    fixture = Fixture(tmp_path)
    fixture.store.make()
    yield fixture
    fixture.store.remove()
    assert not any(fixture.copies.iterdir())


def seen(folder: Path) -> dict[str, object]:
    """Return all that the copy of a folder has to have."""
    return {
        str(path.relative_to(folder)): (
            str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
            path.lstat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_copy_has_what_the_owner_has_and_its_links_lead_into_the_copy(files: Fixture) -> None:
    expected, copied = seen(files.source), seen(files.copy)
    del expected["whole"], copied["whole"]
    assert copied == expected
    assert (files.copy / "whole").readlink() == files.copy / "a.txt"
    assert not files.store.read(10).differences


def test_added_changed_and_removed_files_are_rows(files: Fixture) -> None:
    (files.copy / "new").write_text("n")
    (files.copy / "a.txt").write_text("other")
    (files.copy / "sub" / "empty").rmdir()
    rows = files.rows()
    assert sorted(rows) == ["a.txt", "new", "sub/empty"]
    assert rows["new"].before is None
    assert rows["new"].after
    assert rows["new"].after["text"] == "n"
    before, after = rows["a.txt"].before, rows["a.txt"].after
    assert before
    assert after
    assert (before["text"], after["text"]) == ("first\n", "other")
    assert "appended" not in after
    assert rows["sub/empty"].before == {"kind": "folder", "mode": "755"}
    assert rows["sub/empty"].after is None


@pytest.mark.parametrize(("name", "tail", "text"), [("a.txt", b"b", "b"), ("big", b"y", "y"), ("big", b"\xfe", "(bytes) fe")])
def test_appended_bytes_are_told_from_another_content(files: Fixture, name: str, tail: bytes, text: str) -> None:
    with (files.copy / name).open("ab") as file:
        file.write(tail)
    after = files.rows()[name].after
    assert after
    assert after["appended"] == text


def test_a_long_tail_is_its_size_and_digest(files: Fixture) -> None:
    for times in (1, 2):
        with (files.copy / "a.txt").open("ab") as file:
            file.write(b"z" * 2 * MAX_VALUE_CHARS)
        after = files.rows()["a.txt"].after
        assert after
        assert str(after["appended"]).startswith(f"(digest) {2 * times * MAX_VALUE_CHARS} bytes ")


CHANGES = {
    "mode": "chmod 640 run",
    "mode of a folder": "chmod 700 sub",
    "link": "ln -sfn a.txt near",
    "file in the place of a folder": "rmdir sub/empty && touch sub/empty",
    "folder in the place of a file": "rm a.txt && mkdir -p a.txt/x",
    "link in the place of a file": "rm a.txt && ln -s run a.txt",
    "same size and times": "touch -r a.txt .. && echo FIRST > a.txt && touch -r .. a.txt",
    "name that is no text": "touch $(printf '\\377')",
    "empty file": "touch empty",
    "closed folder": "touch sub/new && chmod 500 sub",
    "all gone": "chmod -R u+w . && rm -r *",
    "another folder": 'cd .. && mv "$OLDPWD" gone && mkdir "$OLDPWD"',
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_seen_and_a_reset_brings_the_digest_back(files: Fixture, change: str) -> None:
    first = files.store.read(10)
    owners = seen(files.source)
    subprocess.run(["sh", "-c", CHANGES[change]], cwd=files.copy, check=True)
    changed = files.store.read(10)
    assert changed.differences
    assert changed.digest != first.digest
    files.store.reset()
    assert files.store.read(10) == first
    assert seen(files.source) == owners


def test_what_exceeds_the_bound_is_counted(files: Fixture) -> None:
    for number in range(7):
        (files.copy / f"n{number}").touch()
    reading = files.store.read(3)
    assert ([row.key for row in reading.differences], reading.more) == (["n0", "n1", "n2"], 4)


def test_pipes_are_left_out(files: Fixture) -> None:
    os.mkfifo(files.copy / "pipe")
    assert not files.rows()


def test_a_folder_that_would_hold_its_own_copy_is_refused(tmp_path: Path) -> None:
    store = FolderStore("files", tmp_path, tmp_path / "deep" / "copies", Encoding(), {})
    with pytest.raises(ConfigError, match=r"store 'files': its copies would be made in itself"):
        store.make()


@pytest.mark.parametrize("leads", ["../elsewhere", "../away.txt", "../away", "sub/../../away.txt"])
def test_a_link_that_leads_out_of_a_folder_is_refused_by_its_name(tmp_path: Path, leads: str) -> None:
    fixture = Fixture(tmp_path)
    (tmp_path / "owner" / "away").mkdir()
    (tmp_path / "owner" / "away.txt").touch()
    (fixture.source / "sub" / "far").symlink_to(Path("..") / leads)
    with pytest.raises(ConfigError, match=rf"the link .*sub/far leads out of it, to {tmp_path}/owner/\S+, which is not copied"):
        fixture.store.make()
    assert not fixture.copies.exists() or not any(fixture.copies.iterdir())
