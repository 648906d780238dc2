// Node's pg: `with_pg.js DSN ROUNDS` prints rows, and then writes as many on their own.
const { Client } = require("pg");

async function main(dsn, rounds) {
  const client = new Client({ connectionString: dsn });
  await client.connect();
  await client.query("BEGIN");
  await client.query("INSERT INTO refunds (order_id, cents) VALUES ($1, $2), ('ö-2', NULL)", ["o-1", 100]);
  console.log(JSON.stringify((await client.query("SELECT * FROM every_type")).rows));
  await client.query("COMMIT");
  const several = await client.query("SELECT 1 AS one; SELECT 2 AS two");
  console.log(JSON.stringify(several.map((result) => result.rows)));
  const asked = Array.from({ length: 50 }, (_, n) => client.query({ name: "twice", text: "SELECT $1::int * 2 AS n", values: [n] }));
  console.log(JSON.stringify((await Promise.all(asked)).map((result) => result.rows)));
  await client.query("SELECT nothing FROM nowhere").catch((error) => console.log(error.code, error.message));
  console.log(JSON.stringify((await client.query("SELECT * FROM refunds ORDER BY id")).rows));
  for (let n = 0; n < rounds; n++) await client.query("INSERT INTO refunds (cents) VALUES ($1)", [n]);
  await client.end();
}

main(process.argv[2], Number(process.argv[3]));
