"""Calls in code, compared with a table of those that are known, by class, file and function: `readers.toml`, `openers.toml`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Table = Mapping[str, Mapping[str, Any]]


def unbounded(places: Mapping[str, Any], name: str, what: str) -> Iterator[str]:
    """What stands singly in a table of this name and lacks its bound, or why that is enough."""
    for path, entries in places.items():
        for entry, reason in entries.items():
            if not (reason.get("bound") and reason.get("why")):
                yield f"{name}: `{entry}` of {path} reads {what}: give its `bound`, and `why` that is enough"


def differences(code: Mapping[str, Counter[str]], table: Table, name: str, advice: str) -> Iterator[str]:
    """What stands in the code and not in the table, and the other way round, and what to do about it."""
    whole, single = _read(table)
    used = set[str]()
    for path in sorted(code.keys() | single.keys()):
        result, listed = code.get(path, Counter[str]()), single.get(path, Counter[str]())
        for reader in sorted(result.keys() | listed.keys()):
            place = "" if reader in listed else _whole_of(path, reader, whole)
            used.add(place)
            if not place and result[reader] != listed[reader]:
                counts = f"{result[reader]} times in the code, and {listed[reader]} times in {name}"
                yield f"{path}: `{reader}` stands {counts}: {advice}"
    yield from (f"{name}: {place} has nothing left to stand for: take it out" for place in whole.keys() - used)


def _read(table: Table) -> tuple[dict[str, str], dict[str, Counter[str]]]:
    """Files and folders that stand as a whole, with their class; and the readers that stand singly, by file."""
    whole, single = dict[str, str](), dict[str, Counter[str]]()
    for kind, places in table.items():
        for place, entries in places.items():
            if isinstance(entries, str):
                whole[place] = kind
                continue
            for entry in entries:
                number, _, name = entry.partition(" ") if entry[0].isdecimal() else ("1", "", entry)
                single.setdefault(place, Counter())[name] += int(number)
    return whole, single


def _whole_of(path: str, reader: str, whole: Mapping[str, str]) -> str:
    """The entry of the file, or else of its nearest folder, that holds for a reader; "" for none."""
    parts = path.split("/")
    folders = ["/".join(parts[:end]) + "/" for end in range(len(parts) - 1, 0, -1)]
    is_number = reader.startswith(("int in ", "float in "))
    return next((place for place in (path, *folders) if place in whole and (whole[place] != "numbers" or is_number)), "")
