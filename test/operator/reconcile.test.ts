import { describe, expect, it } from 'vitest';
import type { Action } from '../../src/core/actions.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { Observer } from '../../src/operator/observe.ts';
import { createReconciler } from '../../src/operator/reconcile.ts';
import { aHolder, aLock, aPod, heldBy, observedLock } from '../support/builders.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const conflict = new ApiError(409, 'Conflict', 'the object has been modified');
const forbidden = new ApiError(403, 'Forbidden', 'a webhook says no');

/** Runs one pass over a held lock with three newcomers; `answer` may refuse a write by throwing. */
async function pass(answer: (action: Action) => void, lastFailure?: { count: number }, refused?: string) {
  const holder = aHolder('holder', 900n);
  const pods = [holder, aPod('a'), aPod('b'), aPod('c')];
  const seen: (string | undefined)[] = [];
  const observer = {
    observe: (_key: string, context: { failure: string | undefined }) => {
      seen.push(context.failure);
      return observedLock({ lock: aLock(), lease: heldBy(holder), pods, ...context, gate: { open: true, base: 0n } });
    },
  } as unknown as Observer;
  const tried: string[] = [];
  const done: string[] = [];
  const name = (action: Action) => ('pod' in action ? `${action.kind} ${action.pod.name}` : action.kind);
  const reconcile = createReconciler({
    observer,
    gate: () => ({ open: true, base: 0n }),
    async check(action) {
      if (name(action) === refused) throw conflict;
    },
    async write(action) {
      tried.push(name(action));
      answer(action);
    },
    done: (action) => done.push(name(action)),
    log: quiet,
  });
  const results = [];
  for (let i = 0; i < (lastFailure?.count ?? 1); i += 1) {
    results.push(await reconcile('shop/billing', new AbortController().signal));
  }
  return { tried, done, seen, results: results.map(({ result }) => result) };
}

describe('a pass', () => {
  it('makes every write and reports ok', async () => {
    const { done, results } = await pass(() => {});
    expect(done).toEqual(['JoinQueue a', 'JoinQueue b', 'JoinQueue c', 'WriteStatus']);
    expect(results).toEqual(['ok']);
  });

  it('gives nobody a place before the one whose place was refused by a conflict', async () => {
    const { tried, results } = await pass((action) => {
      if (action.kind === 'JoinQueue' && action.pod.name === 'a') throw conflict;
    });
    expect(tried).toEqual(['JoinQueue a', 'WriteStatus']);
    expect(results).toEqual(['conflict']);
  });

  it('does not write what the check before it refuses', async () => {
    const { tried, results } = await pass(() => {}, { count: 1 }, 'WriteStatus');
    expect(tried).toEqual(['JoinQueue a', 'JoinQueue b', 'JoinQueue c']);
    expect(results).toEqual(['conflict']);
  });

  it('goes on past a Pod that cannot be written at all: it must not block the queue', async () => {
    const { done, results } = await pass((action) => {
      if (action.kind === 'JoinQueue' && action.pod.name === 'a') throw forbidden;
    });
    expect(done).toEqual(['JoinQueue b', 'JoinQueue c', 'WriteStatus']);
    expect(results).toEqual(['error']);
  });

  it('tells the next pass why it failed, until one goes well', async () => {
    let broken = true;
    const { seen } = await pass(
      (action) => {
        if (action.kind === 'WriteStatus' && broken) {
          broken = false;
          throw forbidden;
        }
      },
      { count: 3 },
    );
    expect(seen).toEqual([undefined, 'WriteStatus failed: a webhook says no', undefined]);
  });
});
