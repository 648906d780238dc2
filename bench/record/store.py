"""Write a run's folder. Files are append-only, so that a kill at any moment loses no response.

manifest.json    the run's config, code, packages, machine, models and packs; written once
trials.jsonl     one line for each session and trial, each written whole in one call
responses.jsonl  one line for each response, written as it arrives: a trial that is killed need not ask again
texts.jsonl      {"digest": ..., "text": ...}: each prompt and reply once; texts are written before the records that name them
grades.jsonl     new grades from `bench more regrade` after the run; most runs have none

Each line of trials, responses and grades is chained to the line before it (`bench.record.chain`); a digest names each text.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, SchemaSerializer

from bench.common.errors import ResultsError, whole_text
from bench.common.files import opened, remove_unfinished, write_whole
from bench.record.agreement import RecordedByOtherCode, refuse_other
from bench.record.archive import archive_of, refuse_archived
from bench.record.ended import EndedTrials
from bench.record.files import GRADES, MANIFEST, RESPONSES, TEXTS, TRIALS, AppendOnly, last_link, refuse_link
from bench.record.manifest import Manifest, manifest_in
from bench.record.reading import read_manifest, read_trials, text_lines
from bench.record.record import (
    GRADE,
    RECORD,
    RESPONSE,
    ClosingMark,
    NewGrade,
    Regrade,
    ResponseRecord,
    SessionRecord,
    TrialRecord,
)


class RunWriter:
    """Appends to a run's folder, which it creates if there is none. Raises ResultsError if it cannot.

    repaired   the names of the files whose half-written last line was cut off
    ended      the places of the trials that had ended before the folder was opened, without an error
    trials     the number of trials that are recorded now
    """

    def __init__(self, folder: Path, manifest: Manifest, goes_on: bool = False):
        """Open a run.

        Args:
            folder: The run's folder.
            manifest: The manifest that the present code would write.
            goes_on: Whether other code than the code that recorded the run may continue it. The run's manifest then says so.

        Raises:
            RecordedByOtherCode: The folder holds the same experiment by other code, and `goes_on` is false.
            ResultsError: The folder holds another experiment, cannot be written, or is being written to.
        """
        self.folder = folder
        with ExitStack() as opened:
            try:
                refuse_link(folder)
                refuse_archived(folder)
                folder.mkdir(parents=True, exist_ok=True)
                self._trials, self._texts, self._responses = (
                    AppendOnly(folder / name, opened) for name in (TRIALS, TEXTS, RESPONSES)
                )
                _lock(self._trials)
                remove_unfinished(folder)
                self._write_manifest(manifest, goes_on)
            except OSError as error:
                raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error
            files = (self._trials, self._texts, self._responses)
            self.repaired = [file.path.name for file in files if file.repair()]
            self._failed = set[str]()
            self.ended: Collection[str] = EndedTrials(self._ended_places()) if self._trials.size else ()
            self.trials = len(self.ended) + len(self._failed)
            self._trials.link = last_link(folder / TRIALS)
            self._responses.link = last_link(folder / RESPONSES)
            self._known = {line["digest"] for line in text_lines(folder)}
            self._opened = opened.pop_all()

    def _write_manifest(self, manifest: Manifest, goes_on: bool) -> None:
        """Write the manifest of a new run. For an existing run, check that the experiment can continue in it, and add new
        labels; if other code continues it (`goes_on`), note that code."""
        path = self.folder / MANIFEST
        if path.exists():
            present = manifest_in(_text_of(manifest, self.folder))  # as it would be read from its file: null is a value there
            recorded = read_manifest(self.folder)
            updated = recorded.with_labels_of(present)
            try:
                refuse_other(recorded, present, self.folder)
            except RecordedByOtherCode:
                if not goes_on:
                    raise
                updated = updated.continued_by(present, sum(1 for _ in read_trials(self.folder)))
            if updated != recorded:
                write_manifest(self.folder, updated)
            return
        if self._trials.size:
            raise ResultsError(f"{path}: is missing beside recorded trials; put it back, or give --name")
        write_manifest(self.folder, manifest)

    def _ended_places(self) -> Iterator[str]:
        """Yield the place of each recorded trial that ended without an error, and note the places of failed trials."""
        for record in read_trials(self.folder):
            if record.outcome == "error":
                self._failed.add(record.place)
            else:
                self._failed.discard(record.place)
                yield record.place

    def add(self, record: TrialRecord, texts: Mapping[str, str]) -> None:
        """Append a trial, its new texts first."""
        self.add_texts(texts)
        self._trials.append_chained(_trial_line(record))
        self.trials += record.place not in self._failed

    def add_texts(self, texts: Mapping[str, str]) -> None:
        """Append these texts, by digest, except those that the run has already."""
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
        """Append the record of a session's beginning or end."""
        self._trials.append_chained(_line(RECORD, session))

    @property
    def mark(self) -> ClosingMark:
        """The closing mark of the run's present content."""
        return ClosingMark(self.trials, self._responses.link)

    def close(self) -> None:
        self._opened.close()

    def remove_if_empty(self) -> None:
        """Remove the folder if no response and no trial was recorded, for instance because the key is missing."""
        if not (self.trials or self._responses.size or self._texts.size):
            for name in (TRIALS, TEXTS, RESPONSES, MANIFEST):
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # of a folder in which something else lies
                self.folder.rmdir()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """A context in which a run's folder is locked. Raises ResultsError if another process is writing to it."""
    with ExitStack() as opened:
        try:
            file = AppendOnly(folder / TRIALS, opened)
        except OSError as error:
            raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error
        _lock(file)
        yield


