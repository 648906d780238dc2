"""A run on disk: append-only, written so that a kill at any moment loses at most the trials in flight.

manifest.json    what the run is: config, code, packages, machine, models, packs; written once
trials.jsonl     one line a session or a trial, each written whole in one call
texts.jsonl      {"digest": ..., "text": ...}: each prompt and reply once; a trial's texts are written before the trial
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from bench.errors import ResultsError, whole_text
from bench.experiment.record import RECORD, SessionRecord, TrialRecord

FORMAT = 2
"""Of the files in a run's folder. A reader refuses every other one."""

MANIFEST, TRIALS, TEXTS = "manifest.json", "trials.jsonl", "texts.jsonl"


class RunWriter:
    """Appends to a run's folder, which it creates where there is none. Raises ResultsError for whatever hinders that.

    `repaired` tells which files ended in a half-written line, which was cut off. `recorded` maps the ids of the trials that
    are there to their outcomes.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]):
        self.folder = folder
        self.repaired: list[str] = []
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._trials = self._open(TRIALS, opened)
                self._texts = self._open(TEXTS, opened)
                self._lock()
                self._write_manifest(manifest)
            except OSError as error:
                raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error
            self._repair(self._trials, TRIALS)
            self._repair(self._texts, TEXTS)
            self.recorded = {record.id: record.outcome for record in read_trials(folder)}
            self._known = {line["digest"] for line in _texts(folder)}
            self._opened = opened.pop_all()

    def _open(self, name: str, opened: ExitStack) -> int:
        file = os.open(self.folder / name, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        opened.callback(os.close, file)
        return file

    def _lock(self) -> None:
        try:
            fcntl.flock(self._trials, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ResultsError(f"{self.folder}: another bench run is writing here; wait for it, or give --name") from error

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        path = self.folder / MANIFEST
        if path.exists():
            _refuse_other(read_manifest(self.folder), manifest, self.folder)
            return
        if os.fstat(self._trials).st_size:
            raise ResultsError(f"{path}: is missing beside recorded trials; put it back, or give --name")
        half = path.with_suffix(".half")
        half.write_text(json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
        half.rename(path)

    def _repair(self, file: int, name: str) -> None:
        """Cut off a last line that a kill left without its end."""
        size = os.fstat(file).st_size
        end, block = size, 1 << 16
        while end > 0:
            start = max(0, end - block)
            newline = os.pread(file, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(file, end)
            self.repaired.append(name)

    def add(self, record: TrialRecord, texts: Mapping[str, str]) -> None:
        """Append a trial, its new texts first."""
        new = {digest: text for digest, text in texts.items() if digest not in self._known}
        lines = [json.dumps({"digest": digest, "text": text}).encode() + b"\n" for digest, text in new.items()]
        self._append(self._texts, b"".join(lines))
        self._known |= new.keys()
        self._append(self._trials, _line(record))

    def note(self, session: SessionRecord) -> None:
        self._append(self._trials, _line(session))

    def _append(self, file: int, content: bytes) -> None:
        """Write all of it, or leave the file as it was."""
        size = os.fstat(file).st_size
        try:
            written = 0
            while written < len(content):
                written += os.write(file, content[written:])
        except OSError as error:
            os.ftruncate(file, size)
            said = f"{self.folder}: cannot be written: {error.strerror}"
            raise ResultsError(f"{said}; what was recorded before is kept, run the same command again to go on") from error

    def close(self) -> None:
        self._opened.close()


def _line(record: TrialRecord | SessionRecord) -> bytes:
    """One line. Text that came from outside may hold half a surrogate pair, in whatever field: no record is lost for that."""
    try:
        return RECORD.dump_json(record) + b"\n"
    except PydanticSerializationError:
        plain = RECORD.dump_python(record, mode="json")
        return whole_text(json.dumps(plain, ensure_ascii=False)).encode() + b"\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Raises ResultsError where the folder holds no run, or one of another format."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ResultsError(f"{folder}: holds no run (no {MANIFEST}); name a folder that `bench run` wrote") from error
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: cannot be read: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise ResultsError(
            f"{path}: is of format {found}, this version reads format {FORMAT}; read it with the version that wrote it"
        )
    return manifest


def read_records(folder: Path) -> Iterator[TrialRecord | SessionRecord]:
    """Trials and sessions in the order in which they were recorded; a trial that was run again after an error stands twice.

    A truncated last line is passed over: its trial is as good as not run. Raises ResultsError, naming the line, for any other
    damage.
    """
    for number, line in _lines(folder / TRIALS):
        try:
            yield RECORD.validate_json(line)
        except ValidationError as error:
            raise _damaged(folder / TRIALS, number) from error


def read_trials(folder: Path) -> Iterator[TrialRecord]:
    """The trials among the records."""
    return (record for record in read_records(folder) if isinstance(record, TrialRecord))


def read_sessions(folder: Path) -> Iterator[SessionRecord]:
    """When `bench run` began and ended on this folder, and how."""
    return (record for record in read_records(folder) if isinstance(record, SessionRecord))


def read_texts(folder: Path) -> dict[str, str]:
    """Digest -> text."""
    return {line["digest"]: line["text"] for line in _texts(folder)}


def _texts(folder: Path) -> Iterator[dict[str, str]]:
    for number, line in _lines(folder / TEXTS):
        try:
            value = json.loads(line)
            if not (isinstance(value["digest"], str) and isinstance(value["text"], str)):
                raise TypeError
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(folder / TEXTS, number) from error
        yield value


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their numbers; a last line without its end is left out."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield number, line
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


def _damaged(path: Path, number: int) -> ResultsError:
    return ResultsError(f"{path}: line {number} is damaged; restore the file from a copy, or run again under another --name")


def _refuse_other(there: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """A folder holds the trials of one experiment by one code: name what differs."""
    for what in ("config", "code digest", "scenarios", "models"):
        if _part(there, what) != _part(now, what):
            said = f"{folder}: was recorded with another {what}"
            raise ResultsError(f"{said}; give --name for a folder of its own, or --set-aside to rename the old one")


def _part(manifest: Mapping[str, Any], what: str) -> object:
    if what == "code digest":
        return manifest.get("code", {}).get("digest")
    part = json.loads(json.dumps(manifest.get(what), default=str))
    # More repetitions of the same experiment belong into the same folder.
    return {key: value for key, value in part.items() if key != "repetitions"} if what == "config" else part


def set_aside(folder: Path) -> Path:
    """Rename a run's folder so that its name is free; the new name."""
    number = 1
    while (other := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    folder.rename(other)
    return other


def latest(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Of each trial the last record: one that ended in an error is run again on resume."""
    return list({record.id: record for record in records}.values())
