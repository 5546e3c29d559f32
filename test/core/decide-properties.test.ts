import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Action, Grant } from '../../src/core/actions.ts';
import { decide } from '../../src/core/decide.ts';
import type { Takeover } from '../../src/core/grant-terms.ts';
import type { LeaseView } from '../../src/core/lease.ts';
import type { LockView } from '../../src/core/lock.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { eligible, waiters } from '../../src/core/queue.ts';
import { judgeTenure } from '../../src/core/tenure.ts';
import { aLease, aLock, aNode, aPod, at, heldBy, observedLock, ofVersion, SPEC, TERMS } from '../support/builders.ts';
import { applied } from '../support/model.ts';

const NAMES = ['a', 'b', 'c'] as const;

const mostly = fc.constantFrom(true, true, true, true, true, true, false);
const rarely = mostly.map((value) => !value);

const takeovers = fc.constantFrom<Takeover>('Lease', 'PodGone');

const podArbitrary = (name: string): fc.Arbitrary<PodView> =>
  fc
    .record({
      phase: fc.constantFrom('Pending', 'Running', 'Pending', 'Running', 'Succeeded', 'Failed'),
      deleting: rarely,
      disrupted: rarely,
      injected: mostly,
      node: fc.constantFrom('n1', 'n1', 'n1', 'shut', 'gone', undefined),
      version: fc.constantFrom(undefined, 'v1', 'v2'),
      second: fc.constantFrom(0, 1),
      notStarted: fc.constantFrom(undefined, undefined, '7', '900'),
      runs: fc.constantFrom({}, { c: 0 }),
      token: fc.constantFrom(undefined, '7', '900'),
      leader: fc.boolean(),
      queuedAt: fc.constantFrom(undefined, 1n, 2n, 9_000_000_000_000_000n),
      sidecarRunning: mostly,
      dead: fc.boolean(),
      finalizers: fc.constantFrom([], [], ['kilit.dev/holder'], ['other', 'kilit.dev/holder']),
    })
    .map(({ dead, version, second, runs, ...over }) =>
      aPod(name, {
        ...over,
        ...(version !== undefined && ofVersion(version, second)),
        progress: { runs, completed: 0, lastAt: undefined },
        confirmedDead: dead && !over.sidecarRunning,
      }),
    );

const leaseArbitrary: fc.Arbitrary<LeaseView | undefined> = fc.oneof(
  fc.constant(undefined),
  fc
    .record({ token: fc.constantFrom(0n, 900n, undefined), ownerUid: fc.constantFrom('uid-lock', 'other') })
    .map(aLease),
  fc
    .record({
      name: fc.constantFrom(...NAMES, 'gone'),
      broken: rarely,
      yieldAsked: fc.constantFrom(undefined, undefined, 'MaxHold', 'NotStarted'),
      confirmed: fc.boolean(),
      observedAt: fc.integer({ min: 0, max: 60_000 }),
    })
    .chain(({ name, broken, yieldAsked, confirmed, observedAt }) =>
      fc.tuple(takeovers, fc.constantFrom('Stop', 'ContinueFenced')).map(([takeover, onRenewalFailure]) => {
        const terms = { ...TERMS, takeover, onRenewalFailure };
        const lease = heldBy(aPod(name), { observedAt, yieldAsked, terms });
        const granted = { renewTime: lease.acquireTime, confirmedAt: undefined };
        if (broken) return { ...lease, ...granted, yieldAsked: undefined, broken: lease.holder, holder: STAND_IN };
        return confirmed ? lease : { ...lease, ...granted };
      }),
    ),
);

const STAND_IN = { identity: 'break-uid-lock_broken', name: 'break-uid-lock', uid: 'broken', node: undefined };

const requestArbitrary = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  '{"token":"900","by":"alice","reason":"hangs"}',
  '{"token":"899","by":"alice","reason":"hangs"}',
  'now!',
);

const lockArbitrary: fc.Arbitrary<LockView | undefined> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(undefined) },
  {
    weight: 5,
    arbitrary: fc
      .record({
        deleting: rarely,
        takeover: takeovers,
        requests: fc.record({ break: requestArbitrary, handover: requestArbitrary }),
        maxHoldSeconds: fc.constantFrom(undefined, 10),
        finalizers: fc.constantFrom([], ['kilit.dev/holder']),
        status: fc.constantFrom(
          {},
          { fencingToken: '900', holder: { kind: 'Pod', name: 'a', uid: 'uid-a' }, transitions: 4 },
          {
            fencingToken: '900',
            holder: { kind: 'Pod', name: 'b', uid: 'uid-b' },
            terms: { ...TERMS, takeover: 'PodGone' as const },
          },
          { fencingToken: '5000', transitions: 9 },
          { fencingToken: '900', lastBreak: { by: 'alice', reason: 'hangs', time: '', token: '900' } },
        ),
      })
      .map(({ maxHoldSeconds, takeover, ...over }) => aLock({ ...over, spec: { ...SPEC, maxHoldSeconds, takeover } })),
  },
);

