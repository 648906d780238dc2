"""A run on disk: append-only, written so that a kill at any moment loses nothing that was answered.

manifest.json    what the run is: config, code, packages, machine, models, packs; written once
trials.jsonl     one line a session or a trial, each written whole in one call
responses.jsonl  one line a response, written as it arrives: a trial that is killed need not ask again
texts.jsonl      {"digest": ..., "text": ...}: each prompt and reply once; texts are written before what names them
grades.jsonl     grades made anew after the run, by `bench regrade`; most runs have none

Each line of trials, responses and grades is chained to the one before (`bench.experiment.chain`); a digest names each text.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from bench.errors import ResultsError, whole_text
from bench.experiment.chain import Broken, sealed, unsealed
from bench.experiment.record import (
    GRADE,
    RECORD,
    RESPONSE,
    NewGrade,
    Regrade,
    ResponseRecord,
    SessionRecord,
    TrialRecord,
)
from bench.runtime.events import digest_of

FORMAT = 3
"""Of the files in a run's folder. `bench upgrade` carries earlier ones over."""

MANIFEST, TRIALS, TEXTS, RESPONSES, GRADES = "manifest.json", "trials.jsonl", "texts.jsonl", "responses.jsonl", "grades.jsonl"
Record = TypeVar("Record")


class AppendOnly:
    """One file of lines, open for appending."""

    def __init__(self, path: Path, opened: ExitStack):
        self.path, self.link = path, ""
        self.file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        opened.callback(os.close, self.file)

    @property
    def size(self) -> int:
        return os.fstat(self.file).st_size

    def repair(self) -> bool:
        """Cut off a last line that a kill left without its end; whether there was one."""
        size = self.size
        end, block = size, 1 << 16
        while end > 0:
            start = max(0, end - block)
            newline = os.pread(self.file, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self.file, end)
        return end < size

    def append_chained(self, line: bytes) -> None:
        content, link = sealed(line, self.link)
        self.append(content)
        self.link = link

    def append(self, content: bytes) -> None:
        """Write all of it, or leave the file as it was."""
        size = self.size
        try:
            written = 0
            while written < len(content):
                written += os.write(self.file, content[written:])
        except OSError as error:
            os.ftruncate(self.file, size)
            said = f"{self.path.parent}: cannot be written: {error.strerror}"
            raise ResultsError(f"{said}; what was recorded before is kept, run the same command again to go on") from error


class RunWriter:
    """Appends to a run's folder, which it creates where there is none. Raises ResultsError for whatever hinders that.

    `repaired` tells which files ended in a half-written line, which was cut off. `recorded` maps the ids of the trials that
    are there to their outcomes.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]):
        self.folder = folder
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._trials, self._texts, self._responses = (
                    AppendOnly(folder / name, opened) for name in (TRIALS, TEXTS, RESPONSES)
                )
                _lock(self._trials.file, folder)
                self._write_manifest(manifest)
            except OSError as error:
                raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error
            files = (self._trials, self._texts, self._responses)
            self.repaired = [file.path.name for file in files if file.repair()]
            self.recorded = {record.id: record.outcome for record in read_trials(folder)}
            self._trials.link = _last_link(folder / TRIALS)
            self._responses.link = _last_link(folder / RESPONSES)
            self._known = {line["digest"] for line in _texts(folder)}
            self._opened = opened.pop_all()

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        path = self.folder / MANIFEST
        if path.exists():
            _refuse_other(read_manifest(self.folder), manifest, self.folder)
            return
        if self._trials.size:
            raise ResultsError(f"{path}: is missing beside recorded trials; put it back, or give --name")
        write_manifest(self.folder, manifest)

    def add(self, record: TrialRecord, texts: Mapping[str, str]) -> None:
        """Append a trial, its new texts first."""
        self.add_texts(texts)
        self._trials.append_chained(_line(RECORD, record))

    def add_texts(self, texts: Mapping[str, str]) -> None:
        """Append those of these texts, by digest, that are not there yet."""
        new = {digest: text for digest, text in texts.items() if digest not in self._known}
        if new:
            lines = [json.dumps({"digest": digest, "text": text}).encode() + b"\n" for digest, text in new.items()]
            self._texts.append(b"".join(lines))
            self._known |= new.keys()

    def respond(self, response: ResponseRecord, texts: Mapping[str, str]) -> None:
        """Append a response, its new texts first."""
        self.add_texts(texts)
        self._responses.append_chained(_line(RESPONSE, response))

    def note(self, session: SessionRecord) -> None:
        self._trials.append_chained(_line(RECORD, session))

    def close(self) -> None:
        self._opened.close()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """While inside, nobody else writes to a run's folder. Raises ResultsError where somebody does."""
    with ExitStack() as opened:
        try:
            file = AppendOnly(folder / TRIALS, opened)
        except OSError as error:
            raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error
        _lock(file.file, folder)
        yield


