"""Check a run's folder for defects: lines that were changed, lost, doubled or moved.

Each line has the digest of the line before it, so the first changed line is found. Comparing the files finds more: each trial
names its texts and calls, and the last session of a complete run has the number of trials. A text is identified by its digest,
so the order of texts is free. A forger can compute all digests anew, but then they differ from the digests that the report of
the run prints (`sources`).
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bench.common.bounds import validate
from bench.common.digests import digest_of_file
from bench.common.errors import ResultsError
from bench.common.wording import first_violation
from bench.record.archive import MEMBERS
from bench.record.chain import DIGEST, BrokenChain, link_of, seal, unseal
from bench.record.events import Called, Committed, of_kind
from bench.record.files import GRADES, MANIFEST, RESPONSES, TEXTS, TRIALS, holds, lines_of, link_at_end, manifest_bytes, opened
from bench.record.graded import contradiction, misplaced_grades, missing_parts_of_answer
from bench.record.manifest import Manifest
from bench.record.messages import StoredMessage
from bench.record.reading import read_manifest, text_of_line, with_grades, without_collector
from bench.record.record import GRADE, RECORD, RESPONSE, NewGrade, ResponseRecord, SessionRecord, TrialRecord

MAX_DEFECTS = 20
"""The most defects of one kind that are listed, and the number of broken lines after which a file is not read further."""
LISTED, SEARCHED, A_LINK = 2**20, 2**30, 2**10
"""Bounds of the search for the places of a file's broken lines: the most lines that are searched, and the most bytes that are
digested. Each link that is tried counts as A_LINK further bytes."""
CHAINED: Mapping[str, TypeAdapter[Any]] = {TRIALS: RECORD, RESPONSES: RESPONSE, GRADES: GRADE}
SEAL = re.compile(rb',"chain":"[^"]*"}\n$')
Lines = Iterable[tuple[int, Any]]
"""Records, each with the number of its line."""


@dataclass(frozen=True)
class Defect:
    """A defect in a run's files. `line` is None if the defect concerns a whole file."""

    path: Path
    line: int | None
    what: str

    @property
    def text(self) -> str:
        return f"{self.path}: {f'line {self.line} ' if self.line else ''}{self.what}"


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    trials   the number of trials; `records` is the number of their records: a trial that was run again has several
    ending   how the last session ended; `complete` if all planned trials are there
    has_end  false if the last session has no end, as after a kill or if lines were cut off
    """

    trials: int
    records: int
    responses: int
    texts: int
    defects: tuple[Defect, ...]
    ending: str
    has_end: bool


@without_collector()
def verify(folder: Path) -> Checked:
    """Check all files of a run.

    Raises:
        ResultsError: The folder holds no run of this format.
    """
    deque(check := RunCheck(folder), maxlen=0)
    return check.checked


@without_collector()
def require_sound(folder: Path) -> None:
    """Raise ResultsError if a run has a defect, with the first defect and the command that names the others."""
    deque(sound_records(folder), maxlen=0)


def sound_records(folder: Path) -> Iterator[TrialRecord | SessionRecord]:
    """Yield the records of a run while all its files are checked. After the last record, raise ResultsError as `require_sound`
    does."""
    yield from (check := RunCheck(folder))
    if defects := check.checked.defects:
        more = f"{len(defects) - 1} more by" if len(defects) > 1 else "see"
        raise ResultsError(f"{defects[0].text}; {more} `bench verify {folder}`; restore the file from a copy")


class RunCheck:
    """Checks all files of a run while its records are read. Iterating over it yields the readable records, each trial with its
    present grade. Only the keys of records, responses and texts stay in memory.

    checked   the result of the check, after the last record was read

    Raises ResultsError if the folder holds no run of this format.
    """

    checked: Checked

    def __init__(self, folder: Path):
        self._folder, self._manifest = folder, read_manifest(folder)

    def __iter__(self) -> Iterator[TrialRecord | SessionRecord]:
        """Yield the records of the run; check all its files meanwhile, and set `checked` after the last record."""
        folder = self._folder
        files = {name: _Chain(folder / name, adapter) for name, adapter in CHAINED.items()}
        graded = list(files[GRADES].read()) if holds(folder, GRADES) else []
        grades = {grade.trial: grade for _, grade in graded if isinstance(grade, NewGrade)}
        texts = _Texts(folder / TEXTS)
        trials = _Trials(folder / TRIALS, self._manifest, texts)
        yield from with_grades(trials.pass_on(files[TRIALS].read()), grades)
        files[RESPONSES].sought = trials.marked
        kept, responses, defects = set[int](), 0, Defects()
        for number, response in files[RESPONSES].read():
            responses += 1
            if trials.silent and (line := trials.silent.get(_place(response))):
                defects.add(folder / RESPONSES, number, f"is of the trial in line {line} of {TRIALS}, which has no call")
            kept.add(_reply_key(response, response.reply, response.messages))
            texts.look_for(_digests_named(response), number, RESPONSES)
        parts: list[_Chain | _Texts] = [*files.values(), texts]
        for part in parts:
            defects.update(part.defects)
        if not any(part.is_cut for part in parts):  # what was not read is not lost
            self._compare(defects, files[RESPONSES].sought, kept, trials, texts)
        defects.update(trials.defects)
        for misplacement in misplaced_grades(graded, trials.scenarios):
            defects.add(folder / GRADES, *misplacement)
        self.checked = Checked(
            trials.places,
            trials.count,
            responses,
            len(texts.known),
            tuple(defects.as_list),
            *_ending(trials.session, trials.is_last, responses),
        )

    def _compare(self, defects: Defects, sought: str, kept: Container[int], trials: _Trials, texts: _Texts) -> None:
        """Add the defects that only a comparison of the files shows: trials, responses or texts that another file names and
        that are missing."""
        folder = self._folder
        for number, lost in trials.unlike_mark:
            defects.add(folder / TRIALS, number, lost)
        if sought:
            defects.add(folder / RESPONSES, None, "lacks responses that were there when the run was complete")
        for lack in trials.lost_responses(kept):
            defects.add(folder / RESPONSES, None, lack)
        for text in texts.missing_texts():
            defects.add(folder / TEXTS, None, text)


def whole_digest(folder: Path) -> str:
    """Return the digest of all files of a run, for its author to publish: the SHA-256 of the output of `sha256sum`."""
    lines = []
    for name in MEMBERS:
        if holds(folder, name):
            with opened(folder / name) as file:
                lines.append(f"{digest_of_file(file)}  {name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sources(folder: Path) -> str:
    """Return the digests of the files from which numbers are made, as text: of the manifest, and the last links of the trials
    and of the new grades, each of which covers all lines before it. The lines are checked when they are read, not here."""
    digests = {MANIFEST: hashlib.blake2b(manifest_bytes(folder), digest_size=10).hexdigest()}
    digests |= {name: link_at_end(folder / name) for name in (TRIALS, GRADES) if holds(folder, name)}
    return ", ".join(f"{name} {digest}" for name, digest in digests.items())


class Defects:
    """A collection of defects. At most MAX_DEFECTS of each file and kind are kept, and the others are counted: a file from
    outside can have any number."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Path, str], list[Defect]] = {}
        self._more = Counter[tuple[Path, str]]()

    def add(self, path: Path, line: int | None, what: str) -> None:
        """Keep a defect, or count it if MAX_DEFECTS of its kind are kept. The first word of `what` is the kind."""
        kind = path, what.split(" ", maxsplit=1)[0]
        kept = self._kinds.setdefault(kind, [])
        if len(kept) < MAX_DEFECTS:
            kept.append(Defect(path, line, what))
        else:
            self._more[kind] += 1

    def update(self, other: Defects) -> None:
        """Add all defects of another collection."""
        for kept in other._kinds.values():
            for defect in kept:
                self.add(defect.path, defect.line, defect.what)
        self._more += other._more

    @property
    def as_list(self) -> Iterator[Defect]:
        """The defects by kind. The last defect of a kind says how many were left out."""
        for kind, kept in self._kinds.items():
            more = self._more[kind]
            yield from kept[:-1]
            yield replace(kept[-1], what=f"{kept[-1].what}; and {more} more such") if more else kept[-1]


