import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { helm, openTestKube } from '../support/cluster.ts';
import { installArgs } from '../support/install.ts';
import type { Kube } from '../support/kube.ts';
import { Scene } from '../support/scene.ts';
import { staysSo, waitFor } from '../support/wait.ts';

let kube: Kube;
let scene: Scene;
beforeAll(async () => {
  kube = openTestKube();
  scene = await Scene.open(kube, 'bad');
  await scene.pod({ lock: 'much-later', name: 'patient' });
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  kube.close();
});

/** Reasons of the events about one object. */
async function eventsAbout(name: string): Promise<readonly { reason: string; note: string }[]> {
  const events = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events?limit=500`);
  return (events.items as { reason: string; note: string; regarding: { name: string } }[]).filter(
    (event) => event.regarding.name === name,
  );
}

const lockBody = (name: string, spec?: unknown) => ({
  apiVersion: 'kilit.dev/v1alpha1',
  kind: 'DistributedLock',
  metadata: { name },
  ...(spec !== undefined && { spec }),
});

describe('an invalid lock is refused with a message that says what to change', () => {
  it.each<[string, unknown, string]>([
    ['a lease duration below 5', { leaseDurationSeconds: 4 }, '`leaseDurationSeconds` must be at least 5'],
    ['a lease duration above 3600', { leaseDurationSeconds: 3601 }, '`leaseDurationSeconds` must be at most 3600'],
    ['a takeover delay below 0', { takeoverDelaySeconds: -1 }, '`takeoverDelaySeconds` must be at least 0'],
    ['a takeover delay above 3600', { takeoverDelaySeconds: 3601 }, '`takeoverDelaySeconds` must be at most 3600'],
    ['a text for a number', { leaseDurationSeconds: '15' }, 'leaseDurationSeconds'],
    ['a fraction', { leaseDurationSeconds: 15.5 }, 'leaseDurationSeconds'],
  ])('%s', async (_, spec, message) => {
    const answer = await kube.ask('POST', `${scene.lockPath()}?fieldValidation=Strict`, { body: lockBody('x', spec) });
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(message);
  });

  it('an unknown field', async () => {
    const body = lockBody('x', { leaseDuration: 15 });
    const answer = await kube.ask('POST', `${scene.lockPath()}?fieldValidation=Strict`, { body });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain('unknown field "spec.leaseDuration"');
  });

  it.each(['Billing', 'a.b', 'a'.repeat(64), '-a'])('the name %s', async (name) => {
    const answer = await kube.ask('POST', scene.lockPath(), { body: lockBody(name) });
    expect(answer.status).toBe(422);
  });
});

it('a lock without a spec gets the defaults', async () => {
  await kube.must('POST', scene.lockPath(), { body: lockBody('plain') });
  expect((await scene.readLock('plain')).spec).toEqual({
    leaseDurationSeconds: 15,
    takeoverDelaySeconds: 5,
    startDeadlineSeconds: 60,
    takeover: 'Lease',
    onRenewalFailure: 'Stop',
  });
});

it('a Pod that names an unknown lock waits, says why, and starts when the lock appears', async () => {
  await scene.pod({ lock: 'later', name: 'early' });
  const told = await waitFor('the event on the Pod', async () =>
    (await eventsAbout('early')).find((event) => event.reason === 'LockNotFound'),
  );
  expect(told.note).toContain(`DistributedLock later does not exist in namespace ${scene.namespace}`);
  await staysSo('the program does not start', 2, async () => (await scene.starts('early')).length === 0);
  const lock = await scene.lock('later');
  expect(lock.metadata.name).toBe('later');
  expect((await scene.started('early')).env).toBe(await scene.holds('later', 'early'));
});

it('a held lock is not deleted; forced, its holder is stopped, and nobody is granted it before that holder is gone', async () => {
  await scene.lock('held');
  await scene.pod({ lock: 'held', name: 'held-a', program: BEATS });
  const before = await scene.started('held-a');
  await scene.pod({ lock: 'held', name: 'held-b', program: BEATS });
  await waitFor('the second to wait', async () => (await scene.readLock('held')).status?.waiters === 1);

  const refused = await kube.ask('DELETE', scene.lockPath('held'));
  expect(refused.status).toBeGreaterThanOrEqual(400);
  expect(refused.body.message).toContain('held-a');
  expect(refused.body.message).toContain('kilit.dev/force-delete');
  expect((await scene.holder('held'))?.token).toBe(before.env);

  await kube.must('PATCH', scene.lockPath('held'), {
    body: { metadata: { annotations: { 'kilit.dev/force-delete': 'true' } } },
  });
  await kube.must('DELETE', scene.lockPath('held'));
  await waitFor('the lock to be gone', async () => (await kube.ask('GET', scene.lockPath('held'))).status === 404);
  await waitFor('the holder to be told that its lock is missing', async () =>
    (await eventsAbout('held-a')).find((event) => event.reason === 'LockNotFound'),
  );
  await scene.lock('held');
  const after = await waitFor('the next holder', () => scene.holder('held'));
  const next = await scene.started(after.pod);
  expect(BigInt(next.env)).toBeGreaterThan(BigInt(before.env));
  if (after.pod === 'held-b') {
    const beats = await previousBeats('held-a');
    expect(Math.max(...beats)).toBeLessThan(next.at);
  }
}, 240_000);

it('a Pod bound to a node whose kubelet is too old is never granted the lock, and says why', async () => {
  const node = `old-${scene.namespace}`;
  await kube.must('POST', '/api/v1/nodes', { body: { metadata: { name: node } } });
  try {
    await kube.must('PATCH', `/api/v1/nodes/${node}/status`, {
      body: {
        status: {
          nodeInfo: { ...NODE_INFO, kubeletVersion: 'v1.35.4' },
          conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }],
        },
      },
    });
    await scene.lock('modern');
    await scene.pod({ lock: 'modern', name: 'outdated', spec: { nodeName: node } });
    const waiter = await waitFor('the reason in status', async () =>
      (await scene.readLock('modern')).status?.queue?.find((entry) => entry.reason === 'NodeTooOld'),
    );
    expect(waiter.message).toContain(`kubelet v1.35.4 of node ${node} is older than v1.36`);
    await scene.pod({ lock: 'modern', name: 'current' });
    await scene.holds('modern', 'current');
  } finally {
    await kube.ask('DELETE', `${scene.podPath('outdated')}?gracePeriodSeconds=0`);
    await kube.ask('DELETE', `/api/v1/nodes/${node}`);
  }
});

it('a Pod labelled before the install runs on ungated, is never granted the lock, and says what to do', async () => {
  const bindings = [
    'mutatingadmissionpolicybindings/kilit-inject',
    'validatingadmissionpolicybindings/kilit-pod',
    'validatingadmissionpolicybindings/kilit-pod-gate',
  ];
  await scene.lock('late');
  try {
    for (const path of bindings) await kube.must('DELETE', `${ADMISSION}/${path}`);
    await waitFor('the policies to be gone', async () => {
      const answer = await kube.ask('POST', `${scene.podPath()}?dryRun=All`, { body: plainPod('probe') });
      return answer.status === 201 && !JSON.stringify(answer.body.spec).includes('kilit-reset');
    });
    await kube.must('POST', scene.podPath(), { body: plainPod('old-hand') });
  } finally {
    helm(...installArgs({ replicas: 2 }));
  }
  const waiter = await waitFor('the reason in status', async () =>
    (await scene.readLock('late')).status?.queue?.find((entry) => entry.reason === 'NotInjected'),
  );
  expect(waiter.message).toContain('Delete it');
  await waitFor('the event on the Pod', async () =>
    (await eventsAbout('old-hand')).find((event) => event.reason === 'NotInjected'),
  );
  await waitFor('the Pod to run on', async () => (await scene.readPod('old-hand')).status?.phase === 'Running');
  expect(await scene.holder('late')).toBeUndefined();
  await waitFor('injection to be back', async () => {
    const answer = await kube.ask('POST', `${scene.podPath()}?dryRun=All`, { body: plainPod('probe') });
    return JSON.stringify(answer.body.spec ?? {}).includes('kilit-reset');
  });
});

it('a Pod whose lock appears after more than a minute confirms its first grant, and said once what it waits for', async () => {
  // Since the beginning of this file it has waited; after a minute its sidecar asks about every 30 s only.
  await waitFor(
    'the sidecar to be patient',
    async () => {
      const [first] = await scene.logs('patient', 'kilit');
      return Date.now() - Number(first?.time) > 75_000;
    },
    { seconds: 120 },
  );
  await scene.lock('much-later');
  const { env } = await scene.started('patient');
  const { spec, metadata } = await scene.readLease('much-later');
  expect([spec?.leaseTransitions, metadata.annotations?.['kilit.dev/fencing-token']]).toEqual([1, env]);
  const messages = (await scene.logs('patient', 'kilit')).map(({ msg }) => String(msg));
  expect(messages.filter((msg) => msg.startsWith('lock much-later does not exist in namespace'))).toHaveLength(1);
});

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const NODE_INFO = Object.fromEntries(
  [
    'machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeProxyVersion',
    'operatingSystem architecture',
  ]
    .flatMap((names) => names.split(' '))
    .map((name) => [name, 'x']),
);

/** Says when it starts, and then every 100 ms that it lives, until it is killed. */
const BEATS = `
console.log(JSON.stringify({ started: { env: process.env.FENCING_TOKEN, at: Date.now() } }));
setInterval(() => console.log(JSON.stringify({ beat: Date.now() })), 100);
`;

/** The beats of the program's container before its last restart. */
async function previousBeats(pod: string): Promise<readonly number[]> {
  const answer = await kube.ask('GET', `${scene.podPath(pod)}/log?container=app&previous=true`);
  const text = answer.body.message ?? JSON.stringify(answer.body);
  return [...text.matchAll(/"beat":(\d+)/g)].map((match) => Number(match[1]));
}

const plainPod = (name: string) => ({
  metadata: { name, labels: { 'kilit.dev/lock': 'late' } },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      { name: 'app', image: 'localhost/kilit-test:dev', imagePullPolicy: 'Never', command: ['sleep', '1000'] },
    ],
  },
});
