"""Every place that takes a text apart is known, with what it reads: `readers.toml` says where a model's text comes, and what bounds it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from readers import readers_in

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("readers.toml")
CODE = sorted([*ROOT.glob("bench/**/*.py"), *ROOT.glob("scenarios/*/*.py")])
NUMBERS = ("int", "float")


def test_every_reader_of_texts_is_known_with_what_it_reads() -> None:
    code = {path.relative_to(ROOT).as_posix(): found for path in CODE if (found := readers_in(path))}
    assert sum(map(Counter.total, code.values())) > 400, "the readers are not found any more"
    wrong = list(_differences(code, tomllib.loads(TABLE.read_text(encoding="utf-8"))))
    assert not wrong, "\n".join(wrong)


def _differences(code: Mapping[str, Counter[str]], table: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What stands in the code and not in the table, and the other way round, with what to do about it."""
    whole, single = dict[str, str](), dict[str, Counter[str]]()
    for kind, places in table.items():
        for place, entries in places.items():
            if isinstance(entries, str):
                whole[place] = kind if entries and place not in whole else "stands twice"
                continue
            for entry, said in entries.items():
                number, _, name = entry.partition(" ") if entry[0].isdecimal() else ("1", "", entry)
                single.setdefault(place, Counter())[name] += int(number)
                if kind == "models" and not (said.get("bound") and said.get("why")):
                    yield f"{TABLE.name}: {place}, `{entry}` reads models' texts: give its `bound`, and `why` that is enough"
    used = set[str]()
    for path, found in code.items():
        listed = single.pop(path, Counter[str]())
        if path in whole and whole[path] != "numbers" and listed:
            yield f"{TABLE.name}: {path} stands for itself, and has readers that stand singly: list all of them singly"
        for reader in sorted(found | listed):
            by = None if reader in listed else _whole_of(path, reader, whole)
            used |= {by} if by else set()
            if by is None and found[reader] > listed[reader]:
                yield (
                    f"{path}: `{reader}` stands {found[reader]} times, and {listed[reader]} times in {TABLE.name}: add it there,"
                    " with what text it reads; if a model's text can come there, with its bound and why that is enough"
                )
            elif listed[reader] > found[reader]:
                yield f"{TABLE.name}: {path} has `{reader}` {found[reader]} times, not {listed[reader]}: correct the entry"
    yield from (f"{TABLE.name}: {path} has no reader any more: take its entries out" for path in single)
    yield from (f"{TABLE.name}: nothing is left for the entry of {path}: take it out" for path in whole.keys() - used)


def _whole_of(path: str, reader: str, whole: Mapping[str, str]) -> str | None:
    """The entry of the file, or of its nearest folder, that holds for this reader."""
    parts = path.split("/")
    for place in (path, *("/".join(parts[:end]) + "/" for end in range(len(parts) - 1, 0, -1))):
        if place in whole and (whole[place] != "numbers" or reader.split(" ")[0] in NUMBERS):
            return place
    return None
