"""Each place that takes a text apart is known, with what it reads: `readers.toml` bounds those that read a model's."""

from __future__ import annotations

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
Table = Mapping[str, Mapping[str, Any]]


def test_each_reader_of_texts_is_known_with_what_it_reads() -> None:
    code = {path.relative_to(ROOT).as_posix(): result for path in CODE if (result := readers_in(path.read_text("utf-8")))}
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    assert sum(map(Counter.total, code.values())) > 400
    wrong = [*_differences(code, table), *_unbounded(table["models"])]
    assert not wrong, "\n".join(wrong)


SOURCES = {
    "json.loads in read": "import json\ndef read(text): return json.loads(text)",
    "json.loads in module": "from json import loads as parsed\nvalue = parsed(text)",
    "json.loads in Reader.read": "import json\nclass Reader:\n    def read(self, lines): return map(json.loads, lines)",
    "int in read": "def read(words): return list(map(int, words))",
    ".search in read": "WORDS = re.compile('a+')\ndef read(text): return WORDS.search(text)",
    "re.compile in read": "import re\ndef read(words): return re.compile(words)",
    "float in module": "import json\nvalue = reading(text, parse_int=float)",
}


@pytest.mark.parametrize("reader", SOURCES)
def test_a_reader_is_found_however_it_is_named_and_handed_on(reader: str) -> None:
    assert readers_in(SOURCES[reader]) == {reader: 1}


@pytest.mark.parametrize(
    "source", ["int(3 * width)", "float('inf')", "import re\nWORDS = re.compile('a+')", "isinstance(a, int)"]
)
def test_what_is_given_no_text_is_no_reader(source: str) -> None:
    assert not readers_in(source)


ONE = {"bench/a.py": Counter({"json.loads in read": 2})}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "`json.loads in read` stands 2 times in the code, and 0 times"),
        ({"numbers": {"bench/": "counts"}}, "`json.loads in read` stands 2 times in the code, and 0 times"),
        (
            {"ours": {"bench/a.py": {"json.loads in read": "ours"}}},
            "`json.loads in read` stands 2 times in the code, and 1 times",
        ),
        ({"ours": {"bench/a.py": {"2 json.loads in read": "ours", "int in read": "ours"}}}, "`int in read` stands 0 times"),
        ({"ours": {"bench/": "ours", "bench/b.py": "ours"}}, "bench/b.py has nothing left"),
        (
            {"ours": {"bench/a.py": "ours"}, "models": {"bench/a.py": {"2 json.loads in read": {}}}},
            "bench/a.py has nothing left",
        ),
        ({"ours": {"bench/a.py": {"2 json.loads in read": "ours"}}}, ""),
        ({"ours": {"bench/": "ours"}}, ""),
    ],
)
def test_a_reader_that_is_new_or_gone_is_one_line(table: Table, message: str) -> None:
    result = list(_differences(ONE, table))
    assert bool(result) == bool(message) and message in "\n".join(result)
    assert all("\n" not in line for line in result)


def _unbounded(models: Mapping[str, Any]) -> Iterator[str]:
    for path, entries in models.items():
        for entry, reason in entries.items():
            if not (reason.get("bound") and reason.get("why")):
                yield f"{TABLE.name}: `{entry}` of {path} reads a model's texts: give its `bound`, and `why` that is enough"


def _differences(code: Mapping[str, Counter[str]], table: Table) -> Iterator[str]:
    """What stands in the code and not in the table, and the other way round, and what to do about it."""
    whole, single = _read(table)
    used = set[str]()
    for path in sorted(code.keys() | single.keys()):
        result, listed = code.get(path, Counter[str]()), single.get(path, Counter[str]())
        for reader in sorted(result.keys() | listed.keys()):
            place = "" if reader in listed else _whole_of(path, reader, whole)
            used.add(place)
            if not place and result[reader] != listed[reader]:
                yield (
                    f"{path}: `{reader}` stands {result[reader]} times in the code, and {listed[reader]} times in {TABLE.name}:"
                    " correct that, with what it reads; where a model's text may come there, with its bound and why that does"
                )
    yield from (f"{TABLE.name}: {place} has nothing left to stand for: take it out" for place in whole.keys() - used)


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
