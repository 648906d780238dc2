"""One course of the agent, from its start to its end, as it is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.common.bounds import Lookup, Many
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.volatile import ChangedRows, place_of
from bench.record.probe_events import GatewayCall, GatewayNoticed, StoresRead
from bench.record.probe_rows import RowDifference
from bench.record.process_events import ProcessEnded, ProcessStarted


@dataclass(frozen=True)
class AgentCourse:
    """What one course of the agent did and left.

    calls       at the gateway, in the order of their arrival
    identities  which call each is (`Masks.identity`)
    readings    of the stores; the last came after the end
    lives       the processes of the agent, and what doors noticed besides
    texts       arguments, answers and output by their digests
    struck      number of the struck call
    done        whether the task is done, by the owner's check or by the exit code
    said_done   whether the agent said so
    printed     the digest of the end of what it printed, and `on_stdout` of what it printed on its standard output
    in_time     whether it ended before its limit
    abandoned   in words which call its client gave up while the gateway held it: what the agent did then is the probe's doing
    answers     the bytes that the calls were answered, in their order; b"" where there are none
    checks      what the owner's checks answered at the end
    written     the paths outside of the stores at which something was written in the box, each with the framework that keeps
                there what the agent knows; "" if none known here does
    refused     the hosts and ports of the network that it reached for in the box, and that nothing declares
    half_way    whether it gave up while a part of its effects stood, and was then started once more
    """

    calls: Many[GatewayCall]
    identities: Many[str]
    readings: Many[StoresRead]
    lives: Many[ProcessStarted | ProcessEnded | GatewayNoticed] = ()
    texts: Lookup[str, str] = field(default_factory=dict)
    struck: int | None = None
    done: bool = True
    said_done: bool = True
    printed: str | None = None
    on_stdout: str | None = None
    in_time: bool = True
    code: int | None = 0
    seconds: float = 0.0
    answers: Many[bytes] = ()
    checks: Many[str] = ()
    written: Lookup[str, str] = field(default_factory=dict)
    refused: Many[str] = ()
    half_way: bool = False
    abandoned: str = ""

    @property
    def rows(self) -> ChangedRows:
        """The rows that differ at the end from the state at the reset."""
        return rows_after(self.readings)

    def steps(self) -> Mapping[RowPlace, list[StoresRead]]:
        """Return for each row the readings of the stores that showed a change of the row."""
        steps: dict[RowPlace, list[StoresRead]] = {}
        for reading in self.readings:
            for row in reading.changed:
                steps.setdefault(place_of(row), []).append(reading)
        return steps

    def own_calls(self) -> Iterator[tuple[GatewayCall, str, int]]:
        """Yield each call that is no part of another call. Each comes with its identity, and with how often this identity was
        called before."""
        times = Counter[str]()
        for call, identity in zip(self.calls, self.identities, strict=True):
            if call.continues is None:
                times[identity] += 1
                yield call, identity, times[identity]


def rows_after(readings: Sequence[StoresRead]) -> ChangedRows:
    """Return the rows that differ from the state at the reset, after these readings of the stores."""
    rows: dict[RowPlace, RowDifference] = {}
    for reading in readings:
        for row in reading.changed:
            place = place_of(row)
            before = rows[place].before if place in rows else row.before
            rows[place] = RowDifference(*place, before, row.after)
    return {place: row for place, row in rows.items() if row.before != row.after}
