"""Read and write answers in the format `fenced`: the JSON without its code, then one code block for each field with code.

    {"edits": [{"file": "main.py"}]}

    edits[0].replace:
    ```python
    total = total + 1
    ```

A block begins with a line of three or more backticks, then perhaps a language, and ends with a line of at least as many
backticks. The line before a block names its field. Blocks without a known name belong, in order, to the fields without a block,
if there are as many of both; if every field has a block, they are ignored. A block replaces the JSON's value in its field. Code
in the JSON itself is read too.
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

MIN_BACKTICKS = 3
NAME_DECORATION = " \t\r#*`:>\"'"
"""Characters that can surround a name on its line."""
MAX_NAMES_SHOWN = 3
_opening = re.compile(r"^[ \t]*(`{3,})([^`\n]*)$", re.MULTILINE)
_closing = re.compile(r"^[ \t]*(`{3,})[ \t\r]*$", re.MULTILINE)
_fence_end = re.compile(r"\s*^[ \t]*`{3,}[ \t\r]*$", re.MULTILINE)
_blanks = re.compile(r"\s*")


@dataclass(frozen=True)
class Block:
    """A code block. `label` is the line before the block, which can name its field. `end` is the index in the text at which the
    block ends."""

    label: str
    code: str
    end: int


@dataclass(frozen=True)
class UnclosedBlock:
    """A code block without a closing line: it would contain all text after its opening line."""

    label: str


@dataclass(frozen=True)
class UnassignedBlocks:
    """The reason, in one line, why blocks cannot be assigned to fields."""

    why: str


@dataclass(frozen=True)
class BeforeJson:
    """The code blocks before the JSON of an answer.

    code    the (start, end) in the text of each block, in which no JSON is searched
    fence   (start of the block that holds the JSON, start of that JSON); None if no block holds the JSON
    """

    code: tuple[tuple[int, int], ...]
    fence: tuple[int, int] | None = None


def blocks_of(text: str, start: int) -> list[Block] | UnclosedBlock:
    """Return the code blocks from `start` on, or an UnclosedBlock if the last block has no closing line."""
    blocks = list[Block]()
    end = start
    for opening, closing in _fences(text, start):
        label = text[end : opening.start()].rstrip().rpartition("\n")[2].strip(NAME_DECORATION)
        if closing is None:
            return UnclosedBlock(label)
        code = text[opening.end() + 1 : max(opening.end() + 1, closing.start() - 1)]
        if opening[2].endswith("\r"):
            code = code.replace("\r\n", "\n").removesuffix("\r")
        end = closing.end()
        blocks.append(Block(label, code, end))
    return blocks


class FenceLines:
    """The lines of a text that open or close code blocks. They are read once, from the beginning to the end."""

    def __init__(self, text: str):
        self._lines = [(line.start(), len(line[1]), not line[2].strip()) for line in _opening.finditer(text)]
        """(index, number of backticks, whether nothing follows them) of each line."""
        self._next = self._open = self._long = 0

    def hold(self, index: int) -> bool:
        """Return whether the text at `index` is in a closed code block: a fence before `index` opens the block, and the next
        fence of at least that length has no text behind it. From call to call `index` must rise."""
        while self._next < len(self._lines) and self._lines[self._next][0] < index:
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
        """Treat the open block, if there is one, as closed."""
        self._open = 0


def before_json(text: str, start: int = 0) -> BeforeJson:
    """Return the code blocks before the JSON. The first block that begins with a brace contains the JSON itself."""
    code = list[tuple[int, int]]()
    for opening, closing in _fences(text, start):
        content_start = _skip_blanks(text, opening.end())
        if text.startswith("{", content_start):
            return BeforeJson(tuple(code), (opening.start(), content_start))
        code.append((opening.start(), closing.end() if closing else len(text)))
    return BeforeJson(tuple(code))


def _skip_blanks(text: str, start: int) -> int:
    """Return the index of the first character from `start` on that is not blank."""
    blank = _blanks.match(text, start)
    return blank.end() if blank else start


def end_of_json(text: str, end: int, is_fenced: bool) -> int:
    """Return the index from which code blocks are searched after the JSON. The JSON ends at `end`; if it is in a block
    (`is_fenced`), the closing line of that block is skipped."""
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


def assemble(value: dict[str, Json], blocks: list[Block], schema: Schema) -> dict[str, Json] | UnassignedBlocks:
    """Return the JSON with the blocks' code in its fields. `value` is not changed."""
    answer_places = places(schema, value)
    codes, nameless = dict[FieldPath, str](), list[str]()
    for block in blocks:
        path = answer_places.path_of(block.label)
        if path is None:
            nameless.append(block.code)
        elif path in codes:
            return UnassignedBlocks(f"there are two code blocks for {name_of(path)}")
        else:
            codes[path] = block.code
    open_fields = [path for path in answer_places.fields if path not in codes]
    if nameless and open_fields:
        if len(nameless) != len(open_fields):
            return UnassignedBlocks(_mismatch(len(nameless), open_fields))
        codes |= dict(zip(open_fields, nameless, strict=True))
    return _with_codes(value, codes)


