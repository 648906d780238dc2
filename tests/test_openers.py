"""Each place that opens, makes, moves or removes a file is known, with whose that is: `openers.toml` bounds a stranger's."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest
from known_calls import differences, unbounded
from readers import OPENERS, calls_in

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("openers.toml")
ADVICE = (
    "use `bench.common.files` or `write_files`, or say there whose file it is; a stranger's with its bound and why that does"
)


def test_each_opener_of_files_is_known_with_whose_they_are() -> None:
    files = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in sorted([*ROOT.glob("bench/**/*.py"), *ROOT.glob("code/src/**/*.py")])
    }
    code = {path: result for path, text in files.items() if (result := calls_in(text, OPENERS))}
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    assert sum(map(Counter.total, code.values())) > 100
    strangers = unbounded(table["strangers"], TABLE.name, "a stranger's file")
    wrong = [*differences(code, table, TABLE.name, ADVICE), *strangers]
    assert not wrong, "\n".join(wrong)


SOURCES = {
    "open in read": "def read(path): return open(path).read()",
    "os.open in read": "import os\ndef read(path): return os.open(path, os.O_RDONLY)",
    ".open in read": "def read(path): return path.open('rb')",
    ".read_bytes in read": "def read(path): return path.read_bytes()",
    ".write_text in write": "from pathlib import Path\ndef write(): Path('a').write_text('b')",
    "zipfile.ZipFile in read": "from zipfile import ZipFile as Archive\ndef read(path): return Archive(path)",
    "sqlite3.connect in module": "import sqlite3 as sql\ndb = sql.connect('a')",
    "shutil.rmtree in remove": "import shutil\ndef remove(folders): return list(map(shutil.rmtree, folders))",
    "numpy.load in read": "import numpy as np\ndef read(path): return np.load(path)",
}


@pytest.mark.parametrize("opener", SOURCES)
def test_an_opener_is_found_however_it_is_named_and_handed_on(opener: str) -> None:
    assert calls_in(SOURCES[opener], OPENERS) == {opener: 1}


def test_what_opens_no_file_is_no_opener() -> None:
    assert not calls_in("import os\ntext.replace('a', 'b'); os.stat(path); file.read(); opened(path)", OPENERS)
