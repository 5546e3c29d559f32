import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { podView } from '../../src/core/pod.ts';
import { helm, kubectl, OPERATOR_NAMESPACE, openTestKube, RELEASE } from '../support/cluster.ts';
import { installArgs } from '../support/install.ts';
import type { Kube } from '../support/kube.ts';
import { Scene } from '../support/scene.ts';
import { staysSo, waitFor } from '../support/wait.ts';

let kube: Kube;
beforeAll(() => {
  kube = openTestKube();
});
afterEach(() => {
  helm(...installArgs({ replicas: 2 }));
});
afterAll(() => kube.close());

const uninstall = () => helm('uninstall', RELEASE, '--namespace', OPERATOR_NAMESPACE, '--wait');

async function names(path: string): Promise<readonly string[]> {
  const list = await kube.must('GET', path);
  return (list.items as { metadata: { name: string } }[]).map((item) => item.metadata.name);
}

it('helm test passes', () => {
  expect(helm('test', RELEASE, '--namespace', OPERATOR_NAMESPACE)).toContain('Succeeded');
});

it('in the documented order it strands nothing, although locks are held and Pods run', async () => {
  await using scene = await Scene.open(kube, 'leave');
  await scene.lock('leaving');
  await scene.pod({ lock: 'leaving', name: 'holder' });
  await scene.started('holder');
  await scene.pod({ lock: 'leaving', name: 'waiter' });

  for (const name of ['holder', 'waiter']) await scene.deletePod(name);
  await waitFor('the Pods to be gone', async () => (await names(scene.podPath())).length === 0);
  await waitFor('the lock to be free', async () => (await scene.readLock('leaving')).status?.holder === undefined);
  await kube.must('DELETE', scene.lockPath('leaving'));
  await waitFor('the lock to be gone', async () => (await kube.ask('GET', scene.lockPath('leaving'))).status === 404);
  uninstall();

  const namespaced = `/apis/coordination.k8s.io/v1/namespaces/${scene.namespace}/leases`;
  await waitFor('what belonged to the lock to be gone', async () => (await names(namespaced)).length === 0);
  for (const kind of ['roles', 'rolebindings']) {
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${scene.namespace}/${kind}`;
    await waitFor(`the lock's ${kind} to be gone`, async () => (await names(path)).length === 0);
  }
  const policies = ['validatingadmissionpolicies', 'mutatingadmissionpolicies', 'validatingadmissionpolicybindings'];
  for (const kind of policies) {
    const left = await names(`/apis/admissionregistration.k8s.io/v1/${kind}`);
    expect(left.filter((name) => name.startsWith('kilit'))).toEqual([]);
  }
  const namespace = `/api/v1/namespaces/${scene.namespace}`;
  await kube.must('DELETE', namespace);
  await waitFor('the namespace to be gone', async () => (await kube.ask('GET', namespace)).status === 404);
});

it('a Pod that takeover PodGone keeps is let go by the documented command', async () => {
  await using scene = await Scene.open(kube, 'kept');
  await scene.lock('kept', { takeover: 'PodGone' });
  await scene.pod({ lock: 'kept', name: 'holder' });
  await scene.started('holder');
  uninstall();

  await scene.deletePod('holder');
  await waitFor('its end', async () => podView(await scene.readPod('holder'), 0, undefined).confirmedDead);
  await staysSo('its object stays', 5, async () => (await kube.ask('GET', scene.podPath('holder'))).status === 200);
  const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
  const [, patch = ''] = /kubectl patch pod POD -n NAMESPACE -p '([^']+)'/.exec(readme) ?? [];
  kubectl('patch', 'pod', 'holder', '-n', scene.namespace, '-p', patch);
  await waitFor('its object to go', async () => (await kube.ask('GET', scene.podPath('holder'))).status === 404);
});

it('in the wrong order the holder runs on and renews, and the waiter starts after the next install', async () => {
  await using scene = await Scene.open(kube, 'stay');
  await scene.lock('staying');
  await scene.pod({ lock: 'staying', name: 'holder' });
  const { env } = await scene.started('holder');
  await scene.pod({ lock: 'staying', name: 'waiter' });
  await waitFor('the waiter to wait', async () => (await scene.readLock('staying')).status?.waiters === 1);
  uninstall();

  const { renewTime } = (await scene.readLease('staying')).spec ?? {};
  await waitFor('a renewal without an operator', async () => {
    const { spec } = await scene.readLease('staying');
    return spec?.renewTime !== renewTime;
  });
  await staysSo('one program runs, with its token', 7, async () => {
    const [holder, waiter] = await Promise.all([scene.starts('holder'), scene.starts('waiter')]);
    return holder.length === 1 && waiter.length === 0 && (await scene.holder('staying'))?.token === env;
  });

  helm(...installArgs({ replicas: 2 }));
  await scene.deletePod('holder');
  const next = await scene.started('waiter');
  expect(BigInt(next.env)).toBeGreaterThan(BigInt(env));
});
