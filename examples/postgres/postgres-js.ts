/** Charges a customer behind the guard, with the driver `postgres`. `FENCING_TOKEN` comes from kilit. */
import { postgresJsGuard } from 'kilit/guards/postgres';
import postgres from 'postgres';

const token = process.env.FENCING_TOKEN ?? '';
const sql = postgres(); // PGHOST, PGUSER, …
const guard = postgresJsGuard(sql, { resource: 'shop/billing' });

try {
  await guard.seal(token);
  await guard.transaction(token, async (tx) => {
    await tx`insert into charge (customer, cents) values (${1}, ${990})`;
  });
} finally {
  await sql.end();
}
