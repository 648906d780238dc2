"""psycopg: `with_psycopg.py DSN ROUNDS` prints rows, and then writes as many on their own."""

import sys

import psycopg

with psycopg.connect(sys.argv[1]) as session:
    for order, cents in (("o-1", 100), ("ö-2", None)):
        session.execute("INSERT INTO refunds (order_id, cents) VALUES (%s, %s)", (order, cents))
    print(session.execute("SELECT * FROM every_type").fetchall())
    session.commit()
    with session.pipeline():
        cursors = [session.execute("SELECT %s * 2", (number,)) for number in range(50)]
    print([cursor.fetchone() for cursor in cursors])
    with session.cursor().copy("COPY refunds (order_id, cents) FROM STDIN") as copy:
        for number in range(1000):
            copy.write_row((f"o-{number}", number))
    with session.cursor().copy("COPY refunds TO STDOUT") as copy:
        print(sum(len(data) for data in copy))
    try:
        session.execute("SELECT nothing FROM nowhere")
    except psycopg.errors.UndefinedTable as error:
        print(error.sqlstate, error.diag.message_primary)
    session.rollback()
    print(session.execute("SELECT * FROM refunds ORDER BY id").fetchall())
with psycopg.connect(sys.argv[1], autocommit=True) as session:
    for number in range(int(sys.argv[2])):
        session.execute("INSERT INTO refunds (cents) VALUES (%s)", (number,))
