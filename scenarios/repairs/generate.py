"""Makes an instance from its name alone: a repository whose bugs must all be fixed before a test of the whole program passes.

python -m scenarios.repairs.generate case_07              shows one
python -m scenarios.repairs.generate case_07 FOLDER       writes its repository there, for pytest
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from bench.common.errors import PackError
from bench.common.seeding import seed_of

from .calls import seen
from .domains import DOMAINS, Argument, Bug, Domain, filled, raw
from .names import DEVELOPMENT, FRESH, HIDDEN, MANY, VISIBLE
from .running import ProgramTest

T = TypeVar("T")
EVERY = (*FRESH, *DEVELOPMENT)
CALLS = 160
"""Calls that are drawn for an instance; most of them are no test."""
SHOWN, KEPT_SHOWN = 2, 1
"""Visible tests that fail until every bug is fixed, and that pass all the time."""
MOST_TURNED, MOST_KEPT, FEWEST_TURNED = 6, 4, 5
"""Tests of the two kinds, at most, and of the first at least; visible and hidden ones together."""
LONGEST = 400
"""Characters of a test's call and value."""


@dataclass(frozen=True)
class Repair:
    """An instance.

    right    path -> text of each module as it must be; `files` are those with the bugs
    bugs     in the order of the modules
    entry    the module that the tests of the whole program call
    shown    the visible tests; `hidden` are the grader's
    """

    package: str
    domain: str
    right: Mapping[str, str]
    files: Mapping[str, str]
    bugs: tuple[Bug, ...]
    entry: str
    shown: tuple[ProgramTest, ...]
    hidden: tuple[ProgramTest, ...]

    def path(self, module: str) -> str:
        return f"{self.package}/{module}.py"

    def text_of(self, tests: Sequence[ProgramTest]) -> str:
        """The tests as a file."""
        modules = [Path(path).stem for path in self.files]
        called = sorted(name for name in modules if any(f"{name}." in test.call for test in tests))
        functions = [f"def {test.name}():\n    assert {test.call} == {test.value!r}\n" for test in tests]
        return "\n\n".join([f"from {self.package} import {', '.join(called)}\n", *functions])

    def write(self, folder: Path) -> None:
        """Write the repository with its bugs and all tests: a package that can be imported, and is tested by pytest."""
        project = f'[project]\nname = "{self.package}"\nversion = "0.1.0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
        texts = {
            **self.files,
            self.path("__init__"): f'"""A program in {len(self.right)} modules."""\n',
            VISIBLE: self.text_of(self.shown),
            HIDDEN: self.text_of(self.hidden),
            "pyproject.toml": project,
        }
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")


@cache
def repair(instance: str) -> Repair:
    """The instance of this name. Raises PackError where its draws make none, which a test rules out."""
    domain, count, place, sharing = _plan()[instance]
    for bugs in _choices(domain, count)[place::sharing]:
        if made := _made(instance, domain, bugs):
            return made
    raise PackError(f"{domain}: no {count} of its bugs make the instance {instance}")


