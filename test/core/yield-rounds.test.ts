/** Whole histories of one lock: who is granted it, when, and that it comes to rest where a program runs. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { LockView } from '../../src/core/lock.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { aLease, aLock, aNode, aPod, at, observedLock, ofVersion, SPEC } from '../support/builders.ts';
import { applied } from '../support/model.ts';

interface Player {
  readonly name: string;
  /** Its program runs when it holds the lock. */
  readonly starts: boolean;
  readonly over?: Partial<PodView>;
}

const NODES = new Map([
  ['n1', aNode()],
  ['shut', aNode({ name: 'shut', cordoned: true })],
]);

/** Seconds from a loss until the Pod's sidecar runs again: the kubelet's kills, and a back-off of the sidecar's own. */
const RESTART_SECONDS = 5;

/** Plays the lock second by second; the Pods confirm, start and step down as real ones do. */
function play(
  players: readonly Player[],
  { seconds, spec = SPEC }: { readonly seconds: number; readonly spec?: LockView['spec'] },
): { readonly grants: readonly (readonly [second: number, name: string])[]; readonly end: Observed } {
  const starts = new Map(players.map((player) => [player.name, player.starts]));
  const pods = players.map(({ name, over }, index) => aPod(name, { queuedAt: BigInt(index + 1), ...over }));
  let world = observedLock({ lock: aLock({ spec }), lease: aLease(), pods, nodes: NODES });
  const grants: [number, string][] = [];
  const backAt = new Map<string, number>();
  let stepsDownAt: number | undefined;

  const change = (name: string, over: Partial<PodView>): void => {
    const next = world.pods.map((pod) => (pod.name === name ? { ...pod, ...over } : pod));
    world = { ...world, pods: next, lastSeen: (uid) => next.find((pod) => pod.uid === uid) };
  };
  const passes = (second: number): void => {
    for (let pass = 0; ; pass += 1) {
      const { actions } = decide(world, at(second * 1000));
      if (actions.length === 0) return;
      if (pass === 20) throw new Error(`Never comes to rest at second ${second}`);
      for (const action of actions) {
        if (action.kind === 'Grant') grants.push([second, action.pod.name]);
        world = applied(world, action, at(second * 1000));
      }
    }
  };

  for (let second = 0; second < seconds; second += 1) {
    passes(second);
    for (const [name, back] of backAt) if (back <= second) change(name, { sidecarRunning: true });
    const { lease } = world;
    if (lease?.holder === undefined) continue;
    const { name } = lease.holder;
    world = {
      ...world,
      lease: {
        ...lease,
        renewTime: `renewed-${second}`,
        observedAt: second * 1000,
        confirmedAt: lease.confirmedAt ?? second * 1000,
      },
    };
    if (starts.get(name)) change(name, { progress: { runs: { c: second * 1000 }, completed: 0, lastAt: undefined } });
    if (lease.yieldAsked === undefined) continue;
    stepsDownAt ??= second + RESTART_SECONDS;
    if (second < stepsDownAt) continue;
    stepsDownAt = undefined;
    world = { ...world, lease: { ...lease, holder: undefined, confirmedAt: undefined } };
    change(name, { sidecarRunning: false, progress: { runs: {}, completed: 0, lastAt: undefined } });
    backAt.set(name, second + RESTART_SECONDS);
  }
  return { grants, end: world };
}

const gaps = (grants: readonly (readonly [number, string])[]): readonly number[] =>
  grants.slice(1).map(([second], index) => second - (grants[index]?.[0] ?? 0));
const names = (grants: readonly (readonly [number, string])[]): string => grants.map(([, name]) => name).join(' ');

const HOUR = 3600;

