import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { GrantGate, Observed } from '../../src/core/observed.ts';
import { baseAbove, gateOf, isLeaseBehind } from '../../src/core/revision-fall.ts';
import { aHolder, aLease, aLock, aPod, at, heldBy, observedLock } from '../support/builders.ts';
import { RevisionWorld } from '../support/revision-world.ts';

const FALL = { from: 48_213n, to: 30_110n, issued: 58_213n };
const waiter = aPod('a', { queuedAt: 1n });
const open = (gate: Partial<GrantGate & { open: true }> = {}): GrantGate => ({ open: true, base: 0n, ...gate });

const kinds = (observed: Observed) => decide(observed, at(60_000)).actions.map(({ kind }) => kind);
const readyOf = (observed: Observed) => {
  for (const action of decide(observed, at(60_000)).actions) {
    if (action.kind === 'WriteStatus') return action.status.conditions?.find(({ type }) => type === 'Ready');
  }
  return undefined;
};

describe('after the revisions of the cluster went back', () => {
  const fallen = (over: Partial<Observed> = {}) =>
    observedLock({ pods: [waiter], gate: open({ fall: FALL, revision: 30_110n }), ...over });

  it('grants nothing, and says from where to where, why, and which base mends it', () => {
    expect(kinds(fallen())).toEqual(['WriteStatus']);
    expect(readyOf(fallen())).toMatchObject({
      status: 'False',
      reason: 'RevisionFellBehind',
      message:
        "The cluster went back to an earlier state (a restore of etcd without --bump-revision?): it was at revision 48213 before and came back at 30110. A token could come again that was issued before, and a guard would take an old holder for the present one or refuse the present one. Raise the token base from 0 to 2000000 (annotation kilit.dev/token-base of the operator's Namespace); grants go on by themselves then.",
    });
  });

  it('tells the waiter that grants are paused', () => {
    const [action] = decide(fallen(), at(0)).actions;
    expect(action).toMatchObject({ kind: 'WriteStatus', status: { queue: [{ name: 'a', reason: 'GrantsPaused' }] } });
  });

  it('grants by itself when the base was raised as far as it said', () => {
    const [action] = decide(fallen({ gate: open({ fall: FALL, revision: 30_110n, base: 2_000_000n }) }), at(0)).actions;
    expect(action).toMatchObject({ kind: 'Grant', token: 2_001_000n });
  });

  it('does not grant when it was raised by one too little', () => {
    const gate = (base: bigint) => open({ fall: FALL, revision: 30_110n, base });
    expect(kinds(fallen({ gate: gate(57_213n) }))).not.toContain('Grant');
    expect(kinds(fallen({ gate: gate(57_214n) }))).toContain('Grant');
  });

  it('frees what has ended all the same', () => {
    const lease = heldBy(aHolder('gone', 900n), { observedAt: 0 });
    expect(decide(fallen({ lease }), at(600_000)).actions.map(({ kind }) => kind)).toContain('Free');
  });

  it('leaves a holder alone, and says the same of its lock with each renewal', () => {
    const holder = aHolder('h', 900n);
    const message = (resourceVersion: string) =>
      readyOf(fallen({ pods: [holder, waiter], lease: heldBy(holder, { resourceVersion, observedAt: 60_000 }) }))
        ?.message;
    expect(message('1000')).toMatch(/^The cluster went back/);
    expect(message('1001')).toBe(message('1000'));
  });

  it('names a base that is above every token that was seen, not only those of this lock', () => {
    const gate = open({ fall: FALL, highestToken: 7_000_001n });
    expect(readyOf(fallen({ gate }))?.message).toContain('from 0 to 9000000 ');
  });
});

