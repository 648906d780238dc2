"""asyncpg: `with_asyncpg.py DSN ROUNDS` prints rows, and then writes as many on their own."""

import asyncio
import sys

import asyncpg


async def main(dsn: str, rounds: int) -> None:
    async with asyncpg.create_pool(dsn, min_size=2, max_size=2) as pool, pool.acquire() as session:
        async with session.transaction():
            await session.executemany("INSERT INTO refunds (order_id, cents) VALUES ($1, $2)", [("o-1", 100), ("ö-2", None)])
            print([tuple(row) for row in await session.fetch("SELECT * FROM every_type")])
            print([tuple(row) async for row in session.cursor("SELECT n FROM generate_series(1, 120) AS n", prefetch=50)])
        print(
            await session.copy_records_to_table(
                "refunds", records=[("c", n) for n in range(1000)], columns=("order_id", "cents")
            )
        )
        try:
            await session.fetch("SELECT nothing FROM nowhere")
        except asyncpg.UndefinedTableError as error:
            print(error.sqlstate, error)
        print([tuple(row) for row in await session.fetch("SELECT * FROM refunds ORDER BY id")])
        for number in range(rounds):
            await session.execute("INSERT INTO refunds (cents) VALUES ($1)", number)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
