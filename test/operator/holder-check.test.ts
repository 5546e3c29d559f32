import { describe, expect, it } from 'vitest';
import type { Action } from '../../src/core/actions.ts';
import type { RawPod } from '../../src/core/raw-pod.ts';
import type { KubeClient, KubeRequest } from '../../src/kube/client.ts';
import { ApiError, isConflict } from '../../src/kube/errors.ts';
import { createCaches } from '../../src/operator/caches.ts';
import { createHolderCheck } from '../../src/operator/holder-check.ts';
import { aHolder, aLock, heldBy } from '../support/builders.ts';

const pod = (revision: number, metadata: object = {}): RawPod => ({
  metadata: {
    name: 'a',
    namespace: 'shop',
    uid: 'uid-a',
    resourceVersion: String(revision),
    labels: { 'kilit.dev/lock': 'billing' },
    ...metadata,
  },
  spec: { containers: [{ name: 'app' }] },
});

const holder = aHolder('a', 900n);
const lease = heldBy(holder);
const freeing = (reason: 'Expired' | 'ConfirmedDeath' | 'Broken'): Action => ({
  kind: 'Free',
  lock: aLock(),
  lease,
  ended: { holder: lease.holder ?? { identity: '', name: '', uid: '', node: undefined }, reason },
});

/** Checks an action while the API server knows `present` and the cache `known`; 404 is what it answers to nothing. */
async function check(action: Action, { known, present }: { readonly known?: RawPod; readonly present?: RawPod }) {
  const caches = createCaches('kilit-system');
  if (known !== undefined) caches.pods.put(known);
  const asked: KubeRequest[] = [];
  const client = {
    request(request: KubeRequest) {
      asked.push(request);
      return present === undefined
        ? Promise.reject(new ApiError(404, 'NotFound', 'not found'))
        : Promise.resolve(present);
    },
  } as unknown as KubeClient;
  const end = await createHolderCheck({ client, caches })(action).then(
    () => 'goes on',
    (err: unknown) => (isConflict(err) ? 'decides anew' : String(err)),
  );
  return { end, asked: asked.map(({ verb, path }) => `${verb} ${path}`), cached: caches.pods.get('shop', 'a')?.view };
}

describe('before a lease counts as expired', () => {
  it("the holder's Pod is read, and nothing changes when it is as it was observed", async () => {
    const { end, asked } = await check(freeing('Expired'), { known: pod(5), present: pod(5) });
    expect([end, asked]).toEqual(['goes on', ['GET /api/v1/namespaces/shop/pods/a']]);
  });

  it('a Pod that has begun to end meanwhile makes it decide anew: it gets its grace period more', async () => {
    const present = pod(6, { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 600 });
    const { end, cached } = await check(freeing('Expired'), { known: pod(5), present });
    expect([end, cached?.deleting, cached?.graceSeconds]).toEqual(['decides anew', true, 600]);
  });

  it('a Pod that is gone meanwhile makes it decide anew', async () => {
    const { end, cached } = await check(freeing('Expired'), { known: pod(5) });
    expect([end, cached]).toEqual(['decides anew', undefined]);
  });

  it('another Pod of its name counts as none', async () => {
    const other = pod(9, { uid: 'other', labels: {} });
    const { end, cached } = await check(freeing('Expired'), { known: pod(5), present: other });
    expect([end, cached]).toEqual(['decides anew', undefined]);
    expect((await check(freeing('Expired'), { present: other })).end).toBe('goes on');
  });

  it('a Pod that was gone before is no news', async () => {
    expect((await check(freeing('Expired'), {})).end).toBe('goes on');
  });
});

it('a broken holder is read too before it counts as stopped', async () => {
  const present = pod(6, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  expect((await check(freeing('Broken'), { known: pod(5), present })).end).toBe('decides anew');
});

it('a confirmed death is not read again: it is the proof', async () => {
  expect((await check(freeing('ConfirmedDeath'), { known: pod(5), present: pod(6) })).asked).toEqual([]);
});
