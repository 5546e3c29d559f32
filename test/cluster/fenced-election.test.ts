/**
 * Unmodified leader elections of client-go and controller-runtime, over a Lease that kilit fences.
 *
 * The oracle is a table in PostgreSQL behind the guard, not what an elector believes of itself. What a program would do
 * that takes the token without the rule (`naive`) is asked too: it shows that the oracle can fail.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openTestKube } from '../support/cluster.ts';
import { buildElectors, Elector, LIBRARIES, type Library, whyNoGo } from '../support/elector-process.ts';
import { figure } from '../support/fault-scene.ts';
import type { Kube, KubeObject, TestNamespace } from '../support/kube.ts';
import { type Database, openServer, type Server } from '../support/postgres/index.ts';
import { waitFor } from '../support/wait.ts';

const TOKEN = 'kilit.dev/fencing-token';
const BUILD_MS = 1_900_000;
/** client-go lets a program send 5 requests a second. */
const QUESTIONS = 5;

const whyNot = whyNoGo();
if (whyNot !== undefined) console.log(`Skipped, fenced-election: ${whyNot}.`);

let kube: Kube;
let namespace: TestNamespace;
let electors: Awaited<ReturnType<typeof buildElectors>>;
let server: Server;
let database: Database;

const start = (library: Library, lease: string, identity: string): Elector =>
  new Elector({
    program: join(electors.dir, library),
    kubeconfig: inject('kubeconfig'),
    namespace: namespace.name,
    lease,
    identity,
  });

/** Two replicas; the first leads. */
async function twoReplicas(library: Library, lease: string) {
  const first = start(library, lease, `${lease}_first`);
  const token = await first.token();
  const second = start(library, lease, `${lease}_second`);
  return {
    first,
    token,
    second,
    [Symbol.dispose]() {
      first[Symbol.dispose]();
      second[Symbol.dispose]();
    },
  };
}

