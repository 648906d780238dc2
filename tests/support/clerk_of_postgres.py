"""An agent that acts on the PostgreSQL database that SHOP names. It looks, pays back in a transaction, and writes a mail. It
leaves a session that has not answered for a second, and looks before it pays again."""

from __future__ import annotations

import os
import socket
from threading import Timer

import psycopg

LOOK = "SELECT cents, (SELECT count(*) FROM refunds) FROM orders WHERE id = %s"


def asked(statement: str, *values: object) -> tuple[int, ...]:
    with psycopg.connect(os.environ["SHOP"]) as session, socket.socket(fileno=os.dup(session.fileno())) as connection:
        leaving = Timer(1.0, connection.shutdown, [socket.SHUT_RDWR])
        leaving.start()
        cursor = session.execute(statement.encode(), values)
        row = cursor.fetchone() if cursor.description else ()
        session.commit()
        leaving.cancel()
        return row or ()


for _ in range(3):
    try:
        cents, paid = asked(LOOK, "o-17")
        if paid == 0:
            asked("INSERT INTO refunds (order_id, cents) VALUES (%s, %s)", "o-17", cents)
        break
    except psycopg.Error as error:
        print(error)
asked("INSERT INTO mails (recipient) VALUES (%s)", "ada@example.com")
print("Done.")
