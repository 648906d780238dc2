"""Each guard of the sandbox taken away in turn: what still holds, and what gets through.

    PYTHONPATH=tools/reports python -m reliability.guards [--as-nobody]

Every attack of the hostile suite is tried with each guard left out, once with Python's trip-wire in force and once as code that
has stepped over it, which a clever one can. What gets through then does no harm: it has targets of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from reliability.attacks import GROUPS, UNTRIED, attacks
from reliability.attempts import FILES, LIMITS, SECRET, TRIES, Target, absent, attacked, forged, targets
from reliability.bounds import BOUNDS
from reliability.normal_user import as_nobody
from reliability.policy import FORGED, POLICY, SLEEPS

from bench.run.sandbox import Limits, SandboxBroken, guards, run_python
from bench.run.sandbox.guards import WITHOUT_ENV

LANDLOCK = ("other files", "truncation", "TCP", "signals")
KERNEL = (*LANDLOCK, "system calls")
TRIP_WIRE = "trip-wire"
NOTHING = "nothing"
TRIES_TO_BEGIN = 5

Attempt = Callable[[Target], bool]
"""Tries one attack; whether it got through."""


@dataclass(frozen=True)
class Row:
    """What came of one class of attacks where these guards were left out.

    user      who ran it: root or a normal user
    removed   the guards, with commas between them; "nothing"
    attacks   their class
    tried     how many; `held` of them reached nothing, `through` are the others
    """

    user: str
    removed: str
    attacks: str
    tried: int
    held: int
    through: tuple[str, ...]


def removals() -> Iterator[tuple[str, ...]]:
    """Yield what is left out in turn: nothing, each guard, what a kernel without Landlock lacks, and each once more together
    with the trip-wire."""
    each = [guard.name for guard in guards().each if guard.name != TRIP_WIRE]
    yield ()
    yield (TRIP_WIRE,)
    for removed in (*((name,) for name in each), LANDLOCK):
        yield removed
        yield (*removed, TRIP_WIRE)


def rows(most: int | None = None, without: Iterable[tuple[str, ...]] | None = None) -> Iterator[Row]:
    """One for each class of attacks and each removal.

    most      of each class so many attacks; all of them if None
    without   the removals; all of them if None
    """
    user = "root" if os.geteuid() == 0 else "a normal user"
    for removed in removals() if without is None else without:
        missing = {guard.name for guard in guards().missing} | set(removed)
        sacrificed = not missing.isdisjoint(KERNEL)
        with left_out(removed), targets(sacrificed) as target:
            for kind, attempts in classes(sacrificed).items():
                chosen = list(attempts.items())[:most]
                through = tuple(name for name, attempt in chosen if _gets_through(attempt, target))
                yield Row(user, ", ".join(removed) or NOTHING, kind, len(chosen), len(chosen) - len(through), through)


def classes(sacrificed: bool) -> dict[str, Mapping[str, Attempt]]:
    """Return class -> the name of each of its attacks, and how it is tried."""
    return {
        **{group: {body: _body(body) for body in attacks(group) if not (sacrificed and body in UNTRIED)} for group in GROUPS},
        "the trip-wire cut": {name: _cut(attack) for name, attack in POLICY.items()},
        "results forged": {name: _forged(attack) for name, attack in FORGED.items()},
        "sleeping": {name: _sleeps(attack) for name, attack in SLEEPS.items()},
        "bounds": BOUNDS,
    }


@contextmanager
def left_out(names: Iterable[str]) -> Iterator[None]:
    """Run code without these guards inside the context."""
    before = os.environ.get(WITHOUT_ENV)
    os.environ[WITHOUT_ENV] = ",".join(names)
    try:
        yield
    finally:
        os.environ.pop(WITHOUT_ENV)
        if before is not None:
            os.environ[WITHOUT_ENV] = before


def _gets_through(attempt: Attempt, target: Target) -> bool:
    reached = _tried(attempt, target)
    if not target.untouched():
        target.restore()
        return True
    return reached


def _tried(attempt: Attempt, target: Target) -> bool:
    """Return whether an attack gets through. It is tried again if the machine was so busy that the code was not begun in its
    time."""
    for _ in range(TRIES_TO_BEGIN):
        try:
            return attempt(target)
        except SandboxBroken as error:
            if "did not start" not in str(error):
                return True  # the launcher itself was ended
    raise RuntimeError("no code is begun in time; this machine is too busy")


def _body(body: str) -> Attempt:
    def attempt(target: Target) -> bool:
        result = run_python(FILES, TRIES, {**target.given, "bodies": [body]}, LIMITS)
        if isinstance(result.value, dict):
            what = str(result.value.get(body, "not refused"))
            return bool(what) and not absent(what)
        held = result.timed_out or "forbidden" in result.problem or f"signal {int(signal.SIGSYS)}" in result.problem
        return not held or (result.timed_out and "killpg(0" in body)

    return attempt


def _cut(attack: str) -> Attempt:
    return lambda target: SECRET in repr(attacked(attack, target))


def _forged(attack: str) -> Attempt:
    return lambda _: forged(attack).ok


def _sleeps(attack: str) -> Attempt:
    return lambda _: not forged(attack, Limits(wall_seconds=4.0, idle_seconds=0.2)).timed_out


def table(rows: Iterable[Row]) -> str:
    """Return a table with removals down and classes across. A cell says how many attacks were stopped, of how many."""
    by: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        by.setdefault((row.user, row.removed), {})[row.attacks] = row
    kinds = list(dict.fromkeys(kind for cells in by.values() for kind in cells))
    lines = [["as", "left out", *kinds], ["---"] * (len(kinds) + 2)]
    for (user, removed), cells in by.items():
        lines.append([user, removed, *(_cell(cells.get(kind)) for kind in kinds)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return "–"
    return f"{row.held} of {row.tried}" if row.through else f"all {row.tried}"


def main(words: list[str]) -> None:
    """Print the rows as JSON lines (`--json`), or the table and what got through."""
    if "--as-nobody" in words:
        sys.exit(as_nobody("-m", "reliability.guards", *(word for word in words if word != "--as-nobody")).returncode)
    guarded = list[Row]()
    for row in rows():
        guarded.append(row)
        if "--json" in words:
            print(json.dumps(asdict(row)), flush=True)
    if "--json" not in words:
        print(table(guarded))
        for row in guarded:
            for name in row.through:
                print(f"{row.user}, without {row.removed}: {row.attacks}: {name!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