const observedArbitrary: fc.Arbitrary<Observed> = fc
  .record({
    lock: lockArbitrary,
    lease: leaseArbitrary,
    roles: fc.record({ role: fc.boolean(), roleBinding: fc.boolean() }),
    pods: fc.tuple(...NAMES.map(podArbitrary)).chain((pods) => fc.subarray(pods)),
    gate: fc.constantFrom<Observed['gate']>(
      { open: true, base: 0n },
      { open: true, base: 1_000_000n },
      { open: true, base: 0n },
      { open: false, reason: 'PolicyNotEnforced', message: 'The binding is missing.' },
    ),
    failure: fc.constantFrom(undefined, 'Grant failed: no'),
  })
  .map((over) => observedLock({ ...over, nodes: NODES }));

const NODES = new Map([
  ['n1', aNode()],
  ['shut', aNode({ name: 'shut', cordoned: true })],
]);

/** Pod `a` holds, nothing is missing, and grants are given: what remains is whether it goes on. */
const heldArbitrary: fc.Arbitrary<Observed> = fc.tuple(observedArbitrary, lockArbitrary).map(([observed, lock]) => ({
  ...observed,
  lock: { ...aLock(), ...lock, deleting: false, finalizers: ['kilit.dev/holder'] },
  lease: heldBy(aPod('a')),
  roles: { role: true, roleBinding: true },
  gate: { open: true, base: 0n },
  failure: undefined,
}));

const RUNS = { numRuns: 5_000 };
const instants = fc.integer({ min: 0, max: 120_000 });

function checkGrant(observed: Observed, grant: Grant, instant: number): void {
  const tenure = judgeTenure(grant.lease, { ...observed, lock: grant.lock }, instant);
  expect(['free', 'ended']).toContain(tenure.kind);
  expect(observed.gate.open).toBe(true);
  expect(grant.lock.deleting).toBe(false);
  expect(grant.pod).toMatchObject({ deleting: false, injected: true, sidecarRunning: true });
  expect(['n1', 'shut']).toContain(grant.pod.node);
  expect(['Pending', 'Running']).toContain(grant.pod.phase);
  expect(grant.token).toBeGreaterThan(grant.lease.token ?? -1n);
  if (tenure.kind === 'ended') expect(grant.pod.uid).not.toBe(tenure.holder.uid);
  if (grant.terms.takeover === 'PodGone') expect(grant.pod.finalizers).toContain('kilit.dev/holder');
}

const LEASE_WRITES: ReadonlySet<Action['kind']> = new Set([
  'Grant',
  'Free',
  'AskYield',
  'Break',
  'CreateLease',
  'AdoptLease',
  'DeleteLease',
]);
const LOCK_WRITES: ReadonlySet<Action['kind']> = new Set([
  'AddFinalizer',
  'RemoveFinalizer',
  'DropRequest',
  'WriteStatus',
]);

interface Pass {
  readonly before: Observed;
  readonly actions: readonly Action[];
}

/** Decides and applies until nothing is left to do; the actions of each pass. */
function settle(start: Observed, instant: number): { readonly passes: readonly Pass[]; readonly end: Observed } {
  const passes: Pass[] = [];
  let observed = start;
  for (let pass = 0; pass < 20; pass += 1) {
    const { actions } = decide(observed, at(instant));
    if (actions.length === 0) return { passes, end: observed };
    passes.push({ before: observed, actions });
    for (const action of actions) observed = applied(observed, action, at(instant));
  }
  throw new Error(
    `Never comes to rest: ${passes.map(({ actions }) => actions.map(({ kind }) => kind).join('+')).join(' → ')}`,
  );
}

