import { array, assert, asyncProperty, constantFrom, double, integer, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createWorkqueue, type WorkqueueOptions } from '../../src/operator/workqueue.ts';
import { createMachine } from '../leader-election/support/machine.ts';
import { createVirtualTime, seededRandom } from '../leader-election/support/virtual-time.ts';

/** A queue whose work takes `workSeconds` and fails as told; it notes every start. */
function aQueue({ workSeconds = 1, fails = () => false, ...options }: QueueOptions = {}) {
  const time = createVirtualTime();
  const { clock } = createMachine(time);
  const stopping = new AbortController();
  const starts: { key: string; atSeconds: number }[] = [];
  const working = new Map<string, number>();
  let mostAtOnce = 0;

  async function process(key: string): Promise<void> {
    starts.push({ key, atSeconds: time.now() });
    working.set(key, (working.get(key) ?? 0) + 1);
    mostAtOnce = Math.max(
      mostAtOnce,
      [...working.values()].reduce((sum, count) => sum + count, 0),
    );
    expect(working.get(key), `workers for ${key}`).toBe(1);
    await new Promise<void>((resolve) => time.after(workSeconds, resolve));
    working.set(key, 0);
    if (fails(key, starts.length)) throw new Error('no luck');
  }

  const queue = createWorkqueue({ process, clock, concurrency: 2, random: () => 1, ...options }, stopping.signal);
  const pass = (seconds: number) => time.runUntil(time.now() + seconds);
  const startsOf = (key: string) => starts.filter((start) => start.key === key).map(({ atSeconds }) => atSeconds);
  return { queue, time, pass, starts, startsOf, stop: () => stopping.abort(), mostAtOnce: () => mostAtOnce };
}

interface QueueOptions extends Partial<Omit<WorkqueueOptions<string>, 'process'>> {
  readonly workSeconds?: number;
  readonly fails?: (key: string, start: number) => boolean;
}

test('begins keys in the order in which they became ready, as many at once as allowed', async () => {
  const { queue, starts, pass } = aQueue();
  for (const key of ['a', 'b', 'c', 'd', 'c']) queue.add(key);
  expect([queue.depth(), queue.oldestAgeSeconds()]).toEqual([2, 0]);
  await pass(0.5);
  expect([queue.depth(), queue.oldestAgeSeconds(), queue.longestWorkSeconds()]).toEqual([2, 0.5, 0.5]);
  await pass(5);
  expect(starts).toEqual([
    { key: 'a', atSeconds: 0 },
    { key: 'b', atSeconds: 0 },
    { key: 'c', atSeconds: 1 },
    { key: 'd', atSeconds: 1 },
  ]);
  expect([queue.depth(), queue.oldestAgeSeconds(), queue.longestWorkSeconds()]).toEqual([0, 0, 0]);
});

test('works once more on a key that was added while it was worked on, and not at the same time', async () => {
  const { queue, startsOf, pass } = aQueue();
  queue.add('a');
  await pass(0.5);
  for (let times = 0; times < 3; times += 1) queue.add('a');
  await pass(5);
  expect(startsOf('a')).toEqual([0, 1]);
});

describe('addAfter', () => {
  test('begins when the time has come, and not earlier', async () => {
    const { queue, startsOf, pass } = aQueue();
    queue.addAfter('a', 10);
    await pass(9.999);
    expect(startsOf('a')).toEqual([]);
    await pass(0.002);
    expect(startsOf('a')).toEqual([10]);
  });

  test('takes the earliest of several wishes, in either order, and only once', async () => {
    const { queue, startsOf, pass } = aQueue();
    queue.addAfter('a', 10);
    queue.addAfter('a', 5);
    queue.addAfter('b', 5);
    queue.addAfter('b', 10);
    queue.addAfter('c', 10);
    queue.add('c');
    await pass(30);
    expect([startsOf('a'), startsOf('b'), startsOf('c')]).toEqual([[5], [5], [0]]);
  });

  test('begins after the present work when it is wished for during the work', async () => {
    const { queue, startsOf, pass } = aQueue({ workSeconds: 3 });
    queue.add('a');
    await pass(1);
    queue.addAfter('a', 1);
    await pass(9);
    expect(startsOf('a')).toEqual([0, 3]);
  });

  test('never waits longer than a day', async () => {
    const { queue, startsOf, pass } = aQueue();
    queue.addAfter('a', Number.MAX_SAFE_INTEGER);
    await pass(86_401);
    expect(startsOf('a')).toEqual([86_400]);
  });
});

