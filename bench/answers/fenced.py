"""The answer format `fenced`: the JSON without its code, then one code block for each place where code stands.

    {"edits": [{"file": "main.py"}]}

    edits[0].replace:
    ```python
    total = total + 1
    ```

A block begins with a line of three backticks or more, then perhaps a language, and ends with a line of at least as many. The
line before it names its place. Blocks without a known name belong, in order, to the places without one, where they are just as
many; where every place has a block they are passed over. A block takes the place of what the JSON has there; code that stands
in the JSON itself is read as well.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from bench.answers.places import ANY, FieldPath, Schema, at, declared, name_of, places
from bench.scenario import Json

SHORTEST_FENCE = 3
DECORATION = " \t\r#*`:>\"'"
"""What may stand around a name on its line."""
MOST_NAMED = 3
_opening = re.compile(r"^[ \t]*(`{3,})([^`\n]*)$", re.MULTILINE)
_closing = re.compile(r"^[ \t]*(`{3,})[ \t\r]*$", re.MULTILINE)
_fence_end = re.compile(r"\s*^[ \t]*`{3,}[ \t\r]*$", re.MULTILINE)
_blanks = re.compile(r"\s*")


@dataclass(frozen=True)
class Block:
    """A code block; `label` is the name that the line before it may be. `end` is where it ends in the text."""

    label: str
    code: str
    end: int


@dataclass(frozen=True)
class Unended:
    """A code block without an end: all that follows its opening line is in it."""

    label: str


@dataclass(frozen=True)
class Unplaced:
    """Why blocks cannot be told apart, in one line."""

    why: str


@dataclass(frozen=True)
class Before:
    """What may stand before the JSON.

    code    blocks in which no JSON is looked for, text[start:end] each
    fence   where the block begins that the JSON stands in by itself, and where that JSON does; None where it stands in none
    """

    code: tuple[tuple[int, int], ...]
    fence: tuple[int, int] | None = None


def blocks_of(text: str, start: int) -> list[Block] | Unended:
    """The code blocks from `start` on. One without an end is the last, and says so alone."""
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
    """The lines of a text that open or close code blocks, gone through once from its beginning to its end."""

    def __init__(self, text: str):
        self._lines = [(line.start(), len(line[1]), not line[2].strip()) for line in _opening.finditer(text)]
        self._next = self._open = self._long = 0

    def hold(self, at: int) -> bool:
        """Whether a block holds this place: it is opened before, and the next line that is long enough closes it."""
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
        """What was opened before this place is not open any more."""
        self._open = 0


def before_json(text: str, start: int = 0) -> Before:
    """A block that begins with a brace is the JSON's own; of those before it none is."""
    code = list[tuple[int, int]]()
    for opening, closing in _fences(text, start):
        first = _first_of(text, opening.end())
        if text.startswith("{", first):
            return Before(tuple(code), (opening.start(), first))
        code.append((opening.start(), closing.end() if closing else len(text)))
    return Before(tuple(code))


def _first_of(text: str, start: int) -> int:
    """Where the first character stands that is no blank."""
    blank = _blanks.match(text, start)
    return blank.end() if blank else start


def behind_json(text: str, end: int, is_fenced: bool) -> int:
    """Where blocks are looked for: behind the JSON that ends at `end`, and behind the end of its own block."""
    closing = _fence_end.match(text, end) if is_fenced else None
    return closing.end() if closing else end


def _fences(text: str, start: int) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """The lines that open and close each block, in time that grows as the text does; None where nothing closes the last."""
    closings = _closing.finditer(text, start)
    end = start
    while opening := _opening.search(text, end):
        closing = next((mark for mark in closings if mark.start() > opening.end() and len(mark[1]) >= len(opening[1])), None)
        yield opening, closing
        if closing is None:
            return
        end = closing.end()


