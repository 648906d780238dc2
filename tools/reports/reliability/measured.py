"""What the tests of the promises measured: they say it as properties in the report that pytest writes of them.

record_property("processor", 0.4)   seconds of processor
record_property("peak", 120.0)      MiB of memory above what was held before
record_property("stall", 0.03)      seconds in which the event loop stood still
record_property("wait", 0.2)        seconds in which somebody else was not answered
record_property("place", "a reply") where that was, if the test's parameter does not say it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from xml.etree import ElementTree

from reliability.kept import Measured

PROMISED: Mapping[str, float] = {"processor": 1.0, "peak": 200.0, "stall": 0.1, "wait": 1.0}
"""At most, of eight megabytes of the worst and of a hostile answer."""
UNITS: Mapping[str, str] = {"processor": "s of processor", "peak": "MiB", "stall": "s of stall", "wait": "s of waiting"}
HEADINGS: Mapping[str, str] = {"processor": "Processor s", "peak": "Peak MiB", "stall": "Stall s", "wait": "Wait s"}


def measured_in(cases: Iterable[ElementTree.Element]) -> list[Measured]:
    """Return the most of each place, in the order in which they came."""
    most = dict[tuple[str, str], Measured]()
    for measured in (measured for case in cases for measured in _of(case)):
        before = most.get(key := (measured.place, measured.what))
        most[key] = (
            measured if before is None else Measured(*key, before.tries + measured.tries, max(before.most, measured.most))
        )
    return list(most.values())


def _of(case: ElementTree.Element) -> Iterator[Measured]:
    properties = {str(entry.get("name")): str(entry.get("value")) for entry in case.iter("property")}
    name = str(case.get("name"))
    place = properties.get("place") or name.partition("[")[2].removesuffix("]") or name
    for what in PROMISED:
        if what in properties:
            yield Measured(place, what, int(properties.get("tries", "1")), float(properties[what]))


def missed(measured: Iterable[Measured]) -> Iterator[str]:
    """Yield a line for each measurement above what is promised."""
    for row in measured:
        if row.most > PROMISED[row.what]:
            yield f"{row.place}: {row.most:.2f} {UNITS[row.what]}, and {PROMISED[row.what]:g} are promised."
