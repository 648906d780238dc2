"""The answer format `fenced`: the JSON without its code, then one code block for each place of code.

    {"edits": [{"file": "main.py"}]}

    edits[0].replace:
    ```python
    total = total + 1
    ```

A block begins with a line of three or more backticks, then perhaps a language, and ends with a line of at least as many. The
line before it names its place. Blocks without a known name belong, in order, to the places without a block, if the numbers are
equal; they are ignored if every place has a block. A block replaces what the JSON has at its place; code in the JSON itself is
read as well.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from bench.run.answers.places import ANY, FieldPath, Schema, code_fields, name_of, places, value_at
from bench.scenario import Json

SHORTEST_FENCE = 3
DECORATION = " \t\r#*`:>\"'"
"""Characters that can surround a name on its line."""
MOST_NAMED = 3
_opening = re.compile(r"^[ \t]*(`{3,})([^`\n]*)$", re.MULTILINE)
_closing = re.compile(r"^[ \t]*(`{3,})[ \t\r]*$", re.MULTILINE)
_fence_end = re.compile(r"\s*^[ \t]*`{3,}[ \t\r]*$", re.MULTILINE)
_blanks = re.compile(r"\s*")


@dataclass(frozen=True)
class Block:
    """A code block. `label` is the line before the block, which can be its name. `end` is the place in the text where the block
    ends."""

    label: str
    code: str
    end: int


@dataclass(frozen=True)
class Unended:
    """A code block without an end: it contains all text after its opening line."""

    label: str


@dataclass(frozen=True)
class Unplaced:
    """The reason, in one line, why blocks cannot be assigned to fields."""

    why: str


@dataclass(frozen=True)
class BeforeJson:
    """The code blocks before the JSON of an answer.

    code    blocks in which no JSON is looked for, text[start:end] each
    fence   the start of the block that holds only the JSON, and of that JSON; None if no block holds it
    """

    code: tuple[tuple[int, int], ...]
    fence: tuple[int, int] | None = None


def blocks_of(text: str, start: int) -> list[Block] | Unended:
    """Return the code blocks from `start` on, or an Unended if the last block has no end."""
    blocks = list[Block]()
    end = start
    for opening, closing in _fences(text, start):
        label = text[end : opening.start()].rstrip().rpartition("\n")[2].strip(DECORATION)
        if closing is None:
            return Unended(label)
        code = text[opening.end() + 1 : max(opening.end() + 1, closing.start() - 1)]
        if opening[2].endswith("\r"):
            code = code.replace("\r\n", "\n").removesuffix("\r")
        end = closing.end()
        blocks.append(Block(label, code, end))
    return blocks


class FenceLines:
    """The lines of a text that open or close code blocks, read once from beginning to end."""

    def __init__(self, text: str):
        self._lines = [(line.start(), len(line[1]), not line[2].strip()) for line in _opening.finditer(text)]
        self._next = self._open = self._long = 0

    def hold(self, at: int) -> bool:
        """Return whether the place `at` is in a block: a block opened before it, and the next fence that is long enough closes
        that block."""
        while self._next < len(self._lines) and self._lines[self._next][0] < at:
            _, length, is_bare = self._lines[self._next]
            self._next += 1
            if not self._open:
                self._open, self._long = length, self._next
            elif is_bare and length >= self._open:
                self._open = 0
        if not self._open:
            return False
        self._long = max(self._long, self._next)
        while self._long < len(self._lines) and self._lines[self._long][1] < self._open:
            self._long += 1
        return self._long < len(self._lines) and self._lines[self._long][2]

    def close(self) -> None:
        """Treat each block that opened before the present place as closed."""
        self._open = 0


def before_json(text: str, start: int = 0) -> BeforeJson:
    """Return the code blocks before the JSON. The first block that begins with a brace contains the JSON itself."""
    code = list[tuple[int, int]]()
    for opening, closing in _fences(text, start):
        first = _first_of(text, opening.end())
        if text.startswith("{", first):
            return BeforeJson(tuple(code), (opening.start(), first))
        code.append((opening.start(), closing.end() if closing else len(text)))
    return BeforeJson(tuple(code))


def _first_of(text: str, start: int) -> int:
    """Return the place of the first character from `start` on that is not blank."""
    blank = _blanks.match(text, start)
    return blank.end() if blank else start


def end_of_json(text: str, end: int, is_fenced: bool) -> int:
    """Return the place after the JSON from which blocks are searched. The JSON ends at `end`; the end of a block around it is
    skipped."""
    closing = _fence_end.match(text, end) if is_fenced else None
    return closing.end() if closing else end


def _fences(text: str, start: int) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """Yield the lines that open and close each block, in linear time. The closing line is None if no line closes the last
    block."""
    closings = _closing.finditer(text, start)
    end = start
    while opening := _opening.search(text, end):
        closing = next((mark for mark in closings if mark.start() > opening.end() and len(mark[1]) >= len(opening[1])), None)
        yield opening, closing
        if closing is None:
            return
        end = closing.end()


def assemble(value: dict[str, Json], blocks: list[Block], schema: Schema) -> dict[str, Json] | Unplaced:
    """Return the JSON with the blocks' code in its fields. `value` is not changed."""
    known = places(schema, value)
    given, nameless = dict[FieldPath, str](), list[str]()
    for block in blocks:
        path = known.path_of(block.label)
        if path is None:
            nameless.append(block.code)
        elif path in given:
            return Unplaced(f"there are two code blocks for {name_of(path)}")
        else:
            given[path] = block.code
    open_fields = [path for path in known.fields if path not in given]
    if nameless and open_fields:
        if len(nameless) != len(open_fields):
            return Unplaced(_mismatch(len(nameless), open_fields))
        given |= dict(zip(open_fields, nameless, strict=True))
    return _fill(value, given)


