/**
 * Reads the ledger and says whether it is right: `check DATABASE`.
 *
 * Exit code 0 if every customer was charged exactly once and no token came after a greater one, 1 if not. The order is
 * that of the commits, so PostgreSQL needs `track_commit_timestamp = on`.
 */
import pg from 'pg';
import { type Charge, type Customer, faults } from './ledger.ts';

const database = process.argv[2] ?? 'guarded';
const client = new pg.Client({ database });
await client.connect();
const customers = await client.query<Customer>('select id, name from customer order by id');
const charges = await client.query<{ customer: number; token: string; written_by: string }>(
  'select customer, token, written_by from charge order by pg_xact_commit_timestamp(xmin), id',
);
await client.end();

const ledger: Charge[] = charges.rows.map(({ customer, token, written_by }) => ({
  customer,
  token: BigInt(token),
  writtenBy: written_by,
}));
for (const { customer, token, writtenBy } of ledger) {
  const name = customers.rows.find(({ id }) => id === customer)?.name ?? '?';
  console.log(`customer ${customer}  ${name.padEnd(6)} token ${token}  ${writtenBy}`);
}
const wrong = faults(customers.rows, ledger);
for (const fault of wrong) console.log(`WRONG  ${fault}`);
if (wrong.length === 0) console.log(`ok     ${customers.rows.length} customers, each charged once; no token went back`);
process.exitCode = wrong.length === 0 ? 0 : 1;
