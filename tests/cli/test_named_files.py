"""Whatever a user names in the place of a file is one line, and nothing is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import bench, start, workplace

from bench.record.files import MANIFEST

PATIENCE = 100.0
"""Seconds in which a command ends that has nothing to do, on a busy machine."""


def sparse(path: Path) -> None:
    """Make a file that has a size and no content."""
    path.touch()
    os.truncate(path, 2**32)


KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "an empty file": Path.touch,
    "a binary file": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "UTF-16": lambda path: path.write_text('name = "x"\n', encoding="utf-16"),
    "a sparse file of 4 GiB": sparse,
}
FILES = {
    "run": ("thing.toml", ("run",)),
    "serve": ("thing.toml", ("serve",)),
    "new scenario, of CSV": ("thing.csv", ("new", "scenario", "other", "--from")),
    "new scenario, of JSON lines": ("thing.jsonl", ("new", "scenario", "other", "--from")),
}
RUNS = {
    "report": ("report", "{run}"),
    "regrade": ("more", "regrade", "{run}"),
    "export": ("export", "{run}"),
    "verify": ("verify", "{run}"),
    "trace": ("trace", "{run}", "retry.rca.static-to-monolithic"),
    "compare": ("compare", "{run}", "{run}"),
    "scorecard": ("scorecard", "{run}"),
    "replay": ("run", "configs/small.toml", "--model", "recorded:{run}"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    workplace(folder)
    return folder


def refused_in_one_line(folder: Path, words: tuple[str, ...], kind: str) -> None:
    with start(folder, *words) as command:
        code, out, err = command.ended(PATIENCE)
    text = out + err
    assert code in (1, 2) and text.count("\n") == 1 and len(text) < 500, (kind, code, text)


@pytest.mark.parametrize("command", FILES)
def test_what_is_named_in_the_place_of_a_file_is_one_line(
    folder: Path, command: str, record_property: Callable[[str, object], None]
) -> None:
    name, words = FILES[command]
    for kind, make in KINDS.items():
        make(folder / name)
        refused_in_one_line(folder, (*words, name), kind)
        (folder / name).rmdir() if kind == "a folder" else (folder / name).unlink()
    record_property("tries", len(KINDS))


@pytest.mark.parametrize("command", RUNS)
def test_what_lies_in_the_place_of_a_runs_manifest_is_one_line(
    folder: Path, command: str, record_property: Callable[[str, object], None]
) -> None:
    for number, (kind, make) in enumerate(KINDS.items()):
        run = folder / f"{command}-{number}"
        run.mkdir()
        make(run / MANIFEST)
        refused_in_one_line(folder, tuple(word.format(run=run) for word in RUNS[command]), kind)
    record_property("tries", len(KINDS))


@pytest.mark.parametrize("command", RUNS)
def test_what_is_named_in_the_place_of_a_runs_folder_is_one_line(folder: Path, command: str) -> None:
    os.mkfifo(run := folder / f"{command}-pipe")
    refused_in_one_line(folder, tuple(word.format(run=run) for word in RUNS[command]), "a pipe")


def test_a_config_with_a_byte_order_mark_is_read(folder: Path) -> None:
    config = folder / "configs" / "small.toml"
    (folder / "marked.toml").write_bytes(b"\xef\xbb\xbf" + config.read_bytes())
    code, out, err = bench(folder, "run", "marked.toml", "--dry-run")
    assert (code, err) == (0, "") and "demo" in out
