"""The service's repository in git's form: blobs and trees by the digests of their contents, and refs that name trees."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from string import Template

from bench.worlds.run.environment import Db

from .story import SERVICE, Case, Module

FilesOf = Mapping[str, str]
"""Path -> text."""
PIN, ORDERS, CONTRACT = "requirements.txt", "tests/orders.py", "tests/contract.json"
FLAKY = '''"""It stands for a test that depends on how busy the machine is: its first run fails."""

import os


def test_it_answers_in_time():
    assert os.environ["RUN"] != "1"
'''
SHOWN = 12
"""Digits of a tree's digest."""
PUSHED = "README.md"
"""The file that a colleague changes."""


def blob_of(text: str) -> str:
    """Return the digest that git gives a file with this text."""
    return _digest("blob", text.encode()).hex()


def tree_of(files: FilesOf) -> str:
    """Return the digest that git gives a folder with these files, as short as git shows it."""
    return _tree(files).hex()[:SHOWN]


def _tree(files: FilesOf) -> bytes:
    folders: dict[str, dict[str, str]] = {}
    entries = {}
    for path, text in files.items():
        name, _, rest = path.partition("/")
        if rest:
            folders.setdefault(name, {})[rest] = text
        else:
            entries[name] = b"100644 " + name.encode() + b"\0" + _digest("blob", text.encode())
    for name, inside in folders.items():
        entries[f"{name}/"] = b"40000 " + name.encode() + b"\0" + _tree(inside)
    return _digest("tree", b"".join(entries[name] for name in sorted(entries)))


def _digest(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).digest()


def stored(db: Db, files: FilesOf) -> str:
    """Store a tree and its blobs; return the tree's digest."""
    tree = tree_of(files)
    if db.value("SELECT 1 FROM entry WHERE tree = ?", tree) is None:
        for row in entries_of(files):
            db.write("INSERT INTO entry VALUES (?, ?, ?)", tree, row["path"], row["blob"])
            db.write("INSERT OR IGNORE INTO blob VALUES (?, ?)", row["blob"], files[row["path"]])
    return tree


def entries_of(files: FilesOf) -> list[dict[str, str]]:
    return [{"tree": tree_of(files), "path": path, "blob": blob_of(text)} for path, text in sorted(files.items())]


def files_in(db: Db, tree: str) -> dict[str, str]:
    """Return the files of a stored tree; empty if it is not stored."""
    rows = db.all("SELECT path, text FROM entry JOIN blob ON blob.id = entry.blob WHERE tree = ? ORDER BY path", tree)
    return {row["path"]: row["text"] for row in rows}


def library(case: Case, version: int) -> str:
    """Return the library's text; version 0 is the present one, 1 the next."""
    strict = '    if not value.isascii():\n        raise ValueError(f"{value!r} is not ASCII")\n    return value.strip()'
    columns = '"id", "customer", "price", "quantity", "placed", "due"'
    functions = [module.after if version else module.before for module in case.modules]
    return _text(
        "library",
        library=case.library,
        version=case.versions[version],
        columns=f'{columns}, "currency"' if version else columns,
        text=strict if version else "    return value.strip()",
        functions="\n\n\n".join(functions),
    )


def pinned(case: Case, version: int) -> str:
    digest = hashlib.sha256(library(case, version).encode()).hexdigest()
    return f"{case.library}=={case.versions[version]} --hash=sha256:{digest}\n"


def module_text(case: Case, module: Module, line: str, notes: str = "") -> str:
    """Return a module's text with this line; `notes` are appended to its docstring."""
    body = module.body.replace("$line", line)
    return f'"""{module.about}{notes}"""\n\nimport {case.library}\n\n\ndef answer(rows, order):\n{body}\n'


def main_files(case: Case) -> dict[str, str]:
    """Return the files of main at the start of the upgrade, without the expected answers of the tests (`expected.py`)."""
    names = sorted(module.name for module in case.modules)
    orders = "".join(f"    {dict(row)!r},\n" for row in case.orders)
    files = {
        "app.py": _text(
            "app",
            service=case.service,
            library=case.library,
            imports="\n".join(f"import {name}" for name in names),
            answers=", ".join(f'"{name}": {name}.answer' for name in names),
        ),
        PIN: pinned(case, 0),
        PUSHED: f"# {case.service}\n",
        ORDERS: f'"""Orders for tests."""\n\nROWS = [\n{orders}]\n',
        **{f"{module.name}.py": module_text(case, module, module.old) for module in case.modules},
    }
    return files | ({"tests/test_time.py": FLAKY} if "flaky" in case.traits else {})


def pushed(files: FilesOf, case: Case) -> dict[str, str]:
    """Return main after the colleague's push."""
    return {**files, PUSHED: f"# {case.service}\n\nAsk the orders desk before you change an answer.\n"}


def _text(name: str, **words: str) -> str:
    return Template((SERVICE / f"{name}.txt").read_text(encoding="utf-8")).substitute(words)
