/** Charges a customer behind the guard, with the driver `pg`. `FENCING_TOKEN` comes from kilit. */
import { postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';

const token = process.env.FENCING_TOKEN ?? '';
const pool = new pg.Pool(); // PGHOST, PGUSER, …
const guard = postgresGuard(pool, { resource: 'shop/billing' });

try {
  await guard.seal(token);
  await guard.transaction(token, async (client) => {
    await client.query('insert into shop.charge (customer, cents) values ($1, $2)', [1, 990]);
  });
} catch (error) {
  // A stale token: another holds the lock now.
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await pool.end();
}
