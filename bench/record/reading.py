"""Read the files of a run's folder. Nothing here writes.

Each reader raises ResultsError, which names file and line, for damage. A last line that a kill cut short is ignored.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from bench.common.bounds import validate
from bench.common.digests import digest_of
from bench.common.errors import ResultsError
from bench.common.wording import first_violation
from bench.record.chain import BrokenChain, unseal
from bench.record.ended import EndedTrials
from bench.record.files import GRADES, MANIFEST, RESPONSES, TEXTS, TRIALS, damage_error, holds, lines_of, manifest_bytes
from bench.record.manifest import Manifest, OtherFormat, manifest_in
from bench.record.record import GRADE, RECORD, RESPONSE, NewGrade, Regrade, ResponseRecord, SessionRecord, TrialRecord

Record = TypeVar("Record")
ID = b'{"id":"'


def read_manifest(folder: Path) -> Manifest:
    """Return the run's manifest. Raises ResultsError if the folder contains no run, or a run of another format."""
    path = folder / MANIFEST
    try:
        return manifest_in(manifest_bytes(folder))
    except FileNotFoundError as error:
        raise _no_run(folder) from error
    except OtherFormat as other:
        raise ResultsError(f"{path}: {other}") from other
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: cannot be read: {error}; restore the file from a copy") from error


def are_probes(*folders: Path) -> bool:
    """Whether the folders are probes. Raises ResultsError for a folder without a run, and if only some are probes."""
    probes = [folder for folder in folders if read_manifest(folder).probe]
    if probes and len(probes) < len(folders):
        raise ResultsError(f"{probes[0]}: is a probe, and not every run here is; give probes alone")
    return bool(probes)


def _no_run(folder: Path) -> ResultsError:
    return ResultsError(f"{folder}: holds no run (no {MANIFEST}); name a folder that `bench run` wrote")


def read_records(folder: Path, only: Container[str] | None = None) -> Iterator[TrialRecord | SessionRecord]:
    """Yield the records of trials and sessions in the order of recording. A trial that was run again after an error comes
    twice. A trial that was graded again has its new grade.

    If `only` is given, other trials are not parsed; only their chain is checked. A truncated last line is ignored: its trial
    counts as not run. Raises ResultsError if the folder holds no run, and, with the line, for any other damage.
    """
    if not holds(folder, MANIFEST):
        raise _no_run(folder)
    wanted = None if only is None else partial(_may_be_among, only)
    return with_grades(_ended_once(folder / TRIALS, _read_chain(folder / TRIALS, RECORD, wanted)), read_grades(folder).grades)


def _ended_once(path: Path, records: Iterable[TrialRecord | SessionRecord]) -> Iterator[TrialRecord | SessionRecord]:
    """Yield the records. Raises ResultsError for a further record of a trial that has ended without an error."""
    ended = EndedTrials()
    for record in records:
        if isinstance(record, TrialRecord):
            if record.id in ended:
                problem = f"{path}: holds another record of the trial {record.id}, which had ended"
                raise ResultsError(f"{problem}; `bench verify {path.parent}` names its line; restore the file from a copy")
            if record.outcome != "error":
                ended.add(record.id)
        yield record


def with_grades(
    records: Iterable[TrialRecord | SessionRecord], grades: Mapping[str, NewGrade]
) -> Iterator[TrialRecord | SessionRecord]:
    """Yield the records. A trial in `grades` gets its new grade."""
    for record in records:
        if isinstance(record, TrialRecord) and record.id in grades and record.grade:
            grade = grades[record.id]
            yield replace(record, outcome=grade.outcome, grade=grade.grade)
        else:
            yield record


def read_trials(folder: Path, only: Container[str] | None = None) -> Iterator[TrialRecord]:
    """Yield the trials among the records; if `only` is given, the trials with these ids."""
    trials = (record for record in read_records(folder, only) if isinstance(record, TrialRecord))
    return trials if only is None else (trial for trial in trials if trial.id in only)


def read_responses(folder: Path) -> Iterator[ResponseRecord]:
    """Yield the recorded responses in the order of their arrival."""
    return _read_chain(folder / RESPONSES, RESPONSE)


@dataclass(frozen=True)
class Grades:
    """The results of `bench more regrade`: the present grades by trial, and their history."""

    grades: Mapping[str, NewGrade]
    history: tuple[Regrade, ...] = ()


def read_grades(folder: Path) -> Grades:
    """Return the new grades of a run; empty if nothing was graded again."""
    if not holds(folder, GRADES):
        return Grades({})
    records = list(_read_chain(folder / GRADES, GRADE))
    history = tuple(record for record in records if isinstance(record, Regrade))
    return Grades({record.trial: record for record in records if isinstance(record, NewGrade)}, history)


def read_texts(folder: Path) -> dict[str, str]:
    """Return the texts of a run by digest."""
    return {line["digest"]: line["text"] for line in text_lines(folder)}


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch the garbage collector off in the block: records have no cycles, and each collection visits all objects."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _may_be_among(only: Container[str], content: bytes) -> bool:
    """Whether a line can be the record of one of these trials. A run writes a trial's id first, so the line need not be
    parsed."""
    if not content.startswith(ID):
        return True
    name = content[len(ID) : content.find(b'"', len(ID))]
    return b"\\" in name or name.decode("utf-8", "replace") in only


def _read_chain(path: Path, adapter: TypeAdapter[Record], wanted: Callable[[bytes], bool] | None = None) -> Iterator[Record]:
    """Yield the wanted records of a chained file. Raises ResultsError for a line that is damaged or that no run writes."""
    link = ""
    for number, line in lines_of(path):
        try:
            content, link = unseal(line, link)
            if wanted is None or wanted(content):
                yield validate(adapter, content)
        except BrokenChain as error:
            raise damage_error(path, number) from error
        except ValidationError as error:
            problem = f"{path}: line {number} holds what no run writes: {first_violation(error).line}"
            raise ResultsError(f"{problem}; restore the file from a copy") from error


def text_lines(folder: Path) -> Iterator[dict[str, str]]:
    """Yield {"digest": ..., "text": ...} for each text of a run. Raises ResultsError for a damaged line."""
    for number, line in lines_of(folder / TEXTS, sparse=0):
        try:
            yield text_of_line(line)
        except ValueError as error:
            raise damage_error(folder / TEXTS, number) from error


def text_of_line(line: bytes) -> dict[str, str]:
    """Return {"digest": ..., "text": ...} from a line. Raises ValueError if the text does not fit its digest."""
    try:
        value: dict[str, str] = json.loads(line)
        if digest_of(value["text"]) != value["digest"]:
            raise ValueError("the text does not fit its digest")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("is not a text with its digest") from error
    return value