def is_written(folder: Path) -> bool:
    """Whether another process is writing to a run now."""
    if archive_of(folder):
        return False
    with opened(folder / TRIALS) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest whole or not at all. Raises ResultsError if it could not be read again."""
    write_whole(folder / MANIFEST, _text_of(manifest, folder))


def _text_of(manifest: Manifest, folder: Path) -> bytes:
    """Return the manifest's text. Raises ResultsError if it could not be read again."""
    text = manifest.text.encode(errors="surrogatepass")
    try:
        manifest_in(text)
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{folder / MANIFEST}: could not be read again: {error}; change it in the config") from error
    return text


def append_grades(folder: Path, records: Iterable[Regrade | NewGrade]) -> None:
    """Append new grades. Raises ResultsError if the folder cannot be written."""
    try:
        with ExitStack() as opened:
            file = AppendOnly(folder / GRADES, opened)
            file.repair()
            file.link = last_link(folder / GRADES)
            try:
                for record in records:
                    file.append_chained(_line(GRADE, record))
            finally:
                if not file.size:  # without a grade, the run was not graded anew
                    (folder / GRADES).unlink()
    except OSError as error:
        raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error


def set_aside(folder: Path) -> Path:
    """Rename a run's folder, so that its name is free. Return the new path. Raises ResultsError if another process is writing
    to it."""
    with writing(folder):
        number = 1
        while os.path.lexists(other := folder.with_name(f"{folder.name}.{number}")):
            number += 1
        folder.rename(other)
    return other


def _lock(trials: AppendOnly) -> None:
    """Lock a run's folder. The kernel releases the lock however the process ends, so no lock is ever left behind."""
    folder = trials.path.parent
    try:
        fcntl.flock(trials.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ResultsError(f"{folder}: another bench run is writing here; wait for it, or give --name") from error
    if not trials.is_where_it_was:
        raise ResultsError(f"{folder}: was renamed by another bench run just now; run the same command again")


def _trial_line(record: TrialRecord) -> bytes:
    """Return a trial's line. Each event is written by the serializer of its own type: pydantic's serializer of the union takes
    twice as long."""
    try:
        rest = _serializer(TrialRecord).to_json(record, exclude={"events"})
        kinds = map(type, record.events)
        events = b",".join([_serializer(kind).to_json(event) for kind, event in zip(kinds, record.events, strict=True)])
    except PydanticSerializationError:
        return _line(RECORD, record)
    return rest[:-1] + b',"events":[' + events + b"]}"


@cache
def _serializer(kind: type) -> SchemaSerializer:
    return TypeAdapter(kind).serializer


def _line(adapter: TypeAdapter[Any], record: object) -> bytes:
    """Return a record's line. A text from outside can contain half of a surrogate pair, which is replaced, so that the record
    can be written."""
    try:
        return adapter.serializer.to_json(record)
    except PydanticSerializationError:
        return whole_text(json.dumps(adapter.dump_python(record, mode="json"), ensure_ascii=False)).encode()
