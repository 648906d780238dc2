"""The facts of one case: the task, the service, its library and the coming events. They are made from the case's name alone."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal, TypeVar

from bench.common.seeding import seed_of
from bench.worlds.run.environment import Moment

T = TypeVar("T")
Row = Mapping[str, str | int]
SERVICE = Path(__file__).with_name("service")
Work = Literal["upgrade", "triage", "add_test", "pull_request"]
WORK: Mapping[str, Work] = {
    "case": "upgrade",
    "dev": "upgrade",
    "triage": "triage",
    "test": "add_test",
    "pull": "pull_request",
    "proof": "add_test",
    "written": "pull_request",
}
"""First word of a case's name -> what is to be done in it."""
MEANT: Mapping[Work, frozenset[str]] = {
    "upgrade": frozenset(("pushed", "flaky", "legacy", "refused")),
    "triage": frozenset(("flaky",)),
    "add_test": frozenset(("flaky",)),
    "pull_request": frozenset(("pushed", "flaky", "refused")),
}
"""The traits that change what is right in a work; a case has no others."""
PARTS = ("prices", "terms", "customers", "pages", "shares", "labels")
"""What a module can use of a library; each has a file in `service/parts`."""
TRAITS: tuple[frozenset[str], ...] = tuple(
    frozenset(traits.split())
    for traits in (
        "",
        "pushed",
        "flaky",
        "legacy",
        "",
        "refused",
        "flaky pushed",
        "legacy pushed",
        "",
        "flaky legacy",
        "pushed refused",
        "",
    )
)
"""By a case's number. pushed: a colleague pushes to main meanwhile. flaky: a test fails in its first run. legacy: the database
in use holds names that the new library refuses. refused: the reviewer knows that the new version is to be withdrawn."""
LIBRARIES = ("tally", "plumb", "ledgerkit", "quill", "tarn", "wicket")
SERVICES = ("harbour", "granary", "signal", "orchard", "foundry", "causeway", "beacon", "quarry")
CUSTOMERS = ("Anna Berg", "Carl Dahl", "north_yard ltd", "Eva Fors", "South_Quay inc", "Gun Holm", "Ivar Juhl", "Kaj Lind")
LEGACY = ("Åsa Öberg", "Jörg Müller", "Zoë Sørensen")
OPENED, PUSHED, PUSHED_SOON, LAST_LOOK, ENDS = 540, 550, 543, 960, 1080
"""Minutes of the day: the ticket comes, the colleague pushes (soon, where one module is
to be changed), an upgrade that is still on trial is given up, the day ends."""


NEARLY = 1
"""Of a module's wrong lines, that which passes its tests."""


@dataclass(frozen=True)
class Module:
    """A module that uses the library in one line. `wrong` has lines that change its behaviour: the old line, one that passes
    the tests, and one more."""

    name: str
    part: str
    about: str
    changed: str
    body: str
    old: str
    right: str
    wrong: tuple[str, ...]
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Case:
    """A case. `orders` are the orders of the tests, and `production` those of the production database."""

    name: str
    work: Work
    service: str
    library: str
    versions: tuple[str, str]
    modules: tuple[Module, ...]
    orders: tuple[Row, ...]
    production: tuple[Row, ...]
    traits: frozenset[str]

    @property
    def branch(self) -> str:
        """Return the name of the working branch."""
        return f"test-{self.modules[0].name}" if self.work == "add_test" else f"{self.library}-{self.versions[1]}"

    @property
    def is_written(self) -> bool:
        """Return whether the model writes the code, instead of choosing among offered lines."""
        return self.name.startswith(("proof", "written"))

    @property
    def choosing(self) -> str:
        """Return the name of the judgment that determines the test to be added."""
        return "write_test" if self.is_written else "choose"

    @property
    def is_wanted(self) -> bool:
        """Return whether the change should be merged and in use at the end."""
        return not self.traits & {"legacy", "refused"}

    @property
    def pushed_at(self) -> int:
        """Return the minute at which a colleague pushes: during the rewriting of the modules."""
        return PUSHED_SOON if self.work == "pull_request" else PUSHED

    def moment(self, minute: int) -> Moment:
        return Moment(0, minute)


@cache
def case_of(name: str) -> Case:
    """Return the case with this name, such as `case_07`, `dev_07` or `triage_02`."""
    word, _, digits = name.rpartition("_")
    number, work = int(digits) - 1, WORK[word]
    traits, modules = TRAITS[number % len(TRAITS)] & MEANT[work], 3 if work in ("upgrade", "triage") else 1
    library, major = _picked(LIBRARIES, name, "library"), 1 + _below(4, name, "version")
    customers = shuffled([*CUSTOMERS, *(LEGACY if "legacy" in traits else ())], name, "customers")
    return Case(
        name=name,
        work=work,
        service=_picked(SERVICES, name, "service"),
        library=library,
        versions=(f"{major}.{_below(9, name, 'minor')}", f"{major + 1}.0"),
        modules=tuple(_module(part, library, name) for part in shuffled(PARTS, name, "parts")[:modules]),
        orders=tuple(_order(name, number, CUSTOMERS[number - 1]) for number in range(1, 7)),
        production=tuple(_order(name, number, customers[number % len(customers)]) for number in range(1, 31)),
        traits=traits,
    )


def _module(part: str, library: str, name: str) -> Module:
    known = part_of(part)
    lines = {word: Template(known[word]).substitute(library=library) for word in ("old", "right")}
    wrong = [Template(line).substitute(library=library) for line in known["wrong"]]
    module = _picked(known["names"], name, part)
    return Module(
        name=module,
        part=part,
        about=known["about"],
        changed=known["changed"],
        body=known["body"].strip("\n"),
        wrong=(lines["old"], *wrong),
        before=known["before"].strip("\n"),
        after=known["after"].strip("\n"),
        **lines,
    )


@cache
def part_of(name: str) -> Mapping[str, Any]:
    return tomllib.loads((SERVICE / "parts" / f"{name}.toml").read_text(encoding="utf-8"))


def _order(name: str, number: int, customer: str) -> Row:
    """Return an order. The first two of each database are plain, so that a test of only these misses most mistakes."""
    plain, placed = number <= 2, 10 + _below(20, name, number, "placed")
    cents, left = (0, 0) if plain else (5 + _below(90, name, number, "cents"), 1 + _below(2, name, number, "left"))
    late = not plain and number % 2
    return {
        "id": number,
        "customer": customer,
        "price": f"{1 + _below(80, name, number, 'price')}.{cents:02}",
        "quantity": 3 * (1 + _below(5, name, number, "quantity")) + left,
        "placed": placed,
        "due": placed - 3 if late else placed + 7,
    }


def _below(bound: int, *seed: object) -> int:
    return seed_of("service_upgrade", *seed) % bound


def _picked(items: Sequence[T], *seed: object) -> T:
    return items[_below(len(items), *seed)]


def shuffled(items: Sequence[T], *seed: object) -> list[T]:
    return [items[at] for at in sorted(range(len(items)), key=lambda at: seed_of("service_upgrade", *seed, at))]
