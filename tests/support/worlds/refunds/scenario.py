"""Refunds for three orders: the smallest world that has all that a world can have, for the tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from sqlite3 import Row
from typing import Any

from pydantic import BaseModel

from bench.run.packs import PackFolder
from bench.scenario import Grade, Json, Output, Scenario, Subtask
from bench.worlds.run.environment import (
    Db,
    Environment,
    EventKind,
    FinalWorld,
    Moment,
    Person,
    Policy,
    PolicyVerdict,
    Scheduled,
    Standing,
    Tool,
    ToolRefused,
    World,
)

SCHEMA = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, price INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders, amount INTEGER NOT NULL, at INTEGER);
CREATE TABLE reservations (order_id INTEGER NOT NULL REFERENCES orders, open INTEGER NOT NULL);
CREATE TABLE messages (order_id INTEGER NOT NULL REFERENCES orders, text TEXT NOT NULL);
CREATE TABLE approvals (order_id INTEGER NOT NULL, approved INTEGER NOT NULL);
"""
OWED = ("damaged", "lost")
MOST = 100


class OrderId(BaseModel):
    order: int


class Order(BaseModel):
    order: int
    price: int
    state: str


class Refund(BaseModel):
    order: int
    amount: int


class Done(BaseModel):
    number: int


class Message(BaseModel):
    order: int
    text: str


class Decided(Output):
    refund: bool
    amount: int


def read_order(db: Db, arguments: OrderId, _: Moment) -> Order:
    row = db.row("SELECT id, price, state FROM orders WHERE id = ?", arguments.order)
    if row is None:
        raise ToolRefused(f"there is no order {arguments.order}")
    return Order(order=row["id"], price=row["price"], state=row["state"])


def refund(db: Db, arguments: Refund, now: Moment) -> Done:
    db.write("INSERT INTO refunds (order_id, amount, at) VALUES (?, ?, ?)", arguments.order, arguments.amount, now.total)
    return Done(number=db.value("SELECT max(id) FROM refunds"))


def reserve(db: Db, arguments: OrderId, _: Moment) -> Done:
    db.write("INSERT INTO reservations VALUES (?, 1)", arguments.order)
    return Done(number=arguments.order)


def release(db: Db, arguments: OrderId, _: Moment) -> Done:
    if not db.write(
        "UPDATE reservations SET open = 0 WHERE rowid = (SELECT rowid FROM reservations WHERE order_id = ? AND open LIMIT 1)",
        arguments.order,
    ):
        raise ToolRefused(f"nothing is reserved for order {arguments.order}")
    return Done(number=arguments.order)


def notify(db: Db, arguments: Message, now: Moment) -> Done:
    db.write("INSERT INTO messages VALUES (?, ?)", arguments.order, arguments.text)
    db.later("reply", now.after(days=1), {"order": arguments.order}, f"reply to order {arguments.order}")
    return Done(number=arguments.order)


def order_of(arguments: Any) -> tuple[str, ...]:
    return (f"order {arguments.order}",)


def of_payload(payload: Mapping[str, Any]) -> tuple[str, ...]:
    return (f"order {payload['order']}",)


def found(db: Db, payload: Mapping[str, Any], _: Moment) -> None:
    """A parcel that was lost turns up."""
    db.write("UPDATE orders SET state = 'found' WHERE id = ?", payload["order"])


def decide(db: Db, tool: str, arguments: Any, _: Moment) -> PolicyVerdict:
    if tool != "refund" or arguments.amount <= MOST:
        return PolicyVerdict()
    if db.value("SELECT 1 FROM approvals WHERE order_id = ? AND approved", arguments.order):
        return PolicyVerdict("warn", "approved")
    return PolicyVerdict("person", "large", f"{arguments.amount} is more than {MOST}")


def careful(db: Db, question: Mapping[str, Any], _: Moment) -> bool:
    return db.value("SELECT state FROM orders WHERE id = ?", question["order"]) in OWED


def record(db: Db, question: Mapping[str, Any], approved: bool, _: Moment) -> None:
    db.write("INSERT INTO approvals VALUES (?, ?)", question["order"], int(approved))