const leasePath = (name: string): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases/${name}`;
const readLease = (name: string): Promise<KubeObject> => kube.must('GET', leasePath(name));

/** A write behind the guard, in the name of a token. Returns the SQLSTATE of a refusal, or `written`. */
async function write(lease: string, token: string, writer: string): Promise<string> {
  const client = await database.connect('app');
  try {
    await client.query('begin');
    await client.query('select kilit.enter($1, $2)', [`test/${lease}`, token]);
    await client.query('insert into shop.entry (lease, token, writer) values ($1, $2, $3)', [lease, token, writer]);
    await client.query('commit');
    return 'written';
  } catch (err) {
    return String((err as { code?: unknown }).code);
  } finally {
    await client.end();
  }
}

async function history(lease: string): Promise<readonly bigint[]> {
  const rows = await database.query<{ token: string }>('select token from shop.entry where lease = $1 order by id', [
    lease,
  ]);
  return rows.map(({ token }) => BigInt(token));
}

const grows = (tokens: readonly bigint[]): boolean =>
  tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? 0n));

describe.skipIf(whyNot !== undefined)('a fenced Lease with the leader election of', () => {
  beforeAll(async () => {
    kube = openTestKube();
    namespace = await kube.namespace('fenced-election');
    electors = await buildElectors(console.error);
    server = await openServer();
    database = await server.createDatabase();
    await database.query(
      'create table shop.entry (id bigint generated always as identity, lease text, token bigint, writer text)',
      [],
      'owner',
    );
  }, BUILD_MS);
  afterAll(async () => {
    await database?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    electors?.[Symbol.dispose]();
    await namespace?.[Symbol.asyncDispose]();
    kube?.close();
  });

  describe.each(LIBRARIES)('%s', (library) => {
    test('gives every leader a greater token, whichever way it came to lead', async () => {
      const lease = `${library}-grows`;
      const tokens: string[] = [];
      let leader = start(library, lease, 'r0');
      try {
        for (let round = 0; round < 5; round += 1) {
          const token = await leader.token();
          expect(await write(lease, token, leader.identity)).toBe('written');
          tokens.push(token);
          figure(`${library}: token after it began to lead`, leader.tokenAfterMs);
          const next = start(library, lease, `r${round + 1}`);
          if (round % 2 === 0) leader.signal('SIGKILL');
          else {
            leader.signal('SIGTERM');
            await leader.ended();
          }
          if (round === 3) await kube.must('DELETE', leasePath(lease));
          leader[Symbol.dispose]();
          leader = next;
        }
      } finally {
        leader[Symbol.dispose]();
      }
      expect(grows(tokens.map(BigInt))).toBe(true);
      expect(await history(lease)).toEqual(tokens.map(BigInt));
    });

    test('keeps a paused leader from the token of the one after it, and the guard refuses its own', async () => {
      const lease = `${library}-paused`;
      using replicas = await twoReplicas(library, lease);
      const { first, token, second } = replicas;
      expect(await write(lease, token, 'first')).toBe('written');

      await first.pause();
      const pausedAt = performance.now();
      // Lies in its input, so that these are the first things that it does when it goes on.
      for (let i = 0; i < QUESTIONS; i += 1) first.ask('token', 'read', 'naive');
      const newToken = await second.token();
      figure(`${library}: next leader after a pause`, performance.now() - pausedAt);
      expect(BigInt(newToken)).toBeGreaterThan(BigInt(token));
      expect(await write(lease, newToken, 'second')).toBe('written');

      first.signal('SIGCONT');
      await waitFor('all answers', () => first.answers('naive').length === QUESTIONS);
      for (const { token: said, error } of first.answers('token')) {
        if (error === undefined) expect(said).toBe(token);
        else expect(error).toMatch(/^\[NotHolder\] Lease \S+ is held by "\S+_second", not by "\S+_first"/);
      }
      for (const { error } of first.answers('read')) {
        expect(error).toMatch(/^\[NotHolder\] Lease \S+ is held by "\S+_second"/);
      }
      expect(await write(lease, token, 'first')).toBe('KL001');
      expect(await history(lease)).toEqual([BigInt(token), BigInt(newToken)]);

      // Without the rule it would have had the winner's token, and the guard could not have told them apart.
      const stolen = new Set(first.answers('naive').map(({ token: said }) => said));
      expect([...stolen]).toEqual([newToken]);
      expect(await write(lease, [...stolen][0] ?? '', 'first')).toBe('written');
    });

    test('ends with a helper that says why there is no token, once the loser knows', async () => {
      const lease = `${library}-loser`;
      using replicas = await twoReplicas(library, lease);
      const { first, second } = replicas;
      await first.pause();
      const newToken = await second.token();
      first.signal('SIGCONT');
      await first.ended();
      const { error } = await first.answer('token');
      expect(error).toMatch(/^\[NotHolder\] Lease \S+ is held by "\S+_second".*let it exit$/);
      expect((await second.answer('token')).token).toBe(newToken);
      expect((await second.answer('read')).token).toBe(newToken);
    });

    test('cannot be cheated of its token by somebody who writes the Lease', async () => {
      const lease = `${library}-forged`;
      using leader = start(library, lease, 'leader');
      const token = await leader.token();
      const refused = async (body: unknown): Promise<string> => {
        const answer = await kube.ask('PATCH', leasePath(lease), { body });
        return `${answer.status} ${answer.body.message}`;
      };
      const forged = (value: string | null) => ({ metadata: { annotations: { [TOKEN]: value } } });
      expect(await refused(forged(String(BigInt(token) + 1n)))).toMatch(/^422 .*the fencing token must be/);
      expect(await refused({ ...forged('999999999999999999'), spec: { holderIdentity: 'thief' } })).toMatch(/^422 /);
      expect(await refused({ metadata: { labels: { 'kilit.dev/fenced': null } } })).toMatch(/^422 .*must stay/);
      expect(await refused(forged(null))).toMatch(/^200 /);
      expect((await readLease(lease)).metadata?.annotations?.[TOKEN]).toBe(token);
      expect(await leader.answer('token')).toMatchObject({ token });
    });

    test('goes on with a greater token after somebody deleted the Lease under it', async () => {
      const lease = `${library}-deleted`;
      using leader = start(library, lease, 'leader');
      const token = await leader.token();
      await kube.must('DELETE', leasePath(lease));
      const later = await waitFor('the token of the Lease that it created anew', async () => {
        const answer = await leader.answer('token');
        return answer.error === undefined && answer.token !== token && answer.token;
      });
      expect(BigInt(later)).toBeGreaterThan(BigInt(token));
      expect((await readLease(lease)).metadata?.annotations?.[TOKEN]).toBe(later);
      expect(leader.lines.filter(({ event }) => event === 'leading')).toHaveLength(1);
    });
  });

  describe('client-go, started again under the same name', () => {
    test('goes on in the term of its predecessor, whose token it does not get', async () => {
      const lease = 'same-name';
      using former = start('client-go', lease, 'app-0');
      await former.token();
      await former.pause(); // alive, as a Pod of a StatefulSet that was deleted by force
      const before = await readLease(lease);
      using again = start('client-go', lease, 'app-0');
      const { error } = await waitFor('it to lead without a token', () =>
        again.lines.find(({ event }) => event === 'no token'),
      );
      expect(again.isLeading).toBe(true);
      await waitFor('it to renew', async () => (await readLease(lease)).spec?.renewTime !== before.spec?.renewTime);
      const after = await readLease(lease);
      expect(after.metadata?.annotations).toEqual(before.metadata?.annotations);
      expect({ ...after.spec, renewTime: 0 }).toEqual({ ...before.spec, renewTime: 0 });
      expect(error).toMatch(
        /^\[NotHolder\] Lease \S+ was acquired by another process that is called "app-0", too\. Give each process an identity/,
      );
    });

    test('has a greater token when its predecessor has released', async () => {
      const lease = 'same-name-released';
      using former = start('client-go', lease, 'app-0');
      const token = await former.token();
      former.signal('SIGTERM');
      await former.ended();
      using again = start('client-go', lease, 'app-0');
      expect(BigInt(await again.token())).toBeGreaterThan(BigInt(token));
    });
  });
});
