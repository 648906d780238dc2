"""The data of the page's trace explorer: the events of every trial, and each text once, as compressed pieces of JSON.

A browser inflates only the pieces that the opened trial needs. Pieces are in base64, so no text of a model can be read as
markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from bench.common.errors import ResultsError
from bench.read.analysis.arms import instances_of
from bench.read.analysis.frames import Run, load_run
from bench.read.analysis.merge import records_of
from bench.read.analysis.trial import TrialReading
from bench.read.render.labels import model_label
from bench.read.report.surroundings import NoViews, ViewMaker
from bench.record.cost import Tariff
from bench.record.events import Answered, Called, Committed, Event, Faulted, Judged, Waited, of_kind
from bench.record.ledger import LedgerEntry
from bench.record.reading import read_texts
from bench.record.world_events import WorldEnded

PIECE_BYTES = 1 << 18
"""A piece is closed when its JSON has this many bytes: enough to compress well, and inflated in milliseconds."""

MAX_PACKED_CHARS = 64 << 20
"""The most characters of compressed texts in a page, and of compressed trials. Later texts and trials are left out, and the
page says so."""

LISTED_COLUMNS = (
    *("scenario", "architecture", "model", "plan", "repetition", "outcome", "tokens", "retry_tokens", "calls"),
    *("faults_planned", "faults_delivered", "latency_seconds"),
)
"""The columns of the trials' frame that the page's list of trials shows."""

CONFIG_COLUMNS = ("scenario", "architecture", "model", "plan")
"""The columns of names from the config. The page lists these names in the config's order."""

JsonObject = Mapping[str, Any]


@dataclass(frozen=True)
class PieceStore:
    """Items, packed in pieces. A piece is a JSON list of many items, compressed by zlib, in base64. `firsts` holds the number
    of the first item of each piece."""

    firsts: tuple[int, ...]
    packed: tuple[str, ...]

    @property
    def characters(self) -> int:
        """The characters of all pieces."""
        return sum(map(len, self.packed))


@dataclass(frozen=True)
class Trace:
    """The explorer's data.

    index    the columns of the page's list of trials, with the `number` of each trial in `trials`, and the `firsts` of both
             stores; packed like a piece
    trials   the trials, in the order of recording
    texts    the texts, in the order of recording
    trials_left_out, texts_left_out   how many the page has no room for (MAX_PACKED_CHARS)
    """

    index: str
    trials: PieceStore
    texts: PieceStore
    trials_left_out: int
    texts_left_out: int

    @property
    def characters(self) -> int:
        """The characters of the index and of all pieces."""
        return len(self.index) + self.trials.characters + self.texts.characters


def trace_of(run: Run, around: ViewMaker | None = None) -> Trace | None:
    """Return the data of the trace explorer: the events and texts of a run, or of all runs from which it was put together. None
    if the run was not read from a folder. Raises ResultsError if a folder can no longer be read.

    Memory holds the texts of one run at a time (of all runs if trials were in environments), and the page's data.
    """
    records = records_of(run)
    if records is None:
        return None
    folders = [part.folder for part in run.recorded if part.folder is not None]
    around = around or NoViews()
    texts = around.texts_of(run, folders)
    trace = _OpenTrace(folders, texts, around)
    views = around.views(run, texts)
    for record in records:
        trial = TrialReading(record, Tariff(run.manifest.models))
        trace.add(trial, {kind: view.json for kind, view in views.of(record).items()})
        if trace.is_cut:
            break
    return trace.closed(run)