class _Chain:
    """Reads a chained file and collects the defects in its lines. `sought` is a link that one of its lines must have; "" once
    it is found. Reading stops after MAX_DEFECTS broken lines; `is_cut` says whether it stopped before the file's end."""

    def __init__(self, path: Path, adapter: TypeAdapter[Any]):
        self.path, self.sought, self.defects, self.is_cut = path, "", Defects(), False
        self._adapter, self._broken_lines = adapter, 0

    def read(self) -> Iterator[tuple[int, Any]]:
        """Yield the readable records, each with the number of its line."""
        link: str | None = ""
        for (number, line), (_, following) in pairwise(chain(lines_of(self.path), [(0, b"")])):
            if self._broken_lines == MAX_DEFECTS:
                self.is_cut = True
                self.defects.add(self.path, number, "and all behind it were not checked: too many before it are broken")
                return
            if self.sought and link_of(line) == self.sought:
                self.sought = ""
            link, record = self._follow(number, line, link, following)
            if record is not None:
                yield number, record

    @cached_property
    def _places(self) -> _Places:
        return _Places(self.path)

    def _follow(self, number: int, line: bytes, link: str | None, following: bytes) -> tuple[str | None, Any]:
        """Read a line. Return the link that the next line must follow, None if a broken line does not show it; and the line's
        record, None if it has no valid record."""
        try:
            if link is None:
                raise BrokenChain
            content, seal = unseal(line, link)
        except BrokenChain:
            if 0 < (before := self._places.first(line)) < number:
                self._say(number, f"appears twice: it is line {before} again")
                return link, None
            record = self._read(_content(line))
            if link is None and record is not None:  # the line that it follows is gone
                return link_of(line), record
            what, again = self._break_of(line, link or "", following)
            self._say(number, what if record is not None else "was changed: it is not a record any more")
            return again if SEAL.search(line) else None, record
        if (record := self._read(content)) is None:
            self._say(number, f"holds what no run writes: {self._violation}")
        return seal, record

    def _read(self, content: bytes) -> Any:
        """Return the record in a line; None, and note what is wrong, if the line has no valid record."""
        try:
            return validate(self._adapter, content)
        except ValidationError as error:
            self._violation = first_violation(error).line
            return None

    def _break_of(self, line: bytes, link: str, following: bytes) -> tuple[str, str]:
        """Return what happened to a line that does not follow the line before it, and the link that the next line must
        follow."""
        if (place := self._places.before(line)) is not None:
            return f"is in another place: {f'it belongs behind line {place}' if place else 'it is the first one'}", link_of(
                line
            )
        again = seal(_content(line), link)[1]
        if _follows(following, again):
            return "was changed: its link is another", again
        return "was changed, or lines before it are lost", link_of(line)

    def _say(self, number: int, what: str) -> None:
        self._broken_lines += 1
        self.defects.add(self.path, number, what)


