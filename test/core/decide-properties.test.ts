import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Action, Grant } from '../../src/core/actions.ts';
import { decide } from '../../src/core/decide.ts';
import type { Takeover } from '../../src/core/grant-terms.ts';
import type { LeaseView } from '../../src/core/lease.ts';
import type { LockView } from '../../src/core/lock.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { judgeTenure } from '../../src/core/tenure.ts';
import { aLease, aLock, aPod, at, heldBy, observedLock, TERMS } from '../support/builders.ts';
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
      node: fc.constantFrom('n1', 'n1', 'n1', 'gone', undefined),
      token: fc.constantFrom(undefined, '7', '900'),
      leader: fc.boolean(),
      queuedAt: fc.constantFrom(undefined, 1n, 2n, 9_000_000_000_000_000n),
      sidecarRunning: mostly,
      dead: fc.boolean(),
      finalizers: fc.constantFrom([], [], ['kilit.dev/holder'], ['other', 'kilit.dev/holder']),
    })
    .map(({ dead, ...over }) => aPod(name, { ...over, confirmedDead: dead && !over.sidecarRunning }));

const leaseArbitrary: fc.Arbitrary<LeaseView | undefined> = fc.oneof(
  fc.constant(undefined),
  fc
    .record({ token: fc.constantFrom(0n, 900n, undefined), ownerUid: fc.constantFrom('uid-lock', 'other') })
    .map(aLease),
  fc
    .record({
      name: fc.constantFrom(...NAMES, 'gone'),
      confirmed: fc.boolean(),
      observedAt: fc.integer({ min: 0, max: 60_000 }),
    })
    .chain(({ name, confirmed, observedAt }) =>
      fc.tuple(takeovers, fc.constantFrom('Stop', 'ContinueFenced')).map(([takeover, onRenewalFailure]) =>
        heldBy(aPod(name), {
          observedAt,
          terms: { ...TERMS, takeover, onRenewalFailure },
          ...(!confirmed && { renewTime: '2026-01-01T00:00:00.000000Z' }),
        }),
      ),
    ),
);

const lockArbitrary: fc.Arbitrary<LockView | undefined> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(undefined) },
  {
    weight: 5,
    arbitrary: fc
      .record({
        deleting: rarely,
        spec: takeovers.map((takeover) => ({ ...aLock().spec, takeover })),
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
        ),
      })
      .map(aLock),
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
  .map(observedLock);

const RUNS = { numRuns: 5_000 };
const instants = fc.integer({ min: 0, max: 120_000 });

function checkGrant(observed: Observed, grant: Grant, instant: number): void {
  const tenure = judgeTenure(grant.lease, { ...observed, lock: grant.lock }, instant);
  expect(['free', 'ended']).toContain(tenure.kind);
  expect(observed.gate.open).toBe(true);
  expect(grant.lock.deleting).toBe(false);
  expect(grant.pod).toMatchObject({ deleting: false, injected: true, sidecarRunning: true, node: 'n1' });
  expect(['Pending', 'Running']).toContain(grant.pod.phase);
  expect(grant.token).toBeGreaterThan(grant.lease.token ?? -1n);
  if (tenure.kind === 'ended') expect(grant.pod.uid).not.toBe(tenure.holder.uid);
  if (grant.terms.takeover === 'PodGone') expect(grant.pod.finalizers).toContain('kilit.dev/holder');
}

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
          if (['Grant', 'Free', 'CreateLease', 'AdoptLease', 'DeleteLease'].includes(action.kind)) return 'lease';
          return ['AddFinalizer', 'RemoveFinalizer', 'WriteStatus'].includes(action.kind) ? 'lock' : action.kind;
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
        expect(end.lock.status.holder?.uid).toBe(end.lease.holder?.uid);
        for (const pod of end.pods) expect(pod.leader).toBe(pod.uid === end.lease.holder?.uid);
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
            if (action.ended !== undefined) expect(action.ended.reason).toBe('ConfirmedDeath');
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
