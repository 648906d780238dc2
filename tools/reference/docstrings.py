"""Our docstrings as reStructuredText, for Sphinx's autodoc.

They are plain English in four forms: prose with `code` in backticks; lists of a name, two spaces or more, and what it means;
sections `Args`, `Returns`, `Yields` and `Raises`; and indented blocks, which are shown as they stand.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

ENTRY = re.compile(r"^(?P<name>\S(?:\S| (?! ))*) {2,}(?P<means>\S.*)$")
CODE = re.compile(r"(`[^`\n]+`)")
INDENT = 4
FIELDS = {"Args:": "param", "Raises:": "raises", "Returns:": "returns", "Yields:": "returns"}
"""The heading of a section -> the field that Sphinx has for it."""
TREE = ("|--", "`--")


def restructured(lines: Iterable[str]) -> list[str]:
    """Return the docstring of these lines as reStructuredText."""
    text = []
    for blank, group in itertools.groupby((line.rstrip() for line in lines), key=lambda line: not line):
        block = list(group)
        text += [""] if blank else [*_block(block), ""]
    return text


def _block(lines: list[str]) -> Iterator[str]:
    shift = len(lines[0]) - len(lines[0].lstrip())
    unshifted = [line[shift:] if line[:shift].isspace() or not shift else line for line in lines]
    entries = [bool(ENTRY.match(line)) for line in unshifted]
    if lines[0].strip() in FIELDS:
        yield from _fields(FIELDS[lines[0].strip()], lines[1:])
    elif any(line.startswith(TREE) for line in unshifted):
        yield from ("::", "", *(f"{' ' * INDENT}{line}" for line in unshifted))
    elif any(entries):
        first = entries.index(True)
        yield from _prose(unshifted[:first])
        yield from _entries(unshifted[first:])
    elif shift >= INDENT:
        yield from ("::", "", *lines)
    else:
        yield from _prose(lines)


def _fields(field: str, lines: list[str]) -> Iterator[str]:
    """Yield a field for each name of a section, or one for the whole. A line with a deeper indent goes on with its field."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    for number, line in enumerate(lines):
        if field == "returns":
            yield f"  {_escaped(line.strip())}" if number else f":returns: {_escaped(line.strip())}"
        elif line[depth:].startswith(" "):
            yield f"  {_escaped(line.strip())}"
        else:
            name, _, means = line.strip().partition(": ")
            yield f":{field} {name}: {_escaped(means)}"


def _entries(lines: list[str]) -> Iterator[str]:
    """One item of a list for each entry; a line that begins none goes on with the one before."""
    yield ""
    for line in lines:
        if entry := ENTRY.match(line):
            yield f"* ``{entry['name'].strip('`')}``: {_escaped(entry['means'])}"
        else:
            yield f"  {_escaped(line.strip())}"


def _prose(lines: Iterable[str]) -> Iterator[str]:
    return (_escaped(line) for line in lines)


def _escaped(line: str) -> str:
    """Return the text with code in double backticks, and nothing else that reStructuredText would take for more than text."""
    return "".join(_literal(piece) if place % 2 else _plain(piece) for place, piece in enumerate(CODE.split(line)))


def _literal(code: str) -> str:
    return f"``{code[1:-1]}``"


def _plain(text: str) -> str:
    return re.sub(r"(?<=\w)_(?!\w)|[|`]|(?<![\w*])\*(?=[\s,.;)]|$)", lambda match: f"\\{match[0]}", text)