def load_traced(path: Path) -> tuple[Run, Trace | None]:
    """Read a run, and the data of its trace explorer in the same pass.

    Args:
        path: The run's folder. All its files are checked, as by `bench verify`.

    Returns:
        The run and its trace, as `trace_of` makes it. The trace is None if only a second pass can make it: the run's frames
        came from the cache, the world of a trial is to be shown (it ended), or a trial was run again.

    Raises:
        ResultsError: The folder holds no run, is damaged, or has no recorded trial yet.
    """
    trace: _OpenTrace | None = None
    needs_second_pass = False

    def add(trial: TrialReading) -> None:
        """Add a trial to the trace, until a trial shows that a second pass is needed."""
        nonlocal trace, needs_second_pass
        needs_second_pass = needs_second_pass or bool(of_kind(trial.record.events, WorldEnded))
        if needs_second_pass:
            return
        try:
            trace = trace or _OpenTrace([path])
        except ResultsError:  # the check says what is wrong with the texts
            needs_second_pass = True
        else:
            trace.add(trial)

    run = load_run(path, check=True, also=add)
    return run, None if trace is None or needs_second_pass or run.rerun else trace.closed(run)


class _OpenTrace:
    """A trace to which trials are still added, in the order of recording. `is_cut`: whether a trial was left out for lack of
    room."""

    def __init__(
        self,
        folders: Sequence[Path],
        of_environments: Mapping[str, str] = MappingProxyType({}),
        around: ViewMaker | None = None,
    ):
        """Pack the texts of the runs in these folders. `of_environments` has the texts that can be contents of environments, by
        digest."""
        self._texts, self._text_number_of, self._texts_left_out = _packed_texts(folders, of_environments, around or NoViews())
        self._trials, self._number_of, self.is_cut = Packer(), dict[str, int](), False

    def add(self, trial: TrialReading, views: JsonObject = MappingProxyType({})) -> None:
        """Add a trial, with the views of its environments by kind. The trial is left out if the page is full."""
        if self._trials.characters >= MAX_PACKED_CHARS:
            self.is_cut = True
        else:
            self._number_of[trial.record.id] = self._trials.add(_json({**_trial(trial, self._text_number_of), **views}))

    def closed(self, run: Run) -> Trace:
        """Return the trace of the run whose trials were added."""
        if self.is_cut:
            for trial in run.rerun:  # its last record may have been left out, and an earlier record does not count
                self._number_of.pop(trial, None)
        trials = self._trials.pieces()
        index = _pack(_json(_index(run, self._number_of, trials, self._texts)))
        return Trace(index, trials, self._texts, len(run.trials) - len(self._number_of), self._texts_left_out)


def _packed_texts(
    folders: Iterable[Path], of_environments: Mapping[str, str], around: ViewMaker
) -> tuple[PieceStore, Mapping[str, int], int]:
    """Return three things: the packed texts; each text's number, by its digest; and how many texts are left out for lack of
    room. The description of a world's environment is not packed, since the page shows it separately."""
    texts, numbers, left_out = Packer(), dict[str, int](), set[str]()
    for folder in folders:
        for digest, text in read_texts(folder).items():
            if digest in numbers or (digest in of_environments and around.is_shown_otherwise(text)):
                continue
            if texts.characters < MAX_PACKED_CHARS:
                numbers[digest] = texts.add(_json(text))
            else:
                left_out.add(digest)
    return texts.pieces(), numbers, len(left_out)


def _index(run: Run, number_of: Mapping[str, int], trials: PieceStore, texts: PieceStore) -> JsonObject:
    """Return the columns of the page's list of trials. A trial that was left out has the number None. A model's label says
    whether the model is simulated or recorded."""
    labels = {model: model_label(run, model) for model in run.names("model")}
    columns = {name: run.trials[name].tolist() for name in LISTED_COLUMNS}
    trial_ids = run.trials["trial"].tolist()
    return {
        "trials": {
            "id": trial_ids,
            "number": list(map(number_of.get, trial_ids)),
            "instance": instances_of(run.trials),
            **columns,
            "model": [labels[model] for model in columns["model"]],
        },
        "names": {name: [labels.get(label, label) for label in run.names(name)] for name in CONFIG_COLUMNS},
        "firsts": {"trials": trials.firsts, "texts": texts.firsts},
    }


