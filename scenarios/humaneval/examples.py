"""The examples in a prompt: calls of the function, and their results. They are parsed from the text; no code is run.

An example is a call whose arguments are literals, a sign or words that promise a result, and a literal that ends the line.
In a session (`>>> f(1)`) the literal stands on the line below.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

LEFT_OUT = frozenset(
    {
        "median([-10, 4, 6, 1000, 10, 20])",
        "sort_array([1, 5, 2, 3, 4])",
        "sort_array([-2, -3, -4, -5, -6])",
        "tri(1)",
        "tri(4)",
        'fix_spaces(" Example 3")',
        'bf("Earth", "Mercury")',
    }
)
"""Calls for which the reference solution itself returns something else than the prompt says."""

PROMISE = re.compile(r"[ \t]*(?:#[ \t]*)?(?:==?>?|[-=]+>|➞|(?:should )?(?:returns?|be|equals?)\b)[ \t]*")
NEXT_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?\n[ \t]*")
NAMES = {"true": "True", "false": "False", "null": "None"}


@dataclass(frozen=True)
class Example:
    """An example in a prompt. `call` is on one line, as in the prompt; `expected` is a literal."""

    call: str
    expected: str


@lru_cache(maxsize=512)
def examples_of(prompt: str, function: str) -> tuple[Example, ...]:
    """Return the examples that the reference fulfils. If a call has several examples, the first counts."""
    first: dict[str, Example] = {}
    for example in examples_in(prompt, function):
        if example.call not in LEFT_OUT:
            first.setdefault(example.call, example)
    return tuple(first.values())


def examples_in(prompt: str, function: str) -> Iterator[Example]:
    for match in re.finditer(rf"(>>>[ \t]*)?\b({re.escape(function)})\(", prompt):
        start, end = match.start(2), _end_of_call(prompt, match.start(2))
        promise = end and ((match[1] and NEXT_LINE.match(prompt, end)) or PROMISE.match(prompt, end))
        if not promise:
            continue
        said = prompt[promise.end() :].partition("\n")[0].strip().removesuffix(".")
        literal = _literal(NAMES.get(said, said))
        if literal is not None:
            yield Example(" ".join(prompt[start:end].split()), literal)


def _end_of_call(prompt: str, start: int) -> int | None:
    """Return where the call that begins here ends; None if its arguments are no literals."""
    for closing in re.finditer(r"\)", prompt[start:]):
        text = prompt[start : start + closing.end()]
        try:
            call = ast.parse(text, mode="eval").body
        except SyntaxError:
            continue
        plain = isinstance(call, ast.Call) and not call.keywords and all(_literal(ast.unparse(one)) for one in call.args)
        return start + len(text) if plain else None
    return None


def _literal(text: str) -> str | None:
    """Return the literal in a text, in the form of `repr`; None if the text is no literal."""
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError):
        return None
