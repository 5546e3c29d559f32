/** Charges a customer behind the guard, with the driver `postgres`. `FENCING_TOKEN` comes from kilit. */
import { postgresJsGuard } from 'kilit/guards/postgres';
import postgres from 'postgres';

const token = process.env.FENCING_TOKEN ?? '';
const sql = postgres(); // PGHOST, PGUSER, …
const guard = postgresJsGuard(sql, { resource: 'shop/billing' });

try {
  await guard.seal(token);
  await guard.transaction(token, async (tx) => {
    await tx`insert into shop.charge (customer, cents) values (${1}, ${990})`;
  });
} catch (error) {
  // A stale token: another holds the lock now.
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await sql.end();
}
