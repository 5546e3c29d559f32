/** Charges a customer behind the guard, with Kysely on `pg`. `FENCING_TOKEN` comes from kilit. */
import { postgresGuard } from 'kilit/guards/postgres';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';

interface Schema {
  'shop.charge': { customer: number; cents: number };
}

/** Kysely on the one connection whose transaction has entered; the guard commits it and gives it back. */
const on = (client: pg.PoolClient): Kysely<Schema> =>
  new Kysely<Schema>({
    dialect: new PostgresDialect({
      pool: {
        connect: async () => ({ query: client.query.bind(client), release: () => {} }),
        end: async () => {},
        options: {},
      },
    }),
  });

const token = process.env.FENCING_TOKEN ?? '';
const pool = new pg.Pool(); // PGHOST, PGUSER, …
const guard = postgresGuard(pool, { resource: 'shop/billing' });

try {
  await guard.seal(token);
  await guard.transaction(token, async (client) => {
    await on(client).insertInto('shop.charge').values({ customer: 1, cents: 990 }).execute();
  });
} catch (error) {
  // A stale token: another holds the lock now.
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await pool.end();
}