def _lock(file: int, folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ResultsError(f"{folder}: another bench run is writing here; wait for it, or give --name") from error


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write it whole or not at all."""
    half = (folder / MANIFEST).with_suffix(".half")
    half.write_text(json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    half.rename(folder / MANIFEST)


def _line(adapter: TypeAdapter[Any], record: object) -> bytes:
    """One line. Text that came from outside may hold half a surrogate pair, in whatever field: no record is lost for that."""
    try:
        return adapter.dump_json(record)
    except PydanticSerializationError:
        return whole_text(json.dumps(adapter.dump_python(record, mode="json"), ensure_ascii=False)).encode()


def read_manifest(folder: Path, versions: Container[object] = (FORMAT,)) -> dict[str, Any]:
    """Raises ResultsError where the folder holds no run, or one of none of these formats."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ResultsError(f"{folder}: holds no run (no {MANIFEST}); name a folder that `bench run` wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: cannot be read: {error}") from error
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if version not in versions:
        what_to_do = f"bench upgrade {folder}" if version == 2 else "read it with the version that wrote it"
        raise ResultsError(f"{path}: is of format {version}, this version reads format {FORMAT}; {what_to_do}")
    return dict(manifest)


def read_records(folder: Path) -> Iterator[TrialRecord | SessionRecord]:
    """Trials and sessions in the order in which they were recorded; a trial that was run again after an error stands twice.

    A trial that was graded anew has its new grade. A truncated last line is passed over: its trial is as good as not run.
    Raises ResultsError, naming the line, for any other damage.
    """
    grades = read_grades(folder).grades
    for record in _chained(folder / TRIALS, RECORD):
        if isinstance(record, TrialRecord) and record.id in grades and record.grade:
            grade = grades[record.id]
            yield replace(record, outcome=grade.outcome, grade=grade.grade)
        else:
            yield record


def read_trials(folder: Path) -> Iterator[TrialRecord]:
    """The trials among the records."""
    return (record for record in read_records(folder) if isinstance(record, TrialRecord))


def read_sessions(folder: Path) -> Iterator[SessionRecord]:
    """When `bench run` began and ended on this folder, and how."""
    return (record for record in read_records(folder) if isinstance(record, SessionRecord))


def read_responses(folder: Path) -> Iterator[ResponseRecord]:
    """The responses in the order in which they arrived."""
    return _chained(folder / RESPONSES, RESPONSE)


@dataclass(frozen=True)
class Grades:
    """What `bench regrade` left: the grades that hold now, by trial, and how they came about."""

    grades: Mapping[str, NewGrade]
    history: tuple[Regrade, ...] = ()


def read_grades(folder: Path) -> Grades:
    """Grades made anew; none where nobody asked for any."""
    if not (folder / GRADES).exists():
        return Grades({})
    records = list(_chained(folder / GRADES, GRADE))
    history = tuple(record for record in records if isinstance(record, Regrade))
    return Grades({record.trial: record for record in records if isinstance(record, NewGrade)}, history)


def append_grades(folder: Path, records: Iterable[Regrade | NewGrade]) -> None:
    """Append grades made anew. Raises ResultsError where the folder cannot be written."""
    try:
        with ExitStack() as opened:
            file = AppendOnly(folder / GRADES, opened)
            file.repair()
            file.link = _last_link(folder / GRADES)
            for record in records:
                file.append_chained(_line(GRADE, record))
    except OSError as error:
        raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error


def read_texts(folder: Path) -> dict[str, str]:
    """Digest -> text."""
    return {line["digest"]: line["text"] for line in _texts(folder)}


def _chained(path: Path, adapter: TypeAdapter[Record]) -> Iterator[Record]:
    link = ""
    for number, line in _lines(path):
        try:
            content, link = unsealed(line, link)
            yield adapter.validate_json(content)
        except (Broken, ValidationError) as error:
            raise _damaged(path, number) from error


def _last_link(path: Path) -> str:
    """The link of a file's last line; "" where it has none."""
    link = ""
    for number, line in _lines(path):
        try:
            _, link = unsealed(line, link)
        except Broken as error:
            raise _damaged(path, number) from error
    return link


def _texts(folder: Path) -> Iterator[dict[str, str]]:
    for number, line in _lines(folder / TEXTS):
        try:
            value = json.loads(line)
            if digest_of(value["text"]) != value["digest"]:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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
    said = f"{path}: line {number} is damaged, or one before it is missing"
    return ResultsError(f"{said}; restore the file from a copy, or run again under another --name")


def _refuse_other(there: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """A folder holds the trials of one experiment by one code: name what differs."""
    for what, one, two in _what_must_agree(there, now):
        if one != two:
            said = f"{folder}: was recorded with another {what}"
            raise ResultsError(f"{said}; give --name for a folder of its own, or --set-aside to rename the old one")
    grading = {name: pack.get("graded_by") for name, pack in there.get("scenarios", {}).items()}
    grading |= {regrade.scenario: regrade.graded_by for regrade in read_grades(folder).history}
    for name, pack in now.get("scenarios", {}).items():
        if grading.get(name) != pack.get("graded_by"):
            said = f"{folder}: was graded by another version of the grader of '{name}'"
            raise ResultsError(f"{said}; make its grades anew by `bench regrade {folder.name}`, then go on")


def _what_must_agree(there: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """(what, there, now). More repetitions of the same experiment belong into the same folder."""
    one, two = (
        {key: value for key, value in _plain(manifest.get("config", {})).items() if key != "repetitions"}
        for manifest in (there, now)
    )
    yield "config", one, two
    yield "version of the code of bench", there.get("code", {}).get("digest"), now.get("code", {}).get("digest")
    for what, key, part in (
        ("version of the architecture", "architectures", lambda value: value),
        ("version of what is asked by the scenario", "scenarios", lambda pack: pack.get("asked")),
        ("version of the reference, which answers here, of the scenario", "scenarios", lambda pack: pack.get("reference")),
        ("version of the settings of the model", "models", _plain),
    ):
        for name in sorted({*there.get(key, {}), *now.get(key, {})}):
            one, two = (manifest.get(key, {}).get(name) for manifest in (there, now))
            yield f"{what} '{name}'", one and part(one), two and part(two)


def _plain(value: object) -> Any:
    return json.loads(json.dumps(value, default=str))


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
