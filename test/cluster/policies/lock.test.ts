/** DistributedLocks on the real API server: validation, deletion while held, who writes the status. */
import { afterAll, describe, expect, test } from 'vitest';
import type { Identity, KubeObject } from '../../support/kube.ts';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import { openWorld, type World } from './world.ts';

const lockPath = (at: World, name = '', sub = ''): string =>
  `/apis/kilit.dev/v1alpha1/namespaces/${at.namespace}/distributedlocks${name && `/${name}`}${sub && `/${sub}`}`;

const aLock = (name: string, spec?: object): KubeObject => ({
  apiVersion: 'kilit.dev/v1alpha1',
  kind: 'DistributedLock',
  metadata: { name },
  ...(spec !== undefined && { spec: spec as KubeObject }),
});

/** Held locks with the annotation kilit.dev/force-delete, and its value. */
const FORCED = {
  forced: 'true',
  'forced-false': 'false',
  'forced-empty': '',
  'forced-yes': 'yes',
  'forced-capital': 'True',
};

const at = useWorld(
  () => openWorld('lock'),
  async (world) => {
    const forced = Object.entries(FORCED);
    for (const name of ['held', 'free', 'keeping', ...forced.map(([name]) => name)]) {
      await world.kube.must('POST', lockPath(world), { body: aLock(name) });
    }
    const status = { holder: { kind: 'Pod', name: 'holder', uid: world.holder.uid }, fencingToken: '4711' };
    for (const name of ['held', ...forced.map(([name]) => name)]) {
      await world.kube.must('PATCH', lockPath(world, name, 'status'), { as: world.who.operator, body: { status } });
    }
    for (const [name, value] of forced) {
      await world.kube.must('PATCH', lockPath(world, name), {
        body: { metadata: { annotations: { 'kilit.dev/force-delete': value } } },
      });
    }
    const now = new Date().toISOString();
    const conditions = [
      { type: 'Held', status: 'True', reason: 'Confirmed', message: 'Held.', lastTransitionTime: now },
    ];
    await world.kube.must('PATCH', lockPath(world, 'keeping', 'status'), {
      as: world.who.operator,
      body: { status: { conditions } },
    });
    await world.kube.must('PATCH', lockPath(world, 'held'), {
      as: world.who.operator,
      body: { metadata: { finalizers: ['kilit.dev/holder'] } },
    });
  },
);
// The finalizer would keep the namespace: the operator, scaled away meanwhile, takes it off in real life.
afterAll(async () => {
  const { kube, who } = at.world;
  await kube.ask('PATCH', lockPath(at.world, 'held'), { as: who.operator, body: { metadata: { finalizers: [] } } });
});

const patching = (path: (at: World) => string, body: unknown) => (at: World, as: Identity) =>
  at.kube.ask('PATCH', `${path(at)}?dryRun=All`, { as, body });
const deleting = (name: string) => (at: World, as: Identity) =>
  at.kube.ask('DELETE', `${lockPath(at, name)}?dryRun=All`, { as });
const creating = (lock: KubeObject) => (at: World, as: Identity) =>
  at.kube.ask('POST', `${lockPath(at)}?dryRun=All`, { as, body: lock });
const status = (name: string, value: unknown) => patching((at) => lockPath(at, name, 'status'), { status: value });