def audit(db: Db) -> Iterable[Standing]:
    approved = "SELECT 1 FROM approvals WHERE order_id = refunds.order_id AND approved"
    for order in db.all("SELECT * FROM orders"):
        number = order["id"]
        yield Standing(
            f"refund of order {number}",
            db.value("SELECT count(*) FROM refunds WHERE order_id = ?", number),
            owed=order["state"] in OWED,
            unauthorised=db.value(
                f"SELECT count(*) FROM refunds WHERE order_id = ? AND amount > ? AND NOT EXISTS ({approved})", number, MOST
            ),
        )
        times = db.value("SELECT coalesce(sum(open), 0) FROM reservations WHERE order_id = ?", number)
        yield Standing(f"reservation for order {number}", times, owed=False, compensable=True, unauthorised=0)
        sent = db.value("SELECT count(*) FROM messages WHERE order_id = ?", number)
        yield Standing(f"message on order {number}", sent, owed=order["state"] in OWED, unauthorised=0)


def reference(world: World) -> None:
    for number in (1, 2, 3):
        order = world.call("read_order", {"order": number}).result
        if order.state not in OWED:
            continue
        world.call("reserve", {"order": number}, f"reserve {number}")
        if order.price > MOST:
            world.ask("manager", f"order {number}", {"order": number})
            world.wait(minutes=90)
        world.call("refund", {"order": number, "amount": order.price}, f"refund {number}")
        world.call("release", {"order": number}, f"release {number}")
        world.call("notify", {"order": number, "text": "refunded"}, f"notify {number}")


def nothing(_: World) -> None:
    pass


def all_refunded(world: World) -> None:
    for number in (1, 2, 3):
        world.call("refund", {"order": number, "amount": 10})


def right(_: str, documents: Mapping[str, str]) -> Json:
    order = json.loads(documents["order"])
    owed = order["state"] in OWED
    return {"refund": owed, "amount": order["price"] if owed else 0}


def grade(world: FinalWorld, _: Any) -> Grade:
    settled = [_is_settled(world.db, order) for order in world.db.all("SELECT * FROM orders")]
    return Grade(all(settled), sum(settled) / len(settled), {}, f"{sum(settled)} of {len(settled)} orders are settled right")


def _is_settled(db: Db, order: Row) -> bool:
    paid = db.value("SELECT coalesce(sum(amount), 0) FROM refunds WHERE order_id = ?", order["id"])
    return bool(paid == (order["price"] if order["state"] in OWED else 0))


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    return {}


def environment() -> Environment:
    return Environment(
        schema=SCHEMA,
        rows={
            "orders": [
                {"id": 1, "price": 40, "state": "damaged"},
                {"id": 2, "price": 250, "state": "lost"},
                {"id": 3, "price": 70, "state": "delivered"},
            ]
        },
        tools=(
            Tool("read_order", "read", OrderId, Order, read_order, about=order_of),
            Tool("refund", "final", Refund, Done, refund, lambda one: f"refund of order {one.order}", about=order_of),
            Tool(
                "reserve",
                "compensable",
                OrderId,
                Done,
                reserve,
                lambda one: f"reservation for order {one.order}",
                undo="release",
            ),
            Tool("release", "final", OrderId, Done, release, lambda one: f"reservation for order {one.order}"),
            Tool("notify", "final", Message, Done, notify, lambda one: f"message on order {one.order}"),
        ),
        audit=audit,
        reference=reference,
        wrong={"nothing": nothing, "all_refunded": all_refunded},
        given=("order",),
        right=right,
        events=(
            Scheduled("trigger", "opened", Moment(0), {"orders": [1, 2, 3]}),
            Scheduled("reminder", "opened", Moment(2), {"orders": [1, 2, 3]}),
        ),
        kinds=(EventKind("opened"), EventKind("reply"), EventKind("found", found, of_payload)),
        people={"manager": Person(careful, record)},
        policy=Policy("refunds-1", decide),
        ends=Moment(10),
    )


def scenario(folder: PackFolder) -> Scenario:
    subtasks = (Subtask("decide", folder.prompt("decide"), ("policy.md", "order"), Decided),)
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        reference={"decide": {"refund": True, "amount": 40}},
        wrong=(),
        truth={},
        environment=environment(),
    )