class _Places:
    """The hash and the link of each of the first LISTED lines of a file, by which the place of a line is found. A million
    lines take 18 MB."""

    def __init__(self, path: Path):
        self._hashes, self._links, self._left = array("q"), bytearray(), SEARCHED
        for _, line in islice(lines_of(path), LISTED):
            self._hashes.append(hash(line))
            self._links += link_of(line).encode()[:DIGEST].ljust(DIGEST)

    def first(self, line: bytes) -> int:
        """Return the number of the first line with the same bytes; 0 if the file has none."""
        with suppress(ValueError):
            return self._hashes.index(hash(line)) + 1
        return 0

    def before(self, line: bytes) -> int | None:
        """Return the number of the line after which a line belongs, 0 if it is the first line; None if none was found."""
        if not SEAL.search(line):
            return None
        for place, start in enumerate(range(-DIGEST, len(self._links), DIGEST)):
            self._left -= len(line) + A_LINK
            if self._left < 0:
                return None
            if _follows(line, self._links[start : start + DIGEST].decode("ascii", "replace") if place else ""):
                return place
        return None


class _Trials:
    """Collects what must be known of the trials and sessions of a run for its check, while their records are read.

    count         the number of trial records
    scenarios     trial -> its scenario
    session       the last session record; `is_last` if no trial follows it
    marked        the link of the last response when the run was complete; "" if it never was
    unlike_mark   (line, text) for each mark of a complete run that has another number of trials than the file
    silent        the place of each ended trial without a call -> its line
    defects       the defects of trials that contradict themselves, the manifest, or earlier trials
    """

    def __init__(self, path: Path, manifest: Manifest, texts: _Texts):
        self.count, self.scenarios, self.defects = 0, dict[str, str](), Defects()
        self._path, self._config, self._packs = path, manifest.config, manifest.scenarios
        self._ended, self._places = dict[str, int](), dict[str, bool]()
        """Trial -> the line in which it ended; place in the run -> whether another trial can still stand there."""
        self._goes_on = bool(manifest.other_code)
        self.session: SessionRecord | None = None
        self.is_last, self.marked = False, ""
        self.unlike_mark: list[tuple[int, str]] = []
        self.silent: dict[int, int] = {}
        self._texts, self._replies, self._lines = texts, array("q"), array("q")

    def pass_on(self, lines: Lines) -> Iterator[TrialRecord | SessionRecord]:
        """Note each record, and yield it."""
        for number, record in lines:
            self.is_last = isinstance(record, SessionRecord)
            if isinstance(record, SessionRecord):
                self._note_session(number, record)
            else:
                self._note_trial(number, record)
            yield record

    @property
    def places(self) -> int:
        """The number of trials, however often each was run."""
        return len(self._places)

    def lost_responses(self, kept: Container[int]) -> Iterator[str]:
        """Yield in words the trials some of whose replies have no response. A reply that came from an earlier run needs
        none."""
        lost = Counter(number for number, reply in zip(self._lines, self._replies, strict=True) if reply not in kept)
        for number, count in lost.items():
            yield f"lacks {count} responses of the trial in line {number} of {TRIALS}"

    def _note_session(self, number: int, session: SessionRecord) -> None:
        """Note a session. If it says that the run is complete, compare its number of trials with the trials before it."""
        self.session = session
        if session.mark:
            self.marked = session.mark.responses
            if lost := session.mark.trials - len(self._places):
                amount = f"{lost} of them are lost" if lost > 0 else f"{-lost} more stand before it"
                what = f"says that the run is complete with {session.mark.trials} trials: {amount}"
                self.unlike_mark.append((number, what))

    def _note_trial(self, number: int, trial: TrialRecord) -> None:
        """Add the defects of a trial, and note its texts and replies for the comparison with other files."""
        for wrong in self._wrong(trial):
            self.defects.add(self._path, number, wrong)
        self.count += 1
        self.scenarios[trial.id] = trial.scenario
        if trial.outcome != "error":
            self._ended.setdefault(trial.id, number)
            if not of_kind(trial.events, Called):
                self.silent[_place(trial)] = number
        self._texts.look_for(_digests_named(trial), number, TRIALS)
        for call in of_kind(trial.events, Called):
            if call.asked and call.reply and not call.failure:
                self._replies.append(_reply_key(trial, call.reply, call.messages))
                self._lines.append(number)

    def _wrong(self, trial: TrialRecord) -> Iterator[str]:
        """Yield the defects of a trial: contradictions in itself, with the manifest and with earlier trials."""
        if wrong := contradiction(trial):
            yield wrong
        spent = sum(call.tokens_in + call.tokens_out for call in of_kind(trial.events, Called))
        if spent != trial.tokens:
            yield f"contradicts itself: it says {trial.tokens} tokens, and its calls have {spent}"
        yield from missing_parts_of_answer(trial)
        if ended := self._ended.get(trial.id):
            yield f"is another record of the trial {trial.id}, which had ended in line {ended}"
        elif trial.id not in self.scenarios:
            known, pack = self._config, self._packs.get(trial.scenario)
            names = trial.architecture in known.architectures, trial.model in known.models, trial.plan in known.plans
            if not (pack and trial.instance in pack.instances and all(names)):
                yield f"is a trial that {MANIFEST} does not name"
            elif not self._places.get(trial.place, True):
                yield "is a second trial of what an earlier line did: a run has one of each repetition"
        self._places[trial.place] = trial.outcome == "error" and self._goes_on  # other code runs it again, under another id