describe('whatever it observes, decide', { timeout: 60_000 }, () => {
  it('comes to rest', () => {
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => void settle(observed, instant)),
      RUNS,
    );
  });

  it('writes each object at most once in a pass', () => {
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => {
        const written = decide(observed, at(instant)).actions.map((action) => {
          if ('pod' in action && action.kind !== 'Grant') return action.pod.uid;
          if (LEASE_WRITES.has(action.kind)) return 'lease';
          return LOCK_WRITES.has(action.kind) ? 'lock' : action.kind;
        });
        expect(new Set(written).size).toBe(written.length);
      }),
      RUNS,
    );
  });

  it('grants only what nobody can hold any more, to a live waiter that is ready, with a greater token', () => {
    let grants = 0;
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => {
        for (const { before, actions } of settle(observed, instant).passes) {
          const grant = actions.find((action) => action.kind === 'Grant');
          if (grant !== undefined) checkGrant(before, grant, instant);
          grants += grant === undefined ? 0 : 1;
        }
      }),
      RUNS,
    );
    expect(grants).toBeGreaterThan(100);
  });

  it('ends with a status that names the holder of the Lease and no other, and with marks on that Pod alone', () => {
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => {
        const { end } = settle(observed, instant);
        if (end.lock === undefined || end.lock.deleting || end.lease?.token === undefined) return;
        const tenure = judgeTenure(end.lease, { ...end, lock: end.lock }, instant);
        if (tenure.kind === 'previous') return;
        const holderUid = tenure.kind === 'broken' ? undefined : end.lease.holder?.uid;
        expect(end.lock.status.holder?.uid).toBe(holderUid);
        for (const pod of end.pods) expect(pod.leader).toBe(pod.uid === holderUid);
      }),
      RUNS,
    );
  });

  it('ends no confirmed grant of takeover PodGone but by the death of its holder', () => {
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => {
        for (const { before, actions } of settle(observed, instant).passes) {
          if (before.lease?.terms.takeover !== 'PodGone' || before.lease.renewTime === before.lease.acquireTime)
            continue;
          for (const action of actions) {
            if (action.kind !== 'Grant' && action.kind !== 'Free') continue;
            // An administrator who breaks the grant vouches for the end.
            if (action.ended !== undefined) expect(['ConfirmedDeath', 'Broken']).toContain(action.ended.reason);
          }
        }
      }),
      RUNS,
    );
  });

  it('takes the finalizer from no Pod that Lease or status name, and leaves it on no other', () => {
    let removals = 0;
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => {
        const { passes, end } = settle(observed, instant);
        const named = ({ lock, lease }: Observed) => [lease?.holder?.uid, lock?.status.holder?.uid];
        for (const { before, actions } of passes) {
          for (const action of actions) {
            if (action.kind !== 'RemovePodFinalizer') continue;
            removals += 1;
            // Of a lock that is being deleted without the operator's finalizer the status says nothing any more.
            const spent = before.lock?.deleting === true && before.lock.finalizers.length === 0;
            const names = spent ? [before.lease?.holder?.uid] : named(before);
            expect(names).not.toContain(action.pod.uid);
          }
        }
        const tenure = end.lease && end.lock && judgeTenure(end.lease, { ...end, lock: end.lock }, instant);
        if (end.lock !== undefined && (tenure === undefined || tenure.kind === 'previous')) return;
        for (const pod of end.pods) {
          if (pod.finalizers.includes('kilit.dev/holder')) expect(named(end)).toContain(pod.uid);
        }
      }),
      RUNS,
    );
    expect(removals).toBeGreaterThan(100);
  });

  it('asks to yield once, a holder that has confirmed and is not ending, and only while another could be granted it', () => {
    let asked = 0;
    fc.assert(
      fc.property(heldArbitrary, instants, (observed, instant) => {
        for (const { before, actions } of settle(observed, instant).passes) {
          const ask = actions.find((action) => action.kind === 'AskYield');
          if (ask === undefined) continue;
          asked += 1;
          expect(ask.lease).toMatchObject({ holder: ask.holder, yieldAsked: undefined });
          expect(ask.lease.confirmedAt).toBeDefined();
          expect(before.gate.open).toBe(true);
          expect(before.pods.find(({ uid }) => uid === ask.holder.uid)?.deleting ?? false).toBe(false);
          const others = eligible(waiters(before.pods, before.nodes, ask.holder.uid));
          if (ask.reason !== 'Requested') expect(others.length).toBeGreaterThan(0);
          else expect(ask.request?.token).toBe('900');
        }
      }),
      { numRuns: 2_000 },
    );
    expect(asked).toBeGreaterThan(50);
  });

  it('breaks only the grant that was asked for, after it was recorded, and never twice', () => {
    let broken = 0;
    fc.assert(
      fc.property(heldArbitrary, instants, (observed, instant) => {
        const { passes, end } = settle(observed, instant);
        const breaks = passes.flatMap(({ actions }) => actions.filter((action) => action.kind === 'Break'));
        expect(breaks.length).toBeLessThanOrEqual(1);
        for (const action of breaks) {
          broken += 1;
          expect(action.request.token).toBe(action.lease.token?.toString());
          expect(action.lock.status.lastBreak?.token).toBe(action.request.token);
          expect(action.token).toBeGreaterThan(action.lease.token ?? 0n);
        }
        if (breaks.length > 0) expect(end.lock?.requests.break).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
    expect(broken).toBeGreaterThan(50);
  });

  it('never lets the token in the status fall', () => {
    fc.assert(
      fc.property(observedArbitrary, instants, (observed, instant) => {
        const before = BigInt(observed.lock?.status.fencingToken ?? '0');
        const { end } = settle(observed, instant);
        if (end.lock !== undefined) expect(BigInt(end.lock.status.fencingToken ?? '0')).toBeGreaterThanOrEqual(before);
      }),
      RUNS,
    );
  });
});