def _trial(trial: TrialReading, text_number_of: Mapping[str, int]) -> JsonObject:
    """Return what the page shows of one trial: its events by kind, as recorded, and each call's account.

    A text is replaced by its number, or by its digest if the page does not hold it.
    """
    record, events = trial.record, trial.record.events
    return {
        "reason": record.reason,
        "score": record.grade.score if record.grade else None,
        "note": record.grade.note if record.grade else "",
        "timing": record.timing,
        "seconds": {"api": record.api_seconds, "waiting": record.waiting_seconds, "framework": record.framework_seconds},
        "accounts": trial.accounts,
        "calls": [_call(entry, text_number_of, events) for entry in trial.entries],
        "waits": list(map(vars, of_kind(events, Waited))),
        "faults": list(map(vars, of_kind(events, Faulted))),
        "finishes": {receipt.number: receipt.finish for receipt in trial.receipts},
        "verdicts": list(map(vars, of_kind(events, Judged))),
        "versions": list(map(_version, of_kind(events, Committed))),
        "answer": [version for answered in of_kind(events, Answered) for version in answered.versions],
    }


def _call(entry: LedgerEntry, text_number_of: Mapping[str, int], events: Sequence[Event]) -> JsonObject:
    """Return what the page shows of one call. A text is replaced by its number; `because` is the failure that made the call
    necessary."""
    call = entry.call
    call_json = {
        **vars(call),
        "messages": [(message.role, text_number_of.get(message.content, message.content)) for message in call.messages],
        "reply": text_number_of.get(call.reply, call.reply) if call.reply else None,
        "delivered": text_number_of.get(call.delivered, call.delivered) if call.delivered else None,
        "account": entry.account,
        "verdict": entry.verdict,
        "because": "" if call.caused_by is None else _reason(events[call.caused_by]),
    }
    for name in ("tool_calls", "options"):
        if call_json[name] is None:
            del call_json[name]
    return call_json


def _reason(event: Event) -> str:
    """Return the failure that caused a call in words; "" if the event is no failure."""
    match event:
        case Judged():
            return f"{event.subtask} of call {event.calls[-1] if event.calls else 'none'} was rejected ({event.reason})"
        case Called():
            return f"the reply to call {event.call} was lost ({event.failure})"
        case _:
            return ""


def _version(event: Committed) -> JsonObject:
    """Return a committed version without its digests. The page shows the outputs in the replies."""
    return {
        "subtask": event.subtask,
        "version": event.version,
        "calls": event.calls,
        "verified": event.verified,
        "made_from": [(name, version) for name, version, _ in event.made_from],
    }


@dataclass
class Packer:
    """Packs items of JSON into pieces: an item goes into the open piece, which is closed and compressed when it is large
    enough. `characters` counts the characters of the closed pieces."""

    characters: int = 0
    _firsts: list[int] = field(default_factory=list)
    _packed: list[str] = field(default_factory=list)
    _open: list[bytes] = field(default_factory=list)
    _added: int = 0
    _size: int = 0

    def add(self, item: bytes) -> int:
        """Add an item and return its number, from 0."""
        self._open.append(item)
        self._added += 1
        self._size += len(item)
        if self._size >= PIECE_BYTES:
            self._close()
        return self._added - 1

    def pieces(self) -> PieceStore:
        """Close the open piece, and return all pieces."""
        if self._open:
            self._close()
        return PieceStore(tuple(self._firsts), tuple(self._packed))

    def _close(self) -> None:
        """Compress the open piece, and begin a new one."""
        self._firsts.append(self._added - len(self._open))
        self._packed.append(_pack(b"[" + b",".join(self._open) + b"]"))
        self.characters += len(self._packed[-1])
        self._open.clear()
        self._size = 0


def _json(value: object) -> bytes:
    """Return a value as JSON in ASCII, in which a surrogate without its partner survives as an escape."""
    try:
        text = to_json(value)
        return text if text.isascii() else to_json(value, ensure_ascii=True)  # escapes only if they are needed: they take time
    except PydanticSerializationError:  # a lone surrogate, which only the slower standard library accepts
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _pack(text: bytes) -> str:
    """Return a text compressed by zlib, in base64."""
    return base64.b64encode(zlib.compress(text, level=6)).decode("ascii")