class _Texts:
    """Reads the file of texts: their digests, the defects in its lines, and the texts that records name and that are missing.
    Reading stops after MAX_DEFECTS; `is_cut` says whether it stopped before the file's end."""

    def __init__(self, path: Path):
        self.known: dict[str, int] = {}
        self.defects, self.is_cut, broken = Defects(), False, 0
        self._missing: dict[str, tuple[int, str]] = {}
        for number, line in lines_of(path, sparse=0):
            if broken == MAX_DEFECTS:
                self.is_cut = True
                self.defects.add(path, number, "and all behind it were not checked: too many before it are broken")
                return
            try:
                digest = text_of_line(line)["digest"]
            except ValueError:
                broken += 1
                self.defects.add(path, number, "was changed: its text does not fit its digest")
                continue
            if self.known.setdefault(digest, number) < number:
                broken += 1
                self.defects.add(path, number, f"appears twice: its text is that of line {self.known[digest]}")

    def look_for(self, digests: Iterable[str | None], number: int, file: str) -> None:
        """Note which of these texts, which a line of a file names, are missing."""
        for digest in digests:
            if digest and digest not in self.known:
                self._missing.setdefault(digest, (number, file))

    def missing_texts(self) -> Iterator[str]:
        """Yield the texts that a record names and that are missing."""
        for digest, (number, file) in self._missing.items():
            yield f"lacks the text {digest}, which line {number} of {file} names"


