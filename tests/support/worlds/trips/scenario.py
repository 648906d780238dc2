"""Trips: three bookings that stand or fall together, a payment, a letter, and a strike that changes a flight."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from sqlite3 import Row
from typing import Any

from pydantic import BaseModel

from bench.run.packs import PackFolder
from bench.scenario import Grade, Json, Output, Scenario, Subtask
from bench.worlds.run.environment import (
    Call,
    Db,
    Environment,
    EventKind,
    Facts,
    FinalWorld,
    Moment,
    Person,
    Policy,
    PolicyVerdict,
    ProcedureStep,
    Scheduled,
    Standing,
    Tool,
    ToolRefused,
    World,
)

SCHEMA = """
CREATE TABLE trips (id INTEGER PRIMARY KEY, price INTEGER NOT NULL, carrier TEXT NOT NULL, hotel TEXT NOT NULL, reason TEXT);
CREATE TABLE bookings (id INTEGER PRIMARY KEY, trip INTEGER NOT NULL, what TEXT NOT NULL, carrier TEXT NOT NULL, open INTEGER);
CREATE TABLE payments (trip INTEGER NOT NULL, amount INTEGER NOT NULL);
CREATE TABLE letters (trip INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE approvals (trip INTEGER NOT NULL, approved INTEGER NOT NULL);
"""
MOST = 500
PARTS = ("flight", "hotel", "car")


@dataclass(frozen=True)
class Trip:
    id: int
    price: int
    carrier: str = "north"
    hotel: str = "free"
    reason: str = "business"

    @property
    def is_owed(self) -> bool:
        return self.hotel == "free" and (self.price <= MOST or self.reason == "business")


class TripId(BaseModel):
    trip: int


class Shown(BaseModel):
    trip: int
    price: int
    carrier: str


class Booking(BaseModel):
    trip: int
    carrier: str


class Payment(BaseModel):
    trip: int
    amount: int


class Letter(BaseModel):
    trip: int
    text: str


class Done(BaseModel):
    number: int


class Chosen(Output):
    book: bool
    amount: int


def read_trip(db: Db, arguments: TripId, _: Moment) -> Shown:
    row = db.row("SELECT id, price, carrier FROM trips WHERE id = ?", arguments.trip)
    if row is None:
        raise ToolRefused(f"there is no trip {arguments.trip}")
    return Shown(trip=row["id"], price=row["price"], carrier=row["carrier"])


def booking(what: str) -> Any:
    def book(db: Db, arguments: Booking, _: Moment) -> Done:
        if what == "hotel" and db.value("SELECT hotel FROM trips WHERE id = ?", arguments.trip) != "free":
            raise ToolRefused("the hotel is full")
        db.write(
            "INSERT INTO bookings (trip, what, carrier, open) VALUES (?, ?, ?, 1)", arguments.trip, what, arguments.carrier
        )
        return Done(number=db.value("SELECT max(id) FROM bookings"))

    return book


def cancelling(what: str) -> Any:
    def cancel(db: Db, arguments: TripId, _: Moment) -> Done:
        found = db.value("SELECT max(id) FROM bookings WHERE trip = ? AND what = ? AND open", arguments.trip, what)
        if found is None:
            raise ToolRefused(f"no {what} is booked")
        db.write("UPDATE bookings SET open = 0 WHERE id = ?", found)
        return Done(number=found)

    return cancel


def pay(db: Db, arguments: Payment, _: Moment) -> Done:
    db.write("INSERT INTO payments VALUES (?, ?)", arguments.trip, arguments.amount)
    return Done(number=arguments.trip)


def send(db: Db, arguments: Letter, _: Moment) -> Done:
    db.write("INSERT INTO letters VALUES (?, ?)", arguments.trip, arguments.text)
    return Done(number=arguments.trip)


def about(arguments: Any) -> tuple[str, ...]:
    return (f"trip {arguments.trip}",)


def of_strike(payload: Mapping[str, Any]) -> tuple[str, ...]:
    return (f"trip {payload['trip']}",)


def strike(db: Db, payload: Mapping[str, Any], _: Moment) -> None:
    db.write("UPDATE trips SET carrier = 'south' WHERE id = ?", payload["trip"])


def decide(db: Db, tool: str, arguments: Any, _: Moment) -> PolicyVerdict:
    if tool != "pay" or arguments.amount <= MOST:
        return PolicyVerdict()
    if db.value("SELECT 1 FROM approvals WHERE trip = ? AND approved", arguments.trip):
        return PolicyVerdict("warn", "approved")
    return PolicyVerdict("person", "large", f"{arguments.amount} is more than {MOST}")


def careful(db: Db, question: Mapping[str, Any], _: Moment) -> bool:
    return bool(db.value("SELECT reason FROM trips WHERE id = ?", question["trip"]) == "business")


def record(db: Db, question: Mapping[str, Any], approved: bool, _: Moment) -> None:
    db.write("INSERT INTO approvals VALUES (?, ?)", question["trip"], int(approved))


def _trips(db: Db) -> list[Trip]:
    return [Trip(**dict(row)) for row in db.all("SELECT * FROM trips")]


def audit(db: Db) -> Iterable[Standing]:
    for trip in _trips(db):
        for part in PARTS:
            times = db.value("SELECT count(*) FROM bookings WHERE trip = ? AND what = ? AND open", trip.id, part)
            yield Standing(f"{part} of trip {trip.id}", times, owed=trip.is_owed, compensable=True)
        paid = db.value("SELECT count(*) FROM payments WHERE trip = ?", trip.id)
        yield Standing(f"payment for trip {trip.id}", paid, owed=trip.is_owed)
        sent = db.value("SELECT count(*) FROM letters WHERE trip = ?", trip.id)
        yield Standing(f"letter on trip {trip.id}", sent, owed=True)


def procedure(trips: Sequence[Trip], strikes: Sequence[int]) -> tuple[ProcedureStep, ...]:
    return tuple(step for trip in trips for step in _steps(trip.id, trip.id in strikes))


def _booked(part: str, n: int) -> Callable[[Facts], list[Call]]:
    return lambda facts: [Call(f"book_{part}", {"trip": n, "carrier": facts.read["trip"]["carrier"]})]


def _steps(n: int, is_struck: bool) -> Iterable[ProcedureStep]:
    parts = [f"{part} {n}" for part in PARTS]
    saga, shown = f"trip {n}", {"trip": Call("read_trip", {"trip": n})}

    def wanted(facts: Facts) -> bool:
        return bool(facts.decided.get(f"choose {n}", {}).get("book"))

    def paid(facts: Facts) -> list[Call]:
        return [Call("pay", {"trip": n, "amount": facts.decided[f"choose {n}"]["amount"]})]

    def told(facts: Facts) -> list[Call]:
        return [Call("send", {"trip": n, "text": "booked" if f"payment for trip {n}" in facts.results else "sorry"})]

    yield ProcedureStep(f"choose {n}", on="requested", reads=lambda _: shown, judgment="choose")
    for part, name in zip(PARTS, parts, strict=True):
        booked = _booked(part, n)
        yield ProcedureStep(name, after=(f"choose {n}",), saga=saga, needed=wanted, reads=lambda _: shown, effects=booked)

    def is_booked(facts: Facts) -> bool:
        return wanted(facts) and all(f"{part} of trip {n}" in facts.results for part in PARTS)

    yield ProcedureStep(f"pay {n}", after=tuple(parts), saga=saga, needed=is_booked, reads=lambda _: shown, effects=paid)
    if is_struck:
        yield ProcedureStep(
            f"change {n}",
            on="strike",
            after=(f"pay {n}",),
            needed=lambda facts: f"flight of trip {n}" in facts.results,
            reads=lambda _: shown,
            effects=lambda facts: [
                Call("cancel_flight", {"trip": n}),
                Call("book_flight", {"trip": n, "carrier": facts.read["trip"]["carrier"]}),
            ],
        )
    yield ProcedureStep(f"tell {n}", after=(f"pay {n}",), starts=Moment(3), effects=told)


def reference(world: World) -> None:
    trips = [Trip(**row) for row in world.environment.rows["trips"]]
    for trip in trips:
        if not trip.is_owed:
            continue
        for part in PARTS:
            world.call("read_trip", {"trip": trip.id})
            world.call(f"book_{part}", {"trip": trip.id, "carrier": trip.carrier}, f"{part} {trip.id}")
        if trip.price > MOST:
            world.ask("manager", f"payment for trip {trip.id}", {"trip": trip.id})
            world.wait(minutes=90)
        world.call("pay", {"trip": trip.id, "amount": trip.price}, f"pay {trip.id}")
    world.wait_until(Moment(2))
    for event in world.environment.events:
        if event.kind == "strike":
            n = event.payload["trip"]
            carrier = world.call("read_trip", {"trip": n}).result.carrier
            world.call("cancel_flight", {"trip": n}, f"cancel {n}")
            world.call("book_flight", {"trip": n, "carrier": carrier}, f"flight {n} again")
    for trip in trips:
        world.call("send", {"trip": trip.id, "text": "booked" if trip.is_owed else "sorry"}, f"tell {trip.id}")


def nothing(_: World) -> None:
    pass


def right(_: str, documents: Mapping[str, str]) -> Json:
    return {"book": True, "amount": json.loads(documents["trip"])["price"]}


def grade(world: FinalWorld, _: Any) -> Grade:
    settled = [_is_settled(world.db, row) for row in world.db.all("SELECT * FROM trips")]
    return Grade(all(settled), sum(settled) / len(settled), {}, f"{sum(settled)} of {len(settled)} trips are right")


def _is_settled(db: Db, row: Row) -> bool:
    trip = Trip(**dict(row))
    booked = [
        (one["what"], one["carrier"] if one["what"] == "flight" else "")
        for one in db.all("SELECT what, carrier FROM bookings WHERE trip = ? AND open ORDER BY what", trip.id)
    ]
    paid = db.value("SELECT coalesce(sum(amount), 0) FROM payments WHERE trip = ?", trip.id)
    if not trip.is_owed:
        return (booked, paid) == ([], 0)
    return booked == [("car", ""), ("flight", trip.carrier), ("hotel", "")] and bool(paid == trip.price)


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    return {}


def _of_part(part: str) -> Iterable[Tool]:
    def key(one: Any) -> str:
        return f"{part} of trip {one.trip}"

    def whose(arguments: Any, _: Any) -> dict[str, int]:
        return {"trip": arguments.trip}

    undo = f"cancel_{part}"
    yield Tool(f"book_{part}", "compensable", Booking, Done, booking(part), key, undo=undo, undoing=whose, about=about)
    yield Tool(undo, "final", TripId, Done, cancelling(part), key)


def environment(trips: Sequence[Trip], strikes: Sequence[int] = ()) -> Environment:
    """`strikes`: the trips whose flight is another one from day 2 on."""
    requests = [Scheduled("request", "requested", Moment(0), {"trips": [trip.id for trip in trips]})]
    return Environment(
        schema=SCHEMA,
        rows={"trips": [asdict(trip) for trip in trips]},
        tools=(
            Tool("read_trip", "read", TripId, Shown, read_trip, about=about),
            *(tool for part in PARTS for tool in _of_part(part)),
            Tool("pay", "final", Payment, Done, pay, lambda one: f"payment for trip {one.trip}", about=about),
            Tool("send", "final", Letter, Done, send, lambda one: f"letter on trip {one.trip}"),
        ),
        audit=audit,
        reference=reference,
        wrong={"nothing": nothing},
        given=("trip",),
        right=right,
        events=(*requests, *(Scheduled(f"strike {n}", "strike", Moment(2), {"trip": n}) for n in strikes)),
        kinds=(EventKind("requested"), EventKind("strike", strike, of_strike)),
        people={"manager": Person(careful, record)},
        policy=Policy("trips-1", decide),
        throttle=0,
        ends=Moment(10),
        procedure=procedure(trips, strikes),
    )


TRIPS = (Trip(1, 300), Trip(2, 200, hotel="full"), Trip(3, 900), Trip(4, 800, reason="private"))
STRUCK = (1,)
ALL = "all"
VARIANTS = ("trips", "hard")
"""In the second every trip either is denied once it is booked, or has its flight struck."""


def instances(folder: PackFolder) -> tuple[str, ...]:
    """All of TRIPS together, and many with one drawn trip each."""
    if folder.variant == "hard":
        return tuple(f"{what}_{number:02}" for number in range(1, 41) for what in ("denied", "struck"))
    return (ALL, *(f"trip_{number:02}" for number in range(1, 41)))


def drawn(instance: str) -> tuple[Trip, bool]:
    """A trip, and whether its flight is struck."""
    draw = Random(instance)
    if instance.startswith("denied"):
        return Trip(1, draw.randrange(600, 1000), reason="private"), False
    if instance.startswith("struck"):
        return Trip(1, draw.randrange(100, 500)), True
    hotel, reason = draw.choice(("free", "free", "free", "full")), draw.choice(("business", "business", "private"))
    return Trip(1, draw.randrange(100, 1000), hotel=hotel, reason=reason), draw.random() < 0.5


def scenario(folder: PackFolder, instance: str) -> Scenario:
    trip, is_struck = drawn(instance)
    world = environment(TRIPS, STRUCK) if instance == ALL else environment([trip], [1] if is_struck else [])
    return folder.scenario(
        (Subtask("choose", folder.prompt("choose"), ("policy.md", "trip"), Chosen),),
        grade=grade,
        baseline=baseline,
        reference={"choose": {"book": True, "amount": 300}},
        wrong=(),
        truth={},
        environment=world,
    )