def assemble(value: dict[str, Json], blocks: list[Block], schema: Schema) -> dict[str, Json] | Unplaced:
    """The JSON with the code of these blocks in its places. The JSON itself is left as it is."""
    known = places(schema, value)
    given, nameless = dict[FieldPath, str](), list[str]()
    for block in blocks:
        path = known.named(block.label)
        if path is None:
            nameless.append(block.code)
        elif path in given:
            return Unplaced(f"there are two code blocks for {name_of(path)}")
        else:
            given[path] = block.code
    left = [path for path in known.fields if path not in given]
    if nameless and left:
        if len(nameless) != len(left):
            return Unplaced(_mismatch(len(nameless), left))
        given |= dict(zip(left, nameless, strict=True))
    return _filled(value, given)


def _mismatch(nameless: int, left: list[FieldPath]) -> str:
    named = ", ".join(map(name_of, left[:MOST_NAMED])) + (", ..." if len(left) > MOST_NAMED else "")
    blocks = "1 code block has" if nameless == 1 else f"{nameless} code blocks have"
    return f"{blocks} no known name on the line before; there must be one block each for {named}"


def _filled(value: dict[str, Json], given: Mapping[FieldPath, str]) -> dict[str, Json]:
    if not given:
        return value
    filled = copy.deepcopy(value)
    for path, code in given.items():
        _put(filled, path, _without_name(code, name_of(path)))
    return filled


def _without_name(code: str, name: str) -> str:
    """Code without its place's name in its first line. A key of YAML is none: what belongs to it is indented."""
    first, _, rest = code.partition("\n")
    return rest if first.strip() == f"{name}:" and not rest.startswith((" ", "\t")) else code


def _put(value: Json, path: FieldPath, code: str) -> None:
    for step, following in pairwise(path):
        if isinstance(value, dict) and isinstance(following, str) and not isinstance(value.get(step), dict):
            value[step] = {}  # a table of code that its JSON leaves out, or has as something else
        value = value[step]
    value[path[-1]] = code


@dataclass(frozen=True)
class Written:
    """An answer in this format: its JSON, and its blocks as they follow it. `text` is both."""

    value: dict[str, Json]
    blocks: Mapping[str, str]

    @property
    def text(self) -> str:
        return "".join((json.dumps(self.value, ensure_ascii=False), *self.blocks.values()))


def written(value: dict[str, Json], schema: Schema) -> Written:
    """An answer as this format has it; read again it is the same. Code that could not be told apart stays in the JSON."""
    known = places(schema, value)
    code = {path: text for path in known.fields if isinstance(text := at(value, path), str)}
    bare = _without(value, list(code), known.tables)
    blocks = {name_of(path): _block(name_of(path), known.fields[path], text) for path, text in code.items()}
    result = Written(bare, blocks)
    blocks_given = blocks_of("".join(blocks.values()), 0)
    if isinstance(blocks_given, Unended) or len(blocks) < len(code) or assemble(bare, blocks_given, schema) != value:
        return Written(value, {})
    return result


def _without(value: dict[str, Json], paths: list[FieldPath], tables: Mapping[FieldPath, str]) -> dict[str, Json]:
    """The JSON without the code at these places, and without the tables that this leaves empty."""
    bare: dict[str, Json] = copy.deepcopy(value)
    for path in paths:
        *parents, last = path
        del at(bare, tuple(parents))[last]
    for path in tables:
        *parents, last = path
        if at(bare, path) == {} and at(value, path):
            del at(bare, tuple(parents))[last]
    return bare


def _block(name: str, language: str, code: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(SHORTEST_FENCE, longest + 1)
    return f"\n\n{name}:\n{fence}{language}\n{code}\n{fence}"


def form(schema: Schema) -> str:
    """How the blocks are asked for: item 0 stands for all items of a list, NAME for all entries of a table."""
    asked = list(declared(schema))
    shown = [_block(name_of(path), language, code or "...").strip() for path, language, code in asked]
    items = [name_of(path).replace("[0]", "[1]") for path, _, _ in asked if 0 in path]
    more = [f"The same for {items[0]} and so on."] if items else []
    more += ["One such block for each NAME."] if any(ANY in path for path, _, _ in asked) else []
    return "\n".join([*shown, *more])