def _content(line: bytes) -> bytes:
    """Return a line without its link, right or wrong."""
    return SEAL.sub(b"}", line)


def _follows(line: bytes, link: str) -> bool:
    """Whether a line follows a line with this link."""
    try:
        unseal(line, link)
    except BrokenChain:
        return False
    return True


def _reply_key(record: TrialRecord | ResponseRecord, reply: str | None, messages: Sequence[StoredMessage]) -> int:
    """Return a number that identifies a reply. A million numbers take less memory than what they are computed from."""
    return hash((record.scenario, record.instance, record.repetition, record.arm, reply, messages))


def _place(record: TrialRecord | ResponseRecord) -> int:
    """Return a number that identifies a trial in its responses."""
    return hash((record.model, record.scenario, record.instance, record.repetition, record.arm))


def _digests_named(record: TrialRecord | SessionRecord | ResponseRecord) -> Sequence[str | None]:
    """Return the digests of the texts that a record names."""
    if isinstance(record, SessionRecord):
        return ()
    if isinstance(record, ResponseRecord):
        digests = [record.reply, record.partial, record.tool_calls, record.options, record.extra]
        return [*digests, *_in_messages(record.messages)]
    named = [record.traceback]
    for call in of_kind(record.events, Called):
        named += (call.reply, call.delivered, call.tool_calls, call.options, *_in_messages(call.messages))
    return [*named, *(commit.digest for commit in of_kind(record.events, Committed))]


def _in_messages(messages: Iterable[StoredMessage]) -> Sequence[str | None]:
    return [digest for message in messages for digest in (message.content, message.tool_calls, message.extra)]


def _ending(session: SessionRecord | None, is_last: bool, responses: int) -> tuple[str, bool]:
    """Return how the last session ended: `complete`, or why it stopped; and whether its end is recorded. A response is only
    written in a session, so responses without a session show that lines were lost."""
    if session is None:
        return (f"no session, but {responses} responses", False) if responses else ("no session began", True)
    if session.what == "ended" and is_last:
        return "complete" if session.mark else session.detail, True
    return f"no end: its last session began with {session.detail}", False
