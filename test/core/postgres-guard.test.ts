/** The guard's own part, over a driver that answers as told: what no server can be made to do on demand. */
import { afterEach, expect, test, vi } from 'vitest';
import { LockError } from '../../src/core/lock-error.ts';
import type { Driver, Query } from '../../src/guards/postgres/driver.ts';
import { enterError, guardError, serverError } from '../../src/guards/postgres/errors.ts';
import { createGuard } from '../../src/guards/postgres/guard.ts';
import { type PgClient, postgresGuard } from '../../src/guards/postgres/pg.ts';
import { tokenText } from '../../src/guards/postgres/token-input.ts';

const sqlError = (code: string, more: object = {}): Error =>
  Object.assign(new Error(`answer ${code}`), { code, ...more });
const DETAIL = '{"resource": "shop/billing", "token": "9", "mark": "10"}';
const stale = (): Error => sqlError('KL001', { detail: DETAIL });

afterEach(() => vi.useRealTimers());

/** A driver whose first `failures` transactions cannot enter. */
function refusing(failures: readonly Error[], query: Query): Driver<string> {
  const left = [...failures];
  return {
    query,
    transaction: async (_entry, work) => {
      const failure = left.shift();
      if (failure !== undefined) throw failure;
      return work('tx');
    },
  };
}

test('a refusal comes through although noting it fails', async () => {
  const guard = createGuard(
    refusing([stale()], async () => {
      throw new Error('the server is away');
    }),
    { resource: 'shop/billing' },
  );
  await expect(guard.transaction('9', async () => {})).rejects.toMatchObject({ code: 'StaleToken' });
});

test('a refusal comes through within a second although noting it hangs', async () => {
  vi.useFakeTimers();
  const noted = vi.fn<Query>(() => new Promise(() => {}));
  const guard = createGuard(refusing([stale()], noted), { resource: 'shop/billing' });
  const refused = guard.transaction('9', async () => {}).catch((error: unknown) => (error as LockError).code);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await refused).toBe('StaleToken');
  expect(noted.mock.calls).toEqual([[expect.stringContaining('kilit.report_refusal'), ['shop/billing', '9']]]);
});

test.each([
  [1, 'done'],
  [2, 'Conflict'],
])('of serialization failures while entering, %i: %s', async (failures, outcome) => {
  const errors = Array.from({ length: failures }, () => sqlError('40001'));
  const guard = createGuard(
    refusing(errors, async () => []),
    { resource: 'shop/billing' },
  );
  const ended = guard.transaction('9', async () => 'done').catch((error: unknown) => (error as LockError).code);
  expect(await ended).toBe(outcome);
});

test('the answer of the server is found below the error of a query builder', () => {
  const wrapped = new Error('Failed query: insert into "charge"', { cause: sqlError('KL004', { hint: 'Enter.' }) });
  expect(guardError(wrapped)).toMatchObject({
    code: 'NotEntered',
    message: '[NotEntered] Answer KL004. Enter.',
    cause: wrapped,
  });
});

test('an error that is none of the guard stays as it is', () => {
  const circular = new Error('a');
  circular.cause = circular;
  const others = [
    sqlError('23505'),
    sqlError('EPIPE'),
    new LockError('StaleToken', 'of another guard'),
    circular,
    'text',
  ];
  expect(others.map((error) => guardError(error))).toEqual(others);
  expect(others.map((error) => enterError(error, 'shop/billing'))).toEqual(others);
  expect(serverError(sqlError('EPIPE'))).toBeUndefined();
});

test.each([undefined, '', 'not JSON', '{"resource": "shop/billing"}', 'null'])(
  'a refusal whose DETAIL is %j is still a refusal',
  (detail) => {
    expect(guardError(sqlError('KL001', { detail }))).toMatchObject({
      code: 'StaleToken',
      details: undefined,
      message: '[StaleToken] Write refused: answer KL001. This process is no longer the holder; let it exit.',
    });
  },
);

test.each([
  ['KL002', 'InvalidConfig', false],
  ['KL003', 'InvalidConfig', false],
  ['KL004', 'NotEntered', false],
  ['KL005', 'Blocked', true],
  ['42501', 'Forbidden', false],
  ['3F000', 'InvalidConfig', false],
  ['42883', 'InvalidConfig', false],
  ['40001', 'Conflict', true],
])('SQLSTATE %s while entering is %s, retryable: %s', (state, code, retryable) => {
  expect(enterError(sqlError(state), 'shop/billing')).toMatchObject({ code, retryable });
});

test.each([['1'], ['9'], ['10'], ['9007199254740993'], ['999999999999999999']])(
  '%s is a token, also as bigint',
  (token) => {
    expect(tokenText(token)).toBe(token);
    expect(tokenText(BigInt(token))).toBe(token);
  },
);

test.each([
  [5, 'Fencing token 5 is a number, which is not exact above 2^53. Pass the text of FENCING_TOKEN, or a bigint.'],
  ['007', "Invalid fencing token '007': it must be a decimal integer from 1 to 999999999999999999."],
  ['1000000000000000000', "Invalid fencing token '1000000000000000000': it must be"],
  ['5\n', "Invalid fencing token '5\n': it must be"],
  ['', 'without one this program does not hold the lock.'],
  [undefined, 'Invalid fencing token undefined: it must be'],
])('%j is refused with what to pass', (token, message) => {
  expect(() => tokenText(token as string)).toThrow(message);
  expect(() => tokenText(token as string)).toThrow('[InvalidConfig]');
});

/** A client of `pg` that fails some statements. */
function client(
  failing: Readonly<Record<string, Error>>,
): PgClient & { readonly released: (Error | boolean | undefined)[] } {
  const released: (Error | boolean | undefined)[] = [];
  return {
    released,
    query: async (text) => {
      const failure = Object.entries(failing).find(([start]) => text.startsWith(start))?.[1];
      if (failure !== undefined) throw failure;
      return { rows: [] };
    },
    release: (error) => void released.push(error),
  };
}

const through = async (one: PgClient, work: () => Promise<unknown>): Promise<unknown> =>
  postgresGuard({ connect: async () => one }, { resource: 'shop/billing' })
    .transaction('9', work)
    .catch((error: unknown) => error);

test('pg: a client that cannot roll back does not go back to the pool, and the error of the work comes through', async () => {
  const [failure, broken] = [new Error('of the work'), new Error('socket closed')];
  const one = client({ rollback: broken });
  expect(await through(one, () => Promise.reject(failure))).toBe(failure);
  expect(one.released).toEqual([broken]);
});

test('pg: a client whose work failed goes back to the pool when it has rolled back', async () => {
  const one = client({});
  expect(await through(one, () => Promise.reject(new Error('of the work')))).toEqual(new Error('of the work'));
  expect(one.released).toEqual([undefined]);
});

test('pg: an unknown outcome of COMMIT is the error of the driver, not success', async () => {
  const lost = new Error('Connection terminated unexpectedly');
  const one = client({ 'savepoint kilit_end; commit': lost, rollback: lost });
  expect(await through(one, async () => 'done')).toBe(lost);
  expect(one.released).toEqual([lost]);
});
