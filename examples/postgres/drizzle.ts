/** Charges a customer behind the guard, with Drizzle on `pg`. `FENCING_TOKEN` comes from kilit. */
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import { postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';

const charge = pgTable('charge', { customer: integer().notNull(), cents: integer().notNull() });

const token = process.env.FENCING_TOKEN ?? '';
const pool = new pg.Pool(); // PGHOST, PGUSER, …
const guard = postgresGuard(pool, { resource: 'shop/billing' });

try {
  await guard.seal(token);
  await guard.transaction(token, async (client) => {
    await drizzle({ client }).insert(charge).values({ customer: 1, cents: 990 });
  });
} finally {
  await pool.end();
}