describe('two Pods that both cannot start', () => {
  it('take turns, none shorter than startDeadlineSeconds', () => {
    const { grants } = play(
      [
        { name: 'a', starts: false },
        { name: 'b', starts: false },
      ],
      { seconds: 600 },
    );
    expect(names(grants)).toMatch(/^a b a b a b/);
    expect(Math.min(...gaps(grants))).toBeGreaterThanOrEqual(60);
  });

  it('do so also as two versions of one workload, on a cordoned node and elsewhere', () => {
    const { grants } = play(
      [
        { name: 'a', starts: false, over: { ...ofVersion('v1', 0), node: 'shut' } },
        { name: 'b', starts: false, over: ofVersion('v2', 5) },
      ],
      { seconds: 600 },
    );
    expect(grants.length).toBeGreaterThan(4);
    expect(Math.min(...gaps(grants))).toBeGreaterThanOrEqual(60);
  });
});

describe('a rolling update', () => {
  const old = { name: 'old', starts: true, over: ofVersion('v1', 0) };

  it('takes one hand-over, past waiters of the old version', () => {
    const { grants } = play(
      [
        old,
        { name: 'old2', starts: true, over: ofVersion('v1', 1) },
        { name: 'new', starts: true, over: { ...ofVersion('v2', 5), queuedAt: undefined } },
      ],
      { seconds: HOUR },
    );
    expect(names(grants)).toBe('old new');
  });

  it('to a version that cannot start comes back to the old one after one try, and stays there', () => {
    const { grants, end } = play(
      [old, { name: 'bad', starts: false, over: { ...ofVersion('v2', 5), queuedAt: undefined } }],
      { seconds: HOUR },
    );
    expect(names(grants)).toBe('old bad old');
    expect(end.lease?.holder?.name).toBe('old');
  });

  it('that is mended by a third version goes on to that', () => {
    const { grants } = play(
      [
        old,
        { name: 'bad', starts: false, over: { ...ofVersion('v2', 5), queuedAt: undefined } },
        { name: 'mended', starts: true, over: { ...ofVersion('v3', 9), queuedAt: undefined } },
      ],
      { seconds: HOUR },
    );
    expect(names(grants)).toMatch(/^old mended$/);
  });

  it('onto a cordoned node waits, rather than to go back and forth', () => {
    const { grants } = play(
      [old, { name: 'new', starts: true, over: { ...ofVersion('v2', 5), node: 'shut', queuedAt: undefined } }],
      { seconds: HOUR },
    );
    expect(names(grants)).toBe('old');
  });
});

describe('maxHoldSeconds', () => {
  it('makes all take their turns in order', () => {
    const players = ['a', 'b', 'c'].map((name) => ({ name, starts: true }));
    const { grants } = play(players, { seconds: 300, spec: { ...SPEC, maxHoldSeconds: 30 } });
    expect(names(grants)).toMatch(/^a b c a b c/);
    expect(Math.min(...gaps(grants))).toBeGreaterThanOrEqual(30);
  });
});

const playerArbitrary = (name: string): fc.Arbitrary<Player> =>
  fc
    .record({
      starts: fc.boolean(),
      node: fc.constantFrom('n1', 'shut'),
      version: fc.constantFrom(undefined, 'v1', 'v2', 'v3'),
      second: fc.integer({ min: 0, max: 3 }),
      queued: fc.boolean(),
    })
    .map(({ starts, node, version, second, queued }) => ({
      name,
      starts,
      over: { node, ...(version !== undefined && ofVersion(version, second)), ...(!queued && { queuedAt: undefined }) },
    }));

describe('whatever waits', () => {
  const players = fc.tuple(...['a', 'b', 'c', 'd'].map(playerArbitrary));

  it('the lock comes to rest with a Pod whose program runs, if there is one, after at most two grants for each Pod', () => {
    let moved = 0;
    fc.assert(
      fc.property(players, (all) => {
        fc.pre(all.some(({ starts }) => starts));
        const { grants, end } = play(all, { seconds: 800 });
        expect(all.find(({ name }) => name === end.lease?.holder?.name)?.starts).toBe(true);
        expect(grants.at(-1)?.[0]).toBeLessThan(600);
        expect(grants.length).toBeLessThanOrEqual(2 * all.length);
        moved += grants.length > 2 ? 1 : 0;
      }),
      { numRuns: 50 },
    );
    expect(moved).toBeGreaterThan(5);
  }, 60_000);
});
