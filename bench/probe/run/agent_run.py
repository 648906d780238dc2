"""The record of one run of the agent, from its start to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.common.bounds import Lookup, Many
from bench.probe.points import point_of
from bench.probe.run.gateway.journal import RowPlace
from bench.probe.run.volatile import ChangedRows, place_of
from bench.record.probe_events import GatewayCall, GatewayNoticed, StoresRead
from bench.record.probe_rows import RowDifference
from bench.record.process_events import ProcessEnded, ProcessStarted


@dataclass(frozen=True)
class AgentRun:
    """What the agent did in one run, and its effects.

    calls       the calls at the gateway, in the order of their arrival
    identities  the identity of each call (`Masks.identity`)
    readings    the readings of the stores; the last was made after the end
    lives       the starts and ends of the agent's processes, and what doors noticed
    texts       arguments, responses and output by their digests
    struck      the number of the call into which the fault was injected
    done        whether the task is done, by the owner's check or by the exit code
    said_done   whether the agent said that the task is done
    printed     the digest of the end of its output; `on_stdout`: of its standard output
    in_time     whether it ended within its limit
    abandoned   the call that its client gave up while the gateway held it back, in words: then the probe caused what the
    agent did; "" if there is none
    answers     the bytes of the responses, in the order of the calls; b"" where there are none
    checks      the digests of the answers to the owner's checks at the end
    written     the paths outside the stores that were written in the box, each with the framework that keeps the agent's
    memory there; "" if no known framework does
    refused     the hosts and ports to which connections were refused in the box
    left_running   the commands of processes that still ran when the agent had ended, and that the probe ended
    half_way    whether it gave up with a part of its effects done, and was then started once more
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
    left_running: Many[str] = ()
    half_way: bool = False
    abandoned: str = ""

    @property
    def rows(self) -> ChangedRows:
        """The rows that differ at the end from the state at the reset."""
        return rows_after(self.readings)

    def readings_by_row(self) -> Mapping[RowPlace, list[StoresRead]]:
        """Return for each row the readings in which it had changed."""
        readings: dict[RowPlace, list[StoresRead]] = {}
        for reading in self.readings:
            for row in reading.changed:
                readings.setdefault(place_of(row), []).append(reading)
        return readings

    def outer_calls(self) -> Iterator[tuple[GatewayCall, str, int]]:
        """Yield each call that is not part of another call, with its identity and a number n: it is the n-th call with this
        identity."""
        counts = Counter[str]()
        for call, identity in zip(self.calls, self.identities, strict=True):
            if call.continues is None:
                counts[identity] += 1
                yield call, identity, counts[identity]

    def times_done(self) -> Counter[str]:
        """Count how often the calls of each identity were done, according to the responses. A call that was delivered twice
        was done twice."""
        times = Counter[str]()
        for call, identity, _ in self.outer_calls():
            times[identity] += is_done(call) * (2 if point_of(call.point).by_tool else 1)
        return times


def is_done(call: GatewayCall) -> bool:
    """Return whether the server did a call, according to its response."""
    return call.passed_on is not None and call.answered is not None and not call.failed


def rows_after(readings: Sequence[StoresRead]) -> ChangedRows:
    """Return the rows that differ from the state at the reset, after these readings."""
    rows: dict[RowPlace, RowDifference] = {}
    for reading in readings:
        for row in reading.changed:
            place = place_of(row)
            before = rows[place].before if place in rows else row.before
            rows[place] = RowDifference(*place, before, row.after)
    return {place: row for place, row in rows.items() if row.before != row.after}
