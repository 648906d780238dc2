"""Writes the pack's documents and references: python -m scenarios.chain.generate [FOLDER]

All sheets come from one generator, seeded by SEED, so that the same call writes the same bytes. Each sheet names each item once
and every figure has two digits, every stock three: as texts all sheets are of one size, and so are all outputs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random

from .scenario import VARIANTS
from .sheets import ITEMS, OPENING, sheet_name, subtask_names

SEED = 20260312

Stock = Mapping[str, int]

FIRST: Stock = dict.fromkeys(ITEMS, 250)


@dataclass(frozen=True)
class Sheet:
    """The items received, issued and ordered, with their numbers. `back` is the number of received items that were sent
    back."""

    items: tuple[str, str, str]
    received: int
    back: int
    issued: int
    ordered: int

    def text(self) -> str:
        received, issued, ordered = self.items
        return (
            f"Received: {self.received} {received}, {self.back} of them went back.\n"
            f"Issued: {self.issued} {issued}.\n"
            f"Ordered: {self.ordered} {ordered}, due next week.\n"
        )


Reading = Callable[[Sheet], tuple[int, int, int]]
"""How many pieces of what was received, issued and ordered are put into stock."""


def _right(sheet: Sheet) -> tuple[int, int, int]:
    return sheet.received - sheet.back, -sheet.issued, 0


MISREADINGS: Mapping[str, tuple[str, Reading]] = {
    "returns_kept": ("What went back stays in stock.", lambda sheet: (sheet.received, -sheet.issued, 0)),
    "returns_added": ("What went back is added.", lambda sheet: (sheet.received + sheet.back, -sheet.issued, 0)),
    "issues_kept": ("What was issued stays in stock.", lambda sheet: (sheet.received - sheet.back, 0, 0)),
    "orders_counted": ("What is only ordered is in stock.", lambda sheet: (*_right(sheet)[:2], sheet.ordered)),
}
"""File -> why an answer is wrong that reads every sheet so."""


def _sheets(count: int) -> list[Sheet]:
    rng = Random(SEED)
    return [_sheet(rng) for _ in range(count)]


def _sheet(rng: Random) -> Sheet:
    received, issued, ordered = rng.sample(ITEMS, 3)
    figures = {"received": (40, 69), "back": (11, 19), "issued": (21, 49), "ordered": (11, 29)}
    return Sheet((received, issued, ordered), **{name: rng.randint(*bounds) for name, bounds in figures.items()})


def _stocks(sheets: Sequence[Sheet], reading: Reading) -> list[Stock]:
    """Return the stock after each sheet."""

    def after(stock: Stock, sheet: Sheet) -> Stock:
        changes = dict(zip(sheet.items, reading(sheet), strict=True))
        return {item: stock[item] + changes[item] for item in ITEMS}

    return list(accumulate(sheets, after, initial=FIRST))[1:]


def _output(stock: Stock) -> dict[str, int]:
    return {**stock, "pieces": sum(stock.values())}


def _references(sheets: Sequence[Sheet]) -> dict[str, object]:
    """Return the references of the pipeline through these sheets: file -> content."""
    names, right = subtask_names(len(sheets)), _stocks(sheets, _right)
    wrong = {name: (why, _stocks(sheets, reading)) for name, (why, reading) in MISREADINGS.items()}
    wrong["first_sheet_left_out"] = ("The first sheet is not counted.", [FIRST, *_stocks(sheets[1:], _right)])
    wrong["last_sheet_left_out"] = ("The last sheet is not counted.", [*right[:-1], right[-2]])
    return {
        "answer.json": _outputs(names, right),
        "truth/stock.json": right[-1],
        **{f"wrong/{name}.json": {"why": why, "outputs": _outputs(names, stocks)} for name, (why, stocks) in wrong.items()},
    }


def _outputs(names: Sequence[str], stocks: Sequence[Stock]) -> dict[str, dict[str, int]]:
    return {name: _output(stock) for name, stock in zip(names, stocks, strict=True)}


def files() -> dict[str, str]:
    """Return the files of the pack: path in the pack's folder -> text."""
    sheets = _sheets(max(map(int, VARIANTS)))
    texts = {f"documents/{sheet_name(number)}": sheet.text() for number, sheet in enumerate(sheets, 1)}
    texts[f"documents/{OPENING}"] = json.dumps(_output(FIRST)) + "\n"
    for size in VARIANTS:
        for name, content in _references(sheets[: int(size)]).items():
            texts[f"reference/{size}/{name}"] = json.dumps(content, indent=2) + "\n"
    return texts


def write(folder: Path) -> None:
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
