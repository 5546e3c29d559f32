import { afterAll, beforeAll, expect, it } from 'vitest';
import { helm, openTestKube } from '../support/cluster.ts';
import { installArgs } from '../support/install.ts';
import type { Kube } from '../support/kube.ts';
import { condition, Scene } from '../support/scene.ts';
import { staysSo, waitFor } from '../support/wait.ts';

const BINDING = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/kilit-lease';

let kube: Kube;
beforeAll(() => {
  kube = openTestKube();
});
afterAll(() => kube.close());

it('grants stop within 70 s when the binding of the Lease policy is deleted, and resume when it is back', async () => {
  await using scene = await Scene.open(kube, 'canary');
  await scene.lock('watched');
  const deletedAt = performance.now();
  await kube.must('DELETE', BINDING);
  try {
    const paused = await waitFor(
      'the lock to say that the policy is not enforced',
      async () => {
        const ready = condition(await scene.readLock('watched'), 'Ready');
        return ready?.reason === 'PolicyNotEnforced' ? ready : undefined;
      },
      { seconds: 70 },
    );
    console.log(
      `FIGURE grants stopped ${((performance.now() - deletedAt) / 1000).toFixed(1)} s after the binding was deleted`,
    );
    expect(paused.message).toContain('kilit-lease');
    await scene.pod({ lock: 'watched', name: 'waiter' });
    await waitFor('the waiter to be told', async () => {
      const [first] = (await scene.readLock('watched')).status?.queue ?? [];
      return first?.reason === 'GrantsPaused';
    });
    await staysSo('nobody is granted the lock', 5, async () => (await scene.holder('watched')) === undefined);
  } finally {
    // What the condition tells people to do.
    helm(...installArgs({ replicas: 2 }));
  }
  const restoredAt = performance.now();
  await scene.holds('watched', 'waiter', 70);
  console.log(
    `FIGURE grants resumed ${((performance.now() - restoredAt) / 1000).toFixed(1)} s after the binding was back`,
  );
}, 300_000);
