/** `kilit break` and `handover` with the real operator and real Pods: the command's steps are those of the operator. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VALIDATING_POLICIES } from '../../src/api/generated/policies.ts';
import { inProcess } from '../cli/support/in-process.ts';
import { openTestKube } from '../support/cluster.ts';
import type { Kube } from '../support/kube.ts';
import { Scene } from '../support/scene.ts';
import { waitFor } from '../support/wait.ts';

let kube: Kube;
let scene: Scene;
beforeAll(async () => {
  kube = openTestKube();
  scene = await Scene.open(kube, 'administer');
});
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  kube?.close();
});

const run = (...words: string[]) =>
  inProcess([...words, '-n', scene.namespace], { env: { KUBECONFIG: kube.kubeconfig }, time: 'real' });

/** The operator carries requests out since the chart has a policy for them. */
describe.skipIf(!('kilit-lock-request' in VALIDATING_POLICIES))('with the operator', () => {
  it.each(['handover', 'break'])(
    'kilit %s passes the lock on, tells the steps and is recorded',
    async (kind) => {
      const [lock, a, b] = [kind, `${kind}-a`, `${kind}-b`];
      await scene.lock(lock);
      await scene.pod({ lock, name: a });
      const before = await scene.holds(lock, a);
      await scene.started(a);
      await scene.pod({ lock, name: b });
      await waitFor('the waiter', async () => (await scene.readLock(lock)).status?.queue?.[0]?.reason === 'Waiting');

      const asked = await run(kind, lock, '--reason', 'to see it pass', '--yes', '--wait');
      expect(asked).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`Asked for the ${kind} of lock ${lock}, token ${before}`),
      });
      console.log(asked.stderr);
      const after = await scene.holds(lock, b);
      expect(BigInt(after)).toBeGreaterThan(BigInt(before));
      const { stdout } = await run('describe', lock);
      expect(stdout).toMatch(new RegExp(`last ${kind}: .* ago, token ${before}, by .*: to see it pass`));
      expect((await scene.readLock(lock)).metadata.annotations ?? {}).not.toHaveProperty([`kilit.dev/${kind}`]);
    },
    240_000,
  );
});
