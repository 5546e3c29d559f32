/** Charges a customer behind the guard, with Drizzle on `pg`. `FENCING_TOKEN` comes from kilit. */
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgSchema } from 'drizzle-orm/pg-core';
import { postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';

const charge = pgSchema('shop').table('charge', { customer: integer().notNull(), cents: integer().notNull() });

const token = process.env.FENCING_TOKEN ?? '';
const pool = new pg.Pool(); // PGHOST, PGUSER, …
const guard = postgresGuard(pool, { resource: 'shop/billing' });

try {
  await guard.seal(token);
  await guard.transaction(token, async (client) => {
    await drizzle({ client }).insert(charge).values({ customer: 1, cents: 990 });
  });
} catch (error) {
  // A stale token: another holds the lock now.
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await pool.end();
}
