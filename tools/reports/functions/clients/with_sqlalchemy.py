"""SQLAlchemy, with psycopg: `with_sqlalchemy.py DSN ROUNDS` prints rows, and then writes as many on their own."""

import sys

from sqlalchemy import MetaData, Table, create_engine, exc, insert, select, text

engine = create_engine(sys.argv[1].replace("postgresql://", "postgresql+psycopg://"))
refunds = Table("refunds", MetaData(), autoload_with=engine)
with engine.begin() as session:
    rows = [{"order_id": f"o-{number}", "cents": number} for number in range(300)]
    print(session.execute(insert(refunds).returning(refunds.c.id, refunds.c.cents), rows).all())
    print(session.execute(text("SELECT * FROM every_type")).all())
    nested = session.begin_nested()
    try:
        session.execute(text("SELECT nothing FROM nowhere"))
    except exc.ProgrammingError as error:
        print(error.orig.sqlstate)
        nested.rollback()
with engine.connect() as session:
    print(session.execute(select(refunds).order_by(refunds.c.id)).all())
with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as session:
    for number in range(int(sys.argv[2])):
        session.execute(insert(refunds).values(cents=number))