def _mismatch(nameless: int, open_fields: list[FieldPath]) -> str:
    """Return why blocks without a name cannot be assigned to the fields that have no block."""
    names = ", ".join(map(name_of, open_fields[:MAX_NAMES_SHOWN])) + (", ..." if len(open_fields) > MAX_NAMES_SHOWN else "")
    blocks = "1 code block has" if nameless == 1 else f"{nameless} code blocks have"
    return f"{blocks} no known name on the line before; there must be one block each for {names}"


def _with_codes(value: dict[str, Json], codes: Mapping[FieldPath, str]) -> dict[str, Json]:
    """Return the value with this code in the fields at these paths."""
    changed = copy.deepcopy(value) if codes else value
    for path, code in codes.items():
        _put(changed, path, _without_name(code, name_of(path)))
    return changed


def _without_name(code: str, name: str) -> str:
    """Return code without a first line that names its field. A first line that indented lines follow stays: it is a YAML
    key."""
    first, _, rest = code.partition("\n")
    return rest if first.strip() == f"{name}:" and not rest.startswith((" ", "\t")) else code


def _put(value: Json, path: FieldPath, code: str) -> None:
    """Write code into the field of a value at this path."""
    for step, following in pairwise(path):
        if isinstance(value, dict) and isinstance(following, str) and not isinstance(value.get(step), dict):
            value[step] = {}  # the JSON has no table of code here
        value = value[step]
    value[path[-1]] = code


@dataclass(frozen=True)
class FencedAnswer:
    """An answer in the format `fenced`: its JSON, and the blocks after the JSON by the names of their fields. `text` is the
    whole answer."""

    value: dict[str, Json]
    blocks: Mapping[str, str]

    @property
    def text(self) -> str:
        return "".join((json.dumps(self.value, ensure_ascii=False), *self.blocks.values()))


def write_answer(value: dict[str, Json], schema: Schema) -> FencedAnswer:
    """Return an answer in the format `fenced`; reading it gives the same value. Code that blocks cannot represent safely stays
    in the JSON."""
    answer_places = places(schema, value)
    codes = {path: text for path in answer_places.fields if isinstance(text := value_at(value, path), str)}
    rest = _without(value, list(codes), answer_places.tables)
    blocks = {name_of(path): _block(name_of(path), answer_places.fields[path], code) for path, code in codes.items()}
    read_blocks = blocks_of("".join(blocks.values()), 0)
    if isinstance(read_blocks, UnclosedBlock) or len(blocks) < len(codes) or assemble(rest, read_blocks, schema) != value:
        return FencedAnswer(value, {})
    return FencedAnswer(rest, blocks)


def _without(value: dict[str, Json], paths: list[FieldPath], tables: Mapping[FieldPath, str]) -> dict[str, Json]:
    """Return the JSON without the code in these fields, and without tables that become empty."""
    rest: dict[str, Json] = copy.deepcopy(value)
    for path in paths:
        *parents, last = path
        del value_at(rest, tuple(parents))[last]
    for path in tables:
        *parents, last = path
        if value_at(rest, path) == {} and value_at(value, path):
            del value_at(rest, tuple(parents))[last]
    return rest


def _block(name: str, language: str, code: str) -> str:
    """Return a code block under its name. Its fences are longer than any backticks in the code."""
    longest = max(map(len, re.findall(r"`+", code)), default=0)
    fence = "`" * max(MIN_BACKTICKS, longest + 1)
    return f"\n\n{name}:\n{fence}{language}\n{code}\n{fence}"


def form(schema: Schema) -> str:
    """Return the description of the blocks for a prompt: item 0 stands for all items of a list, NAME for all entries of a
    table."""
    fields = list(code_fields(schema))
    lines = [_block(name_of(path), language, description or "...").strip() for path, language, description in fields]
    items = [name_of(path).replace("[0]", "[1]") for path, _, _ in fields if 0 in path]
    lines += [f"The same for {items[0]} and so on."] if items else []
    lines += ["One such block for each NAME."] if any(ANY in path for path, _, _ in fields) else []
    return "\n".join(lines)
