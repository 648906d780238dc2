"""Wrong answers: the reference with one operator or sign replaced, so that a hidden test fails.

python -m scenarios.humaneval.mutants     finds them anew, in some minutes, and writes mutants.json

The file holds places alone: of each problem the line and the column of the sign, for a mutant that passes the prompt's examples
and for one that does not, where either was found. A problem without examples has one mutant.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random

from .checks import objection
from .examples import examples_of
from .hidden import failure_of
from .problems import INSTANCES, Problem, problem

FILE = Path(__file__).with_name("mutants.json")
MOST_TRIES = 8
PASSING, FAILING, UNSEEN = "passes_the_examples", "fails_the_examples", "has_no_examples"
SIGNS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"+": "-", "-": "+", "*": "+", "//": "%", "%": "//", "+=": "-=", "-=": "+="},
    **{"and": "or", "or": "and", "True": "False", "False": "True", "min": "max", "max": "min"},
}
_sign = re.compile(r"\w+|" + "|".join(map(re.escape, sorted(SIGNS, key=len, reverse=True))))
Place = tuple[int, int]
"""Line, from 1, and column, from 0."""


@cache
def chosen() -> Mapping[str, Mapping[str, Place]]:
    """Return the chosen places of mutations: instance -> kind -> place."""
    found: Mapping[str, Mapping[str, Place]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def mutated(code: str, place: Place) -> tuple[str, str]:
    """Return the code with the sign at this place replaced, and a description of the change."""
    (line, column), lines = place, code.splitlines(keepends=True)
    whole = lines[line - 1]
    sign = _sign.match(whole, column)
    assert sign is not None
    new = _exchanged(sign[0])
    assert new is not None
    lines[line - 1] = whole[:column] + new + whole[sign.end() :]
    return "".join(lines), f"in line {line} it has {new} for {sign[0]}"


def _exchanged(sign: str) -> str | None:
    return str(int(sign) + 1) if sign.isdecimal() else SIGNS.get(sign)


def _tokens(code: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(code).readline)


def _places(one: Problem) -> list[Place]:
    """Return the places in the solution, not in the prompt's part, with a sign that can be replaced."""
    given = len(one.prompt.strip("\n").splitlines())
    return [token.start for token in _tokens(one.reference) if token.start[0] > given and _exchanged(token.string) is not None]


def _find(instance: str) -> dict[str, Place]:
    one = problem(instance)
    has_examples = bool(examples_of(one.prompt, one.entry_point))
    places, found = _places(one), dict[str, Place]()
    Random(instance).shuffle(places)
    for place in places[:MOST_TRIES]:
        code, _ = mutated(one.reference, place)
        kind = (FAILING if objection(code, one.prompt) else PASSING) if has_examples else UNSEEN
        if kind not in found and (failed := failure_of(code, one)) and failed.failure == "wrong value":
            found[kind] = place
        if len(found) == (2 if has_examples else 1):
            break
    return found


def main() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(INSTANCES, pool.map(_find, INSTANCES), strict=True))
    lines = ",\n".join(
        f"{json.dumps(instance)}: {json.dumps(dict(sorted(kinds.items())))}" for instance, kinds in found.items()
    )
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
