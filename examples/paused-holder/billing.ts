/**
 * Charges every customer once a month, one after the other.
 *
 * It runs in two Pods behind the lock `billing`, so one of them works at a time. "Nearly always", says kilit: a Pod that
 * was paused in the middle wakes up and goes on. The guard lets PostgreSQL refuse what such a late program writes.
 *
 *   FENCING_TOKEN   set by kilit; never changes during the life of this process
 *   GUARD=off       the same program without the guard, to see what it is for
 *   SLOW_STEP_MS    how long it thinks about one customer (default 1000)
 *   PGHOST, …       where PostgreSQL is
 */
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockError, postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';

const { FENCING_TOKEN: token = '', GUARD, SLOW_STEP_MS = '1000', MONTH = '2026-01' } = process.env;
const RETRY_MS = 200;
const LOOK_AGAIN_MS = 1000;

type Work<Result> = (tx: Pick<pg.ClientBase, 'query'>) => Promise<Result>;

interface Customer {
  readonly id: number;
  readonly name: string;
  readonly cents: number;
}

const say = (text: string): void => console.log(`token ${token}: ${text}`);

/** A session that the database ends must fail the transaction, not the process: so each connection has a listener. */
const db = new pg.Pool({ application_name: hostname(), connectionTimeoutMillis: 5000 });
db.on('error', () => {});
db.on('connect', (client) => client.on('error', () => {}));

const guard = postgresGuard(db, { resource: 'shop/billing' });

const transaction = <Result>(work: Work<Result>): Promise<Result> =>
  GUARD === 'off' ? plainTransaction(work) : guard.transaction(token, work);

/** One customer in one transaction: looks who is not charged yet, thinks, writes. Right while nobody does it besides. */
async function chargeNext(tx: Pick<pg.ClientBase, 'query'>): Promise<Customer | undefined> {
  const { rows } = await tx.query<Customer>(
    `select id, name, cents from customer
      where not exists (select from charge where charge.customer = customer.id and charge.month = $1)
      order by id limit 1`,
    [MONTH],
  );
  const [customer] = rows;
  if (customer === undefined) return undefined;
  say(`about to charge customer ${customer.id} (${customer.name})`);
  await sleep(Number(SLOW_STEP_MS)); // Here the Pod is paused, past its lease.
  await tx.query('insert into charge (month, customer, cents, token) values ($1, $2, $3, $4)', [
    MONTH,
    customer.id,
    customer.cents,
    token,
  ]);
  return customer;
}

/** What a program does without the guard. */
async function plainTransaction<Result>(work: Work<Result>): Promise<Result> {
  const client = await db.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

async function run(): Promise<never> {
  let sealed = GUARD === 'off';
  let idle = false;
  say('started');
  for (;;) {
    try {
      if (!sealed) {
        // From now on no former holder can write, whether or not this one has written.
        const { endedSessions } = await guard.seal(token);
        say(`sealed; ended ${endedSessions} sessions of former holders`);
        sealed = true;
      }
      const customer = await transaction(chargeNext);
      if (customer !== undefined) say(`charged customer ${customer.id} (${customer.name})`);
      else if (!idle) say('all customers are charged');
      idle = customer === undefined;
      if (idle) await sleep(LOOK_AGAIN_MS);
    } catch (error) {
      if (error instanceof LockError && error.code === 'StaleToken') {
        say(error.message);
        process.exit(1);
      }
      say(`failed: ${error instanceof Error ? error.message : String(error)}; trying again`);
      await sleep(RETRY_MS);
    }
  }
}

process.on('SIGTERM', () => process.exit(0));
await run();