def _mismatch(nameless: int, open_fields: list[FieldPath]) -> str:
    named = ", ".join(map(name_of, open_fields[:MOST_NAMED])) + (", ..." if len(open_fields) > MOST_NAMED else "")
    blocks = "1 code block has" if nameless == 1 else f"{nameless} code blocks have"
    return f"{blocks} no known name on the line before; there must be one block each for {named}"


def _fill(value: dict[str, Json], given: Mapping[FieldPath, str]) -> dict[str, Json]:
    if not given:
        return value
    filled = copy.deepcopy(value)
    for path, code in given.items():
        _put(filled, path, _without_name(code, name_of(path)))
    return filled


def _without_name(code: str, name: str) -> str:
    """Return code without the name of its field in the first line. A YAML key stays: indented lines follow it."""
    first, _, rest = code.partition("\n")
    return rest if first.strip() == f"{name}:" and not rest.startswith((" ", "\t")) else code


def _put(value: Json, path: FieldPath, code: str) -> None:
    for step, following in pairwise(path):
        if isinstance(value, dict) and isinstance(following, str) and not isinstance(value.get(step), dict):
            value[step] = {}  # the JSON has no table of code here, or another value
        value = value[step]
    value[path[-1]] = code


@dataclass(frozen=True)
class Written:
    """An answer in the format `fenced`: its JSON, and the blocks after it. `text` is both."""

    value: dict[str, Json]
    blocks: Mapping[str, str]

    @property
    def text(self) -> str:
        return "".join((json.dumps(self.value, ensure_ascii=False), *self.blocks.values()))


def write_answer(value: dict[str, Json], schema: Schema) -> Written:
    """Return an answer in the format `fenced`; reading it gives the same value. Code that blocks cannot represent safely stays
    in the JSON."""
    known = places(schema, value)
    code = {path: text for path in known.fields if isinstance(text := value_at(value, path), str)}
    bare = _without(value, list(code), known.tables)
    blocks = {name_of(path): _block(name_of(path), known.fields[path], text) for path, text in code.items()}
    result = Written(bare, blocks)
    blocks_given = blocks_of("".join(blocks.values()), 0)
    if isinstance(blocks_given, Unended) or len(blocks) < len(code) or assemble(bare, blocks_given, schema) != value:
        return Written(value, {})
    return result


def _without(value: dict[str, Json], paths: list[FieldPath], tables: Mapping[FieldPath, str]) -> dict[str, Json]:
    """Return the JSON without the code in these fields, and without tables that become empty."""
    bare: dict[str, Json] = copy.deepcopy(value)
    for path in paths:
        *parents, last = path
        del value_at(bare, tuple(parents))[last]
    for path in tables:
        *parents, last = path
        if value_at(bare, path) == {} and value_at(value, path):
            del value_at(bare, tuple(parents))[last]
    return bare


def _block(name: str, language: str, code: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(SHORTEST_FENCE, longest + 1)
    return f"\n\n{name}:\n{fence}{language}\n{code}\n{fence}"


def form(schema: Schema) -> str:
    """Return the description of the blocks for a prompt: item 0 stands for all items of a list, NAME for all entries of a
    table."""
    asked = list(code_fields(schema))
    shown = [_block(name_of(path), language, code or "...").strip() for path, language, code in asked]
    items = [name_of(path).replace("[0]", "[1]") for path, _, _ in asked if 0 in path]
    more = [f"The same for {items[0]} and so on."] if items else []
    more += ["One such block for each NAME."] if any(ANY in path for path, _, _ in asked) else []
    return "\n".join([*shown, *more])
