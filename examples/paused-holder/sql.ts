/** A small psql, since the image has none: `sql DATABASE STATEMENT…`. Prints each row as one line of JSON. */
import pg from 'pg';

const [database, ...statements] = process.argv.slice(2);
if (database === undefined || statements.length === 0) {
  console.error('Usage: sql DATABASE STATEMENT…   for example: sql guarded "select * from kilit.refusals"');
  process.exit(2);
}
const client = new pg.Client({ database });
try {
  await client.connect();
  for (const statement of statements) {
    for (const row of (await client.query<object>(statement)).rows) console.log(JSON.stringify(row));
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
} finally {
  await client.end();
}
