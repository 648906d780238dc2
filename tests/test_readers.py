"""Each place that takes a text apart is known, with what it reads: `readers.toml` bounds those that read a model's."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest
from known_calls import Table, differences, unbounded
from readers import readers_in

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("readers.toml")
CODE = sorted(
    path for folder in ("bench/**", "code/src/**", "scenarios/*", "studies/**") for path in ROOT.glob(f"{folder}/*.py")
)
ADVICE = "correct that, with what it reads; where a model's text may come there, with its bound and why that does"


def test_each_reader_of_texts_is_known_with_what_it_reads() -> None:
    code = {path.relative_to(ROOT).as_posix(): result for path in CODE if (result := readers_in(path.read_text("utf-8")))}
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    assert sum(map(Counter.total, code.values())) > 400
    wrong = [*differences(code, table, TABLE.name, ADVICE), *unbounded(table["models"], TABLE.name, "a model's texts")]
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
    result = list(differences(ONE, table, TABLE.name, ADVICE))
    assert bool(result) == bool(message) and message in "\n".join(result)
    assert all("\n" not in line for line in result)
