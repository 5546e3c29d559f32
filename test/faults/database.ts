/** The history tables in a real PostgreSQL server of this machine, which Pods reach through a relay. */
import { createServer, connect as dial, type Socket } from 'node:net';
import pg from 'pg';
import { openServer } from '../support/postgres/index.ts';

/** One accepted write. `tick` counts the writes to all three tables in their order. */
export interface Row {
  readonly tick: number;
  readonly lock: string;
  readonly token: bigint;
  readonly pod: string;
  readonly life: string;
  /** Wall clock of this machine, milliseconds since 1970. */
  readonly at: number;
}

export interface HistoryDatabase extends AsyncDisposable {
  /** For programs in Pods. */
  readonly url: string;
  /** Of the guarded tables, of the unguarded one, and of the programs that had sealed. */
  rows(table: 'guarded' | 'unguarded' | 'sealed'): Promise<readonly Row[]>;
  /** The newest row of each lock in the guarded table. */
  newest(): Promise<ReadonlyMap<string, Row>>;
  /** The first guarded row of the lock with a token greater than this. */
  firstAfter(lock: string, token: bigint): Promise<Row | undefined>;
  /** Writes that the guard refused. */
  refusals(): Promise<number>;
}

/** A table is guarded by one resource, so each lock has one. */
const guardedTable = (lock: string): string => `guarded_${lock}`;

const table = (name: string): string => `
  create table shop.${name} (
    tick bigint primary key default nextval('shop.tick'), lock text not null, token bigint not null,
    pod text not null, life text not null, at timestamptz not null default clock_timestamp());
  create index on shop.${name} (lock, tick);
  alter table shop.${name} owner to owner;
  grant select, insert on shop.${name} to app;
`;

/**
 * `host` is an address of this machine that Pods reach; `locks` are the resources whose writes the guard checks.
 *
 * With guard `off` the guarded table is a plain one: the check of its history must find that out.
 */
export async function openHistoryDatabase(options: {
  readonly host: string;
  readonly locks: readonly string[];
  readonly guard: 'on' | 'off';
}): Promise<HistoryDatabase> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await openServer({ settings: { max_connections: '300' } }));
  const database = stack.use(await server.createDatabase());
  await database.query(`create sequence shop.tick; grant usage on sequence shop.tick to app;
    ${['unguarded', 'sealed', ...options.locks.map(guardedTable)].map(table).join('')}`);
  for (const lock of options.guard === 'on' ? options.locks : []) {
    await database.query('select kilit.protect($1::regclass, $2)', [`shop.${guardedTable(lock)}`, lock]);
  }
  const port = await relay(stack, options.host, server.port);
  const client = new pg.Pool({ connectionString: database.url(), max: 4 });
  stack.defer(() => client.end());
  const select = 'select tick::int, lock, token, pod, life, (extract(epoch from at) * 1000)::float8 as at from shop';
  const read = async (text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    (await client.query<Omit<Row, 'token'> & { token: string }>(text, [...values])).rows.map((row) => ({
      ...row,
      token: BigInt(row.token),
    }));
  const all = stack.move();
  return {
    url: database.url('app').replace(`127.0.0.1:${server.port}`, `${options.host}:${port}`),
    rows: (name) =>
      name === 'guarded'
        ? read(`${options.locks.map((lock) => `${select}.${guardedTable(lock)}`).join(' union all ')} order by tick`)
        : read(`${select}.${name} order by tick`),
    newest: async () => {
      const rows = await Promise.all(
        options.locks.map((lock) => read(`${select}.${guardedTable(lock)} order by tick desc limit 1`)),
      );
      return new Map(rows.flat().map((row) => [row.lock, row]));
    },
    firstAfter: async (lock, token) =>
      (await read(`${select}.${guardedTable(lock)} where token > $1 order by tick limit 1`, [String(token)]))[0],
    refusals: async () => {
      const { rows } = await client.query<{ refused: string | null }>(
        'select sum(refused) as refused from kilit.marks',
      );
      return Number(rows[0]?.refused ?? 0);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The server listens to this machine alone. */
async function relay(stack: AsyncDisposableStack, host: string, to: number): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((from) => {
    const onward = dial(to, '127.0.0.1');
    for (const socket of [from, onward]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        from.destroy();
        onward.destroy();
      });
    }
    from.pipe(onward).pipe(from);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  stack.defer(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
