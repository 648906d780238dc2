"""What is not as the golden file has it, a line each."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from golden.adapter import ROOT
from golden.digests import BYTES_A_TRIAL, Digests
from golden.renames import DROPPED, ITEMS

FILE = ROOT / "tests" / "suite" / "golden.json.xz"
WIDTH = 2 * BYTES_A_TRIAL
SHOWN = 3
"""Trials that a line names."""
IF_RENAMED = "is gone; where it has another name now, declare that in tools/golden/renames.py"

Kept = Mapping[str, Any]
"""An item as the golden file has it."""


def read(file: Path = FILE) -> dict[str, Kept]:
    """Return the golden file: item, by its name today -> what is kept of it."""
    today = {f"{kind} {before}": f"{kind} {now}" for now, before in ITEMS.items() for kind in ("schedule", "simulation")}
    kept: dict[str, Kept] = json.loads(lzma.decompress(file.read_bytes()))
    return {today.get(name, name): item for name, item in kept.items()}


def write(kept: Mapping[str, Kept], file: Path = FILE) -> None:
    text = json.dumps(kept, indent=0, sort_keys=True, ensure_ascii=False) + "\n"
    file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def differences(kept: Kept, now: Digests) -> list[str]:
    """Return a line for each aspect of a cell that differs, and for each column that does."""
    return [*_of_cells(kept["cells"], now), *_of_frames(kept.get("columns", {}), now.columns)]


def _of_cells(kept: Mapping[str, Mapping[str, str]], now: Digests) -> Iterator[str]:
    for cell in sorted(kept.keys() | now.cells.keys()):
        if cell not in kept or cell not in now.cells:
            yield f"{cell}: its trials are {'gone' if cell in kept else 'new'}"
            continue
        for aspect in sorted(kept[cell].keys() | now.cells[cell].keys()):
            texts = kept[cell].get(aspect, ""), now.cells[cell].get(aspect, "")
            yield from _of_aspect(f"{cell}: {aspect}", *texts, now.trials[cell])


def _of_aspect(where: str, before: str, after: str, trials: Sequence[str]) -> Iterator[str]:
    if len(before) != len(after):
        yield f"{where} is told of {len(after) // WIDTH} trials, and was told of {len(before) // WIDTH}"
        return
    ends = range(WIDTH, len(before) + 1, WIDTH)
    differing = [
        trial for trial, end in zip(trials, ends, strict=False) if before[end - WIDTH : end] != after[end - WIDTH : end]
    ]
    if differing:
        more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        yield f"{where} differs in {len(differing)} of {len(trials)} trials: {'; '.join(differing[:SHOWN])}{more}"


def _of_frames(kept: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for frame, columns in kept.items():
        if frame not in now:
            yield f"frame {frame} {IF_RENAMED}"
        elif now[frame]["rows"] != columns["rows"]:
            yield f"frame {frame} has {now[frame]['rows']} rows, and had {columns['rows']}"
        else:
            yield from _of_columns(frame, columns, now[frame])


def _of_columns(frame: str, kept: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for column, before in kept.items():
        name = f"{frame}.{column}"
        if column not in now and name not in DROPPED:
            yield f"column {name} {IF_RENAMED}"
        elif column in now and now[column] != before:
            yield f"column {name} differs"