describe('back-off', () => {
  test('doubles with each failure up to the longest', async () => {
    const retries: number[] = [];
    const failed: QueueOptions['failed'] = ({ retryAfterSeconds }) => retries.push(retryAfterSeconds);
    const { queue, pass } = aQueue({ workSeconds: 0, fails: () => true, longestBackoffSeconds: 1, failed });
    queue.add('a');
    await pass(4);
    expect(retries).toEqual([0.1, 0.2, 0.4, 0.8, 1, 1, 1]);
  });

  test('is jittered down to the half', async () => {
    const { queue, startsOf, pass } = aQueue({ workSeconds: 0, fails: () => true, random: () => 0 });
    queue.add('a');
    await pass(0.3);
    expect(startsOf('a')).toEqual([0, expect.closeTo(0.05), expect.closeTo(0.15)]);
  });

  test('is forgotten after a success', async () => {
    const retries: number[] = [];
    const failed: QueueOptions['failed'] = ({ failures }) => retries.push(failures);
    const { queue, pass } = aQueue({ workSeconds: 0, fails: (_key, start) => start !== 3, failed });
    queue.add('a');
    await pass(1);
    queue.add('a');
    await pass(0.05);
    expect(retries).toEqual([1, 2, 1]);
  });

  test('is forgotten after a success that wishes for the next pass itself', async () => {
    const failures: number[] = [];
    const { queue, pass } = aQueue({
      workSeconds: 0,
      fails: (key, start) => {
        queue.addAfter(key, 10);
        return start !== 2;
      },
      failed: (failure) => failures.push(failure.failures),
    });
    queue.add('a');
    await pass(10.3);
    expect(failures).toEqual([1, 1, 2]);
  });

  test('is cut short by a new wish', async () => {
    const { queue, startsOf, pass } = aQueue({ workSeconds: 0, fails: () => true, firstBackoffSeconds: 30 });
    queue.add('a');
    await pass(1);
    queue.add('a');
    await pass(1);
    expect(startsOf('a')).toEqual([0, 1]);
  });
});

test('stops: begins nothing more, waits for running work, drops the rest', async () => {
  const { queue, starts, stop, pass } = aQueue({ workSeconds: 5, fails: () => true });
  let hasStopped = false;
  const note = async () => {
    await queue.stopped;
    hasStopped = true;
  };
  void note();
  for (const key of ['a', 'b', 'c']) queue.add(key);
  queue.addAfter('d', 1);
  await pass(1);
  queue.add('a');
  stop();
  await pass(3.9);
  expect(hasStopped).toBe(false);
  await pass(0.2);
  expect(hasStopped).toBe(true);
  expect([queue.add('e'), queue.addAfter('e', 1), queue.depth()]).toEqual([false, false, 0]);
  await pass(600);
  expect(starts.map(({ key }) => key)).toEqual(['a', 'b']);
});

test('stops at once when nothing runs, also when the signal had aborted before', async () => {
  const { queue, stop } = aQueue();
  stop();
  const late = createWorkqueue({ process: async () => {}, concurrency: 1 }, AbortSignal.abort());
  expect(await Promise.all([queue.stopped, late.stopped])).toEqual([undefined, undefined]);
});

test('refuses further keys when it is full, and known ones never', async () => {
  const { queue, pass } = aQueue({ mostKeys: 2 });
  expect([queue.add('a'), queue.addAfter('b', 10), queue.add('c'), queue.add('a'), queue.add('b')]).toEqual([
    true,
    true,
    false,
    true,
    true,
  ]);
  await pass(10);
  expect(queue.add('c')).toBe(true);
});

test('refuses to run without workers', () => {
  expect(() => aQueue({ concurrency: 0 })).toThrow('concurrency must be at least 1, got 0');
});

const KEYS = ['a', 'b', 'c', 'd'];
const WORK_SECONDS = 1;
/** A key that becomes ready waits for its own work, for every other key before it, and for the worker it gets. */
const LONGEST_WAIT_SECONDS = WORK_SECONDS * (KEYS.length + 1);

interface Wish {
  readonly key: string;
  readonly dueAt: number;
  /** How many starts there had been when it was made: a later one must serve it. */
  readonly startsBefore: number;
}

const step = record({
  kind: constantFrom('add', 'addAfter', 'pass'),
  key: constantFrom(...KEYS),
  seconds: double({ min: 0, max: 20, noNaN: true }),
});

test('serves every wish in time, never twice at once, never unasked, whatever is wished for', async () => {
  await assert(
    asyncProperty(
      array(step, { maxLength: 40 }),
      integer({ min: 1, max: 4 }),
      integer(),
      async (steps, concurrency, seed) => {
        const random = seededRandom(seed);
        const wishes: Wish[] = [];
        const { queue, time, pass, starts, mostAtOnce } = aQueue({
          workSeconds: WORK_SECONDS,
          concurrency,
          random,
          fails: () => random() < 0.3,
          longestBackoffSeconds: 5,
          failed: ({ key, retryAfterSeconds }) => wish(key, retryAfterSeconds),
        });
        const wish = (key: string, seconds: number) =>
          wishes.push({ key, dueAt: time.now() + seconds, startsBefore: starts.length });
        for (const { kind, key, seconds } of steps) {
          if (kind === 'pass') await pass(seconds);
          else {
            wish(key, kind === 'add' ? 0 : seconds);
            queue.addAfter(key, kind === 'add' ? 0 : seconds);
          }
        }
        await pass(600);
        for (const { key, dueAt, startsBefore } of wishes) {
          const served = starts.slice(startsBefore).find((start) => start.key === key);
          expect(served?.atSeconds, `${key} due at ${dueAt}`).toBeLessThanOrEqual(dueAt + LONGEST_WAIT_SECONDS + 1e-6);
        }
        for (const [index, { key, atSeconds }] of starts.entries()) {
          const isDue = (wish: Wish) =>
            wish.key === key && wish.startsBefore <= index && wish.dueAt <= atSeconds + 1e-6;
          expect(wishes.some(isDue), `${key} began unasked at ${atSeconds}`).toBe(true);
        }
        expect(starts.length).toBeLessThanOrEqual(wishes.length);
        expect(mostAtOnce()).toBeLessThanOrEqual(concurrency);
        expect([queue.depth(), queue.longestWorkSeconds()]).toEqual([0, 0]);
      },
    ),
    { numRuns: 300 },
  );
});
