/**
 * `npm run bench:guard`: what the PostgreSQL guard costs a transaction like pgbench's, as a ratio of medians in one run.
 *
 * Two copies of pgbench's tables in one database, one protected. Each connection draws for each transaction which of the
 * two it writes, so that a disk or a machine whose speed varies varies for both. Commits reach the disk (fsync on).
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openServer, program } from '../../test/support/postgres/index.ts';

const SECONDS = 30;
const SCALE = 10;
const TABLES = ['pgbench_accounts', 'pgbench_tellers', 'pgbench_branches', 'pgbench_history'];

const script = (schema: string, begin: string): string => `\\set aid random(1, 100000 * ${SCALE})
\\set bid random(1, ${SCALE})
\\set tid random(1, 10 * ${SCALE})
\\set delta random(-5000, 5000)
${begin}UPDATE ${schema}.pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM ${schema}.pgbench_accounts WHERE aid = :aid;
UPDATE ${schema}.pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE ${schema}.pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO ${schema}.pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
`;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

await using server = await openServer({ settings: { fsync: 'on' } });
const database = await server.createDatabase();
const pgbench = program('pgbench');
const run = promisify(execFile);
console.log(`PostgreSQL ${server.version}; filling the tables`);
await run(pgbench, ['-i', '-q', '-s', String(SCALE), database.url()]);
await database.query('create schema plain');
for (const table of TABLES) {
  await database.query(`create table plain.${table} (like public.${table} including all)`);
  await database.query(`insert into plain.${table} select * from public.${table}`);
  await database.query(`select kilit.protect('public.${table}', 'shop/bench')`);
}
await database.query('vacuum analyze');

const folder = await mkdtemp(join(tmpdir(), 'kilit-bench-'));
try {
  const plain = join(folder, 'plain.sql');
  const guarded = join(folder, 'guarded.sql');
  const enter = "SELECT kilit.enter('shop/bench', '4711');\n";
  await writeFile(plain, script('plain', 'BEGIN;\n'));
  // As the driver `pg` sends them: without a round trip in between.
  await writeFile(guarded, script('public', `\\startpipeline\nBEGIN;\n${enter}\\endpipeline\n`));
  /** Latencies of all transactions of one run, in milliseconds: without the guard, with it. */
  const latencies = async (clients: number): Promise<readonly [readonly number[], readonly number[]]> => {
    const prefix = `log-${clients}`;
    const options = ['-n', '-M', 'prepared', '-f', plain, '-f', guarded, '-c', String(clients), '-j', '2'];
    await run(pgbench, [...options, '-T', String(SECONDS), '-l', '--log-prefix', prefix, database.url()], {
      cwd: folder,
    });
    const logs = (await readdir(folder)).filter((name) => name.startsWith(`${prefix}.`));
    const lines = (await Promise.all(logs.map((log) => readFile(join(folder, log), 'utf8'))))
      .join('')
      .trim()
      .split('\n');
    // client, number, microseconds, script, …
    const fields = lines.map((line) => line.split(' '));
    const of = (script: string) =>
      fields.filter((field) => field[3] === script).map((field) => Number(field[2]) / 1000);
    return [of('0'), of('1')];
  };
  for (const clients of [1, 16]) {
    console.log(`${clients} connections: ${SECONDS} s`);
    const [without, withGuard] = await latencies(clients);
    const [a, b] = [median(without), median(withGuard)];
    console.log(
      `${clients} connections: median of ${without.length} transactions ${a.toFixed(2)} ms without, of ${withGuard.length} ${b.toFixed(2)} ms with the guard: ratio ${(b / a).toFixed(2)}`,
    );
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