describe('a free Lease that alone is behind, as after a restore with --bump-revision', () => {
  const jumped = observedLock({ pods: [waiter], gate: open({ fall: FALL, revision: 1_000_030_110n }) });

  it('is written for a new revision, and then granted', () => {
    expect(decide(jumped, at(0)).actions).toMatchObject([{ kind: 'RefreshLease' }]);
    const lease = aLease({ resourceVersion: '1000030111' });
    expect(decide({ ...jumped, lease }, at(0)).actions).toMatchObject([{ kind: 'Grant', token: 1_000_030_111n }]);
  });

  it('is freed first, which is a new revision, when its holder has ended', () => {
    const lease = heldBy(aHolder('gone', 900n), { observedAt: 0 });
    expect(decide({ ...jumped, lease }, at(600_000)).actions[0]?.kind).toBe('Free');
  });

  it('is not written while the cluster is behind as well', () => {
    expect(kinds({ ...jumped, gate: open({ fall: FALL, revision: 58_213n }) })).not.toContain('RefreshLease');
    expect(kinds({ ...jumped, gate: open({ fall: FALL, revision: 58_214n }) })).toContain('RefreshLease');
  });
});

describe('a lock that was moved with its status', () => {
  const moved = (over: Partial<Observed> = {}) =>
    observedLock({ lock: aLock({ status: { fencingToken: '3000000' } }), pods: [waiter], ...over });

  it('is not granted while its next token would not be above the one in its status', () => {
    expect(kinds(moved())).not.toContain('Grant');
    expect(readyOf(moved())).toMatchObject({
      reason: 'RevisionFellBehind',
      message: expect.stringMatching(
        /^This lock has granted token 3000000 \(status\.fencingToken\).* Raise the token base from 0 to 5000000 /s,
      ),
    });
  });

  it('is granted from the next number on', () => {
    expect(kinds(moved({ gate: open({ base: 2_999_000n }) }))).not.toContain('Grant');
    expect(kinds(moved({ gate: open({ base: 2_999_001n }) }))).toContain('Grant');
  });

  it('does not keep back another lock', () => {
    expect(kinds(observedLock({ pods: [waiter], gate: open({ highestToken: 3_000_000n }) }))).toContain('Grant');
  });

  it('says so when no base is great enough', () => {
    const lock = aLock({ status: { fencingToken: '999999999999999999' } });
    expect(readyOf(moved({ lock }))?.message).toContain('No token base is great enough');
  });

  it('says that a great base takes more than one change', () => {
    const lock = aLock({ status: { fencingToken: '200000000000000' } });
    expect(readyOf(moved({ lock }))?.message).toContain('in steps of at most 10^14');
  });
});

it('asks for a base that is 1 to 2 million above', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 15n), (issued) => {
      const above = baseAbove(issued) - issued;
      expect(above > 1_000_000n && above <= 2_000_000n).toBe(true);
    }),
  );
});

describe('whatever happens to a lock and to the cluster', () => {
  it('a lock of a cluster that was never restored is never kept back, also by a status that lags behind', () => {
    fc.assert(
      fc.property(RevisionWorld.steps('calm'), (steps) => {
        const world = new RevisionWorld();
        for (const step of steps) {
          world.take(step);
          for (const lock of world.locksAsSeen()) {
            const input = { lock, lease: world.lease(), gate: world.gate() };
            expect(gateOf(input).open).toBe(true);
            expect(isLeaseBehind(input)).toBe(false);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('no token comes again after restores, with and without a bump, and raised bases open the gate again', () => {
    let grants = 0;
    let restores = 0;
    fc.assert(
      fc.property(RevisionWorld.steps('restored'), (steps) => {
        const world = new RevisionWorld();
        for (const step of steps) world.take(step);
        grants += world.tokens.length;
        restores += world.restores;
        expect(world.tokens).toEqual(world.tokens.toSorted((a, b) => (a < b ? -1 : 1)));
        expect(new Set(world.tokens).size).toBe(world.tokens.length);
        const before = world.tokens.length;
        world.mend();
        world.take({ kind: 'grant' });
        expect(world.tokens.length).toBe(before + 1);
      }),
      { numRuns: 2_000 },
    );
    expect(grants).toBeGreaterThan(1_000);
    expect(restores).toBeGreaterThan(1_000);
  });
});
