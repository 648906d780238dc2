"""With each guard left out in turn: what it alone holds gets through, and what others hold as well does not."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import pytest
from reliability.attempts import targets
from reliability.guards import TRIP_WIRE, Row, classes, left_out, removals, rows, table

from bench.run.sandbox import guards

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64") or bool(guards().missing),
    reason="where all guards are in force only",
)
LIMITS = Path(__file__).parents[3] / "docs" / "limits.md"
EMPTIES, READS = "os.open(module, os.O_RDONLY | os.O_TRUNC)", "open(secret).read()"
CONNECTS, FORKS = "socket.create_connection(('127.0.0.1', port), 1)", "os.fork() or os._exit(0)"

ALONE = [
    ("limits", "bounds", "memory"),
    ("idle time", "bounds", "idle time"),
    pytest.param("parent's end", "bounds", "outliving its parent", marks=pytest.mark.endurance),
    ("other files", "files", READS),
    ("truncation", "files", EMPTIES),
    ("system calls", "channels", "os.eventfd(0)"),
]
TOGETHER = [
    ("capabilities", "files", "os.chroot('.')"),
    ("TCP", "channels", CONNECTS),
    ("signals", "signals", "os.kill(victim, 9)"),
    ("system calls", "files", READS),
    ("system calls", "signals", "os.kill(victim, 9)"),
    ("other files", "processes", FORKS),
    ("limits", "processes", FORKS),
]


def gets_through(removed: tuple[str, ...], kind: str, attack: str) -> bool:
    with left_out(removed), targets(sacrificed=True) as target:
        return classes(sacrificed=True)[kind][attack](target)


@pytest.mark.parametrize(("guard", "kind", "attack"), ALONE)
def test_what_a_guard_alone_holds_gets_through_without_it_and_not_with_it(guard: str, kind: str, attack: str) -> None:
    assert gets_through((guard, TRIP_WIRE), kind, attack)
    assert not gets_through((TRIP_WIRE,), kind, attack)


@pytest.mark.parametrize(("guard", "kind", "attack"), TOGETHER)
def test_what_two_guards_hold_one_of_them_holds(guard: str, kind: str, attack: str) -> None:
    assert not gets_through((guard, TRIP_WIRE), kind, attack)


def test_each_guard_is_left_out_with_the_trip_wire_and_without() -> None:
    removed_sets = list(removals())
    names = {guard.name for guard in guards().each}
    assert {name for removed in removed_sets for name in removed} == names and removed_sets[0] == ()
    assert all((name,) in removed_sets and (name, TRIP_WIRE) in removed_sets for name in names - {TRIP_WIRE})


def test_a_table_has_a_line_for_each_removal_and_says_how_many_held() -> None:
    shown = table([Row("root", "nothing", "files", 3, 3, ()), Row("root", "TCP", "files", 3, 2, ("x",))])
    assert shown.splitlines()[2:] == ["| root | nothing | all 3 |", "| root | TCP | 2 of 3 |"]


def test_there_are_as_many_attacks_as_is_said() -> None:
    match = re.search(r"The hostile suite has (\d+) attacks", LIMITS.read_text(encoding="utf-8"))
    assert match and 250 <= int(match[1]) == sum(map(len, classes(sacrificed=False).values()))


@pytest.mark.endurance
def test_nothing_gets_through_with_all_guards_in_force() -> None:
    assert [row for row in rows(without=[(), (TRIP_WIRE,)]) if row.through] == []