const attacks: readonly Attack[] = [
  {
    name: 'a person deletes a held lock',
    as: 'editor',
    send: deleting('held'),
    refused:
      /lock held is held by Pod holder with token 4711; stop its holder first, or annotate the lock kilit\.dev\/force-delete=true/,
  },
  ...Object.entries(FORCED)
    .filter(([, value]) => value !== 'true')
    .map(([name, value]) => ({
      name: `a person deletes a held lock whose annotation kilit.dev/force-delete is "${value}"`,
      as: 'editor' as const,
      send: deleting(name),
      refused: new RegExp(
        `annotate the lock kilit\\.dev/force-delete=true, exactly \\(it is "${value}"\\), and delete`,
      ),
    })),
  {
    name: 'an administrator deletes a lock that is Held but names no holder',
    as: 'admin',
    send: deleting('keeping'),
    refused: /lock keeping is held by a Pod with token unknown; stop its holder first/,
  },
  {
    name: 'an administrator deletes all locks of the namespace, a held one among them',
    as: 'admin',
    send: (at, as) => at.kube.ask('DELETE', `${lockPath(at)}?dryRun=All`, { as }),
    refused: /is held by /,
  },
  {
    name: 'an administrator writes the status',
    as: 'admin',
    send: status('held', { holder: null }),
    refused: /the status of lock held is written by the kilit operator only, not by "[a-z-]*admin"/,
  },
  {
    name: "somebody with the operator's user name but no Pod writes the status",
    as: 'impostor',
    send: status('held', { fencingToken: '9999' }),
    refused: /is written by the kilit operator only/,
  },
  {
    name: 'a person removes the finalizer that waits for the holder',
    as: 'editor',
    send: patching((at) => lockPath(at, 'held'), { metadata: { finalizers: [] } }),
    refused: /the finalizer kilit\.dev\/holder of lock held is removed by the kilit operator/,
  },
  {
    name: 'the operator lets the token fall',
    as: 'operator',
    send: status('held', { fencingToken: '999' }),
    refused: /`fencingToken` must never fall: 999 is less than 4711/,
  },
  {
    name: 'the operator removes the token',
    as: 'operator',
    send: status('held', { fencingToken: null }),
    refused: /`fencingToken` must not be removed: it never falls/,
  },
  {
    name: 'the operator writes a token with leading zeros',
    as: 'operator',
    send: status('held', { fencingToken: '04712' }),
    refused: /should match '\^\(0\|\[1-9\]\[0-9\]\{0,17\}\)\$'/,
  },
  {
    name: 'the operator lists eleven waiters',
    as: 'operator',
    send: status('held', {
      queue: Array.from({ length: 11 }, () => ({ kind: 'Pod', name: 'a', uid: 'b', reason: 'Waiting' })),
    }),
    refused: /must have at most 10 items/,
  },
  {
    name: 'a lock takes over after more than an hour',
    as: 'editor',
    send: creating(aLock('new', { takeoverDelaySeconds: 3601 })),
    refused: /spec\.takeoverDelaySeconds: Invalid value: 3601: `takeoverDelaySeconds` must be at most 3600/,
  },
  {
    name: 'a lock takes over before it has expired',
    as: 'editor',
    send: creating(aLock('new', { takeoverDelaySeconds: -1 })),
    refused: /`takeoverDelaySeconds` must be at least 0/,
  },
  {
    name: 'a lock lasts less than five seconds',
    as: 'editor',
    send: creating(aLock('new', { leaseDurationSeconds: 4 })),
    refused: /spec\.leaseDurationSeconds: Invalid value: 4: `leaseDurationSeconds` must be at least 5/,
  },
  {
    name: 'a lock lasts more than an hour',
    as: 'editor',
    send: creating(aLock('new', { leaseDurationSeconds: 3601 })),
    refused: /`leaseDurationSeconds` must be at most 3600/,
  },
  {
    name: 'a lock waits less than ten seconds for a program',
    as: 'editor',
    send: creating(aLock('new', { startDeadlineSeconds: 9 })),
    refused: /`startDeadlineSeconds` must be at least 10/,
  },
  {
    name: 'a lock waits more than an hour for a program',
    as: 'editor',
    send: creating(aLock('new', { startDeadlineSeconds: 3601 })),
    refused: /`startDeadlineSeconds` must be at most 3600/,
  },
  {
    name: 'a lock is held for less than ten seconds',
    as: 'editor',
    send: creating(aLock('new', { maxHoldSeconds: 9 })),
    refused: /`maxHoldSeconds` must be at least 10/,
  },
  {
    name: 'a lock has a name that no label can hold',
    as: 'editor',
    send: creating(aLock('x'.repeat(64))),
    refused: /`metadata\.name` must be a DNS label of at most 63 characters/,
  },
  {
    name: 'a lock has a name with dots',
    as: 'editor',
    send: creating(aLock('a.b')),
    refused: /`metadata\.name` must be a DNS label/,
  },
];

const legitimate: readonly Attempt[] = [
  { name: 'a person creates a lock without a spec', as: 'editor', send: creating(aLock('new')) },
  {
    name: 'a person creates a lock at the bounds',
    as: 'editor',
    send: creating(aLock('x'.repeat(63), { leaseDurationSeconds: 3600, takeoverDelaySeconds: 0 })),
  },
  {
    name: 'a person changes the spec of a held lock',
    as: 'editor',
    send: patching((at) => lockPath(at, 'held'), { spec: { leaseDurationSeconds: 30 } }),
  },
  { name: 'a person deletes a free lock', as: 'editor', send: deleting('free') },
  { name: 'a person deletes a held lock by force', as: 'editor', send: deleting('forced') },
  { name: 'the namespace controller deletes a held lock', as: 'namespaceController', send: deleting('held') },
  { name: 'the garbage collector deletes a held lock', as: 'garbageCollector', send: deleting('held') },
  { name: 'the operator writes a greater token', as: 'operator', send: status('held', { fencingToken: '10000' }) },
  { name: 'the operator takes the holder away', as: 'operator', send: status('held', { holder: null }) },
  {
    name: 'the operator removes the finalizer',
    as: 'operator',
    send: patching((at) => lockPath(at, 'held'), { metadata: { finalizers: [] } }),
  },
];

describe('a DistributedLock', () => {
  tryAll(at, { attacks, legitimate });

  test('has the defaults of its spec without one', async () => {
    const { spec } = await at.world.kube.must('GET', lockPath(at.world, 'free'));
    expect(spec).toEqual({
      leaseDurationSeconds: 15,
      takeoverDelaySeconds: 5,
      startDeadlineSeconds: 60,
      takeover: 'Lease',
      onRenewalFailure: 'Stop',
    });
  });

  test('shows holder, token, waiters, readiness and age under its short name', () => {
    const table = at.world.kube.kubectl(['get', 'dlock', 'held', '-n', at.world.namespace]);
    expect(table).toMatch(/^NAME +HOLDER +TOKEN +WAITERS +READY +AGE\nheld +holder +4711 /);
  });

  test('may be viewed by whoever may view the namespace, and not changed', async () => {
    const binding = `/apis/rbac.authorization.k8s.io/v1/namespaces/${at.world.namespace}/rolebindings`;
    const apiGroup = 'rbac.authorization.k8s.io';
    await at.world.kube.must('POST', binding, {
      body: {
        metadata: { name: 'viewer' },
        roleRef: { apiGroup, kind: 'ClusterRole', name: 'view' },
        subjects: [{ apiGroup, kind: 'User', name: 'victor' }],
      },
    });
    const as: Identity = { kind: 'user', name: 'victor', groups: ['system:authenticated'] };
    await expect.poll(async () => (await at.world.kube.ask('GET', lockPath(at.world), { as })).status).toBe(200);
    const answer = await at.world.kube.ask('DELETE', lockPath(at.world, 'free'), { as });
    expect(answer.status).toBe(403);
  });
});
