"""Digests of what a run's frames hold: of each column, and of each trial's outcome, ledger, receipts, world and seconds.

Ids are digested by where they are equal, not by what they are, and framework seconds not at all.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from golden.renames import COLUMNS, FRAMES, VALUES

CELL = ("scenario", "fault")
IN_CELL = ("architecture", "model", "instance", "repetition")
IDS = ("trial", "digest")
MEASURED_ANEW = ("framework_seconds", "latency_seconds")
"""Columns of trials with real seconds of the machine that ran them."""
LEDGER = ("tokens", "retry_tokens", "useful", "rejected", "superseded", "redundant", "lost", "judging")
BOOKED = ("call", "subtask", "attempt", "sample", "try", "cause", "caused_by", "account", "tokens_in", "tokens_out", "failure")
PLANNED = ("number", "point", "effect", "subtask", "attempt", "call", "planned")
RECEIPT = (*PLANNED, "delivered", "not_applicable", "impact", "detected", "ended")
DAMAGE = ("lost", "doubled", "orphaned", "unauthorised", "uncompensated", "stale", "late")
ACTED = ("tool", "effect", "try", "outcome", "code", "life", "day", "minute", "changed")
ASPECTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "outcome": {"trials": ("outcome", "score")},
    "ledger": {"trials": LEDGER, "calls": BOOKED},
    "receipts": {"faults": RECEIPT},
    "world": {"trials": (*(f"damage_{kind}" for kind in DAMAGE), "lives"), "tool_calls": ACTED},
    "seconds": {"trials": ("api_seconds", "waiting_seconds")},
}
"""What is kept of each trial: the columns of which frames."""
BYTES_A_TRIAL, BYTES_A_COLUMN = 2, 4

Key = tuple[str, ...]
"""The values of CELL and IN_CELL."""
Texts = Mapping[str, Mapping[str, Sequence[str]]]
"""Frame -> column -> its values as text."""


@dataclass(frozen=True)
class Digests:
    """What is compared.

    cells     cell -> aspect -> the digests of its trials, one after another
    trials    cell -> the names of these trials
    columns   frame -> column -> digest; `rows` is the number of rows
    """

    cells: Mapping[str, Mapping[str, str]]
    trials: Mapping[str, Sequence[str]] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def kept(self) -> dict[str, Any]:
        """The part of the digests that the golden file has."""
        return {"cells": self.cells} | ({"columns": self.columns} if self.columns else {})


def of_trials(frames: Mapping[str, pd.DataFrame]) -> Digests:
    """Return the digests of each trial of a run."""
    texts = _texts_of(frames)
    trials = dict.fromkeys(_keys(texts["trials"]))
    return by_cell({aspect: _by_trial(texts, parts, trials) for aspect, parts in ASPECTS.items()})


def of_run(frames: Mapping[str, pd.DataFrame]) -> Digests:
    """Return the digests of each trial of a run, and of each column of its frames."""
    columns = {
        frame: {"rows": str(len(values["trial"]))}
        | {name: digest("\0".join(column), BYTES_A_COLUMN) for name, column in values.items() if name not in MEASURED_ANEW}
        for frame, values in _texts_of(frames).items()
    }
    trials = of_trials(frames)
    return Digests(trials.cells, trials.trials, columns)


def by_cell(aspects: Mapping[str, Mapping[Key, str]]) -> Digests:
    """Digest texts about trials, by aspect. An aspect of which no trial of a cell has anything is left out."""
    cells: dict[str, dict[str, str]] = {}
    names: dict[str, list[str]] = {}
    for aspect, texts in aspects.items():
        by: dict[str, list[Key]] = {}
        for key in sorted(texts, key=lambda key: (*key[:-1], int(key[-1] or 0))):
            by.setdefault(" | ".join(key[: len(CELL)]), []).append(key)
        for cell, keys in by.items():
            names[cell] = [" | ".join(filter(None, key[len(CELL) :])) for key in keys]
            kept = cells.setdefault(cell, {})
            if any(texts[key] for key in keys):
                kept[aspect] = "".join(digest(texts[key], BYTES_A_TRIAL) for key in keys)
    return Digests(cells, names)


def digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def _texts_of(frames: Mapping[str, pd.DataFrame]) -> Texts:
    """Return the values of the frames that have rows, in the golden file's words, by trial."""
    digests = {}
    for frame_name, frame in frames.items():
        if len(frame):
            known = frame.rename(columns=COLUMNS)
            ordered = known.sort_values([column for column in (*CELL, *IN_CELL) if column in known], kind="stable")
            digests[FRAMES.get(frame_name, frame_name)] = {
                str(name): _texts(values, str(name)) for name, values in ordered.items()
            }
    return digests


def _texts(values: Iterable[Any], column: str) -> list[str]:
    if column in IDS:
        seen: dict[str, str] = {}
        return [seen.setdefault(str(value), str(len(seen))) for value in values]
    before = VALUES.get(column, {})
    return [before.get(text, text) for text in map(_text, values)]


def _text(value: Any) -> str:
    """Return a value as text, the same whatever type holds it: 3, 3.0 and an Int64 are equal, and so is all that is missing."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.9g}" if isinstance(value, float) and abs(value) < 1e9 else str(value)


def _rows(columns: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[Key]:
    """Return the rows of these columns, with "" for a column that is missing."""
    missing = [""] * len(next(iter(columns.values())))
    return list(zip(*(columns.get(name, missing) for name in names), strict=True))


def _keys(columns: Mapping[str, Sequence[str]]) -> list[Key]:
    return _rows(columns, (*CELL, *IN_CELL))


def _by_trial(texts: Texts, parts: Mapping[str, Sequence[str]], trials: Iterable[Key]) -> dict[Key, str]:
    """Return what these columns say of each trial; "" where they say nothing."""
    rows_of: dict[Key, list[str]] = {trial: [] for trial in trials}
    for frame, columns in parts.items():
        if of := texts.get(frame):
            for key, row in zip(_keys(of), _rows(of, columns), strict=True):
                rows_of.setdefault(key, []).extend(["\0".join(row)] if any(row) else [])
    return {trial: "\n".join(rows) for trial, rows in rows_of.items()}