@cache
def _plan() -> Mapping[str, tuple[str, int, int, int]]:
    """Instance -> its domain, the number of its bugs, and which share of the choices of bugs is its own."""
    kinds = [(DOMAINS[at % len(DOMAINS)], at % 3 + 1) for at in range(len(EVERY))]
    plan = {name: (*kinds[at], kinds[:at].count(kinds[at]), kinds.count(kinds[at])) for at, name in enumerate(EVERY)}
    each = len(DOMAINS) * 3
    for at, name in enumerate(MANY):  # eight of a kind begin at different places among its choices of bugs
        domain, count = DOMAINS[at % len(DOMAINS)], at % 3 + 1
        plan[name] = (domain, count, at // each * len(_choices(domain, count)) // (len(MANY) // each), 1)
    return plan


@cache
def _choices(domain: str, count: int) -> list[tuple[int, ...]]:
    """Which bugs can be in it together: those of different modules. A bug that is alone is in another than the one called."""
    known = raw(domain)
    modules = [bug["module"] for bug in known["bugs"]]
    numbers = [at for at, module in enumerate(modules) if count > 1 or module != known["tests"]["module"]]
    return _shuffled([one for one in combinations(numbers, count) if len({modules[at] for at in one}) == count], domain, count)


def _made(instance: str, name: str, numbers: Sequence[int]) -> Repair | None:
    """None where too few calls are turned by all fixes and by no fewer."""
    known = raw(name)
    names = {kind: _picked(values, instance, kind) for kind, values in known["names"].items()}
    domain = filled(name, {**names, **_picked(known["constants"], instance, "constants")})
    package, bugs = names["package"], tuple(domain.bugs[at] for at in numbers)
    right = {f"{package}/{module}.py": text for module, text in domain.modules.items()}
    calls = [*_calls(instance, domain), *(probe for bug in domain.bugs if bug not in bugs for probe in bug.probes)]
    values = {call: value for call, value in _values(right, calls).items() if len(f"{call}{value!r}") <= LONGEST}
    turned = kept = {call for call in values if values[call] is not None}
    for left in _unfixed(bugs):
        found = _values(with_bugs(right, package, left), sorted(turned | kept))
        turned = {call for call in turned if found[call] != values[call]}
        kept = {call for call in kept if found[call] == values[call]}
        if len(turned) < FEWEST_TURNED or not kept:
            return None
    whole = [(f"whole_{at}", call) for at, call in enumerate(_first(values, turned, MOST_TURNED), 1)]
    same = [(f"kept_{at}", call) for at, call in enumerate(_first(values, kept, MOST_KEPT), 1)]
    probes = [(f"bug_{at}_{n}", call) for at, bug in enumerate(bugs, 1) for n, call in enumerate(bug.probes, 1)]
    shown, hidden = [*whole[:SHOWN], *same[:KEPT_SHOWN]], [*whole[SHOWN:], *same[KEPT_SHOWN:], *probes]
    values |= _values(right, [call for _, call in probes])
    return Repair(
        package,
        name,
        right,
        with_bugs(right, package, bugs),
        bugs,
        domain.tests.module,
        shown=tuple(ProgramTest(f"test_{test}", call, values[call]) for test, call in shown),
        hidden=tuple(ProgramTest(f"test_{test}", call, values[call]) for test, call in hidden),
    )


def _first(calls: Mapping[str, Any], among: set[str], most: int) -> list[str]:
    return [call for call in calls if call in among][:most]


def _unfixed(bugs: Sequence[Bug]) -> list[tuple[Bug, ...]]:
    """What is left of the bugs after each proper subset of the fixes; those with one left first."""
    return [left for size in range(1, len(bugs) + 1) for left in combinations(bugs, size)]


def with_bugs(right: Mapping[str, str], package: str, bugs: Sequence[Bug]) -> dict[str, str]:
    files = dict(right)
    for bug in bugs:
        path = f"{package}/{bug.module}.py"
        if files[path].count(f"{bug.right}\n") != 1:
            raise PackError(f"{path} must have the line once: {bug.right}")
        files[path] = files[path].replace(f"{bug.right}\n", f"{bug.wrong}\n")
    return files


def _values(files: Mapping[str, str], calls: Sequence[str]) -> dict[str, Any]:
    """What each call returns; None where it raises. The code is this pack's own, so that it may run here."""
    return {call: one.get("value") for call, one in zip(calls, seen(dict(files), list(calls)), strict=True)}


def _calls(instance: str, domain: Domain) -> list[str]:
    found = []
    for number in range(CALLS):
        inputs = {name: _argument(one, instance, number, name) for name, one in domain.tests.inputs.items()}
        found.append(domain.tests.calls[number % len(domain.tests.calls)].format(**inputs))
    return list(dict.fromkeys(found))


def _argument(argument: Argument, *seed: object) -> str:
    every = list(enumerate(argument.pick))
    always = [every[argument.pick.index(one)] for one in argument.always]
    count = argument.least + _below(argument.most - argument.least + 1, *seed, "count")
    others = _shuffled([one for one in every if one not in always], *seed)[:count]
    chosen = sorted(always + others) if argument.keep_order else [*always, *others]
    return argument.open + ", ".join(text for _, text in chosen) + argument.close


def _below(bound: int, *seed: object) -> int:
    return seed_of("repairs", *seed) % bound


def _picked(items: Sequence[T], *seed: object) -> T:
    return items[_below(len(items), *seed)]


def _shuffled(items: Sequence[T], *seed: object) -> list[T]:
    return [items[at] for at in sorted(range(len(items)), key=lambda at: seed_of("repairs", *seed, at))]


if __name__ == "__main__":
    made = repair(sys.argv[1])
    if sys.argv[2:]:
        made.write(Path(sys.argv[2]))
    else:
        tests = {VISIBLE: made.text_of(made.shown), HIDDEN: made.text_of(made.hidden)}
        print("\n".join(f"=== {path}\n{text}" for path, text in {**made.files, **tests}.items()))
