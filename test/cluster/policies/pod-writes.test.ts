/** What kilit writes on a Pod only kilit writes, and what its author said at creation stays; on the real API server. */
import { describe, expect, test } from 'vitest';
import type { Identity } from '../../support/kube.ts';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import { copied, create, creatingPod, creatingSpoilt, initContainer, type Pod, patchingPod } from './pods.ts';
import { aPod, openWorld, podPath, type World } from './world.ts';

/** `holder` holds with token 100, `sibling` waits, `standby` is of that mode, `plain` has no label. */
const at = useWorld(
  () => openWorld('pod'),
  async ({ kube, namespace, who }) => {
    await kube.must('POST', podPath(namespace), {
      body: aPod({
        metadata: { name: 'standby', annotations: { 'kilit.dev/mode': 'standby', 'kilit.dev/port': '9000' } },
      }),
    });
    await kube.must('POST', podPath(namespace), { body: aPod({ metadata: { name: 'plain', labels: { app: 'x' } } }) });
    await kube.must('PATCH', podPath(namespace, 'holder'), {
      as: who.operator,
      body: {
        metadata: {
          labels: { 'kilit.dev/leader': 'true' },
          annotations: { 'kilit.dev/fencing-token': '100', 'kilit.dev/queued-at': '1700000000000000' },
        },
      },
    });
  },
);

const annotated = (annotations: Readonly<Record<string, string | null>>) => ({ metadata: { annotations } });
const labelled = (labels: Readonly<Record<string, string | null>>) => ({ metadata: { labels } });
const withAnnotation = (key: string, value: string) =>
  aPod({ metadata: { name: 'probe', annotations: { [key]: value } } });

const forgeries: readonly Attack[] = [
  {
    name: 'a Pod is created with a token',
    as: 'editor',
    send: creatingPod(withAnnotation('kilit.dev/fencing-token', '999')),
    refused:
      /annotation kilit\.dev\/fencing-token is written by the kilit operator only, not by "eve"; remove it from the manifest/,
  },
  {
    name: 'a Pod is created with a place in the queue',
    as: 'editor',
    send: creatingPod(withAnnotation('kilit.dev/queued-at', '1')),
    refused: /annotation kilit\.dev\/queued-at is written by the kilit operator only/,
  },
  {
    name: 'a person says of a Pod that it cannot start, so that it takes the lock from nobody',
    as: 'editor',
    send: patchingPod('sibling', annotated({ 'kilit.dev/not-started': '1' })),
    refused: /annotation kilit\.dev\/not-started is written by the kilit operator only/,
  },
  {
    name: 'a Pod is created as leader',
    as: 'editor',
    send: creatingPod(
      aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing', 'kilit.dev/leader': 'true' } } }),
    ),
    refused:
      /label kilit\.dev\/leader is written by the kilit operator only, not by "eve"; remove it from the manifest/,
  },
  {
    name: 'a Pod without a lock is created as leader, to draw the traffic of the Service',
    as: 'editor',
    send: creatingPod(aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/leader': 'true' } } })),
    refused: /label kilit\.dev\/leader is written by the kilit operator only/,
  },
  {
    name: 'a Pod is created with an empty token',
    as: 'admin',
    send: creatingPod(withAnnotation('kilit.dev/fencing-token', '')),
    refused: /annotation kilit\.dev\/fencing-token is written by the kilit operator only/,
  },
  {
    name: "the holder's manifest is copied, token and all",
    as: 'admin',
    send: async (at, as) => {
      const pod = (await at.kube.must('GET', podPath(at.namespace, 'holder'))) as unknown as Pod;
      return create(at, as, copied(pod));
    },
    refused: /is written by the kilit operator only, not by "[a-z-]*admin"; remove it from the manifest/,
  },
  {
    name: 'a person writes a greater token',
    as: 'editor',
    send: patchingPod('holder', annotated({ 'kilit.dev/fencing-token': '101' })),
    refused:
      /annotation kilit\.dev\/fencing-token is written by the kilit operator only, not by "eve"; leave it as it is/,
  },
  {
    name: 'a person removes the token',
    as: 'editor',
    send: patchingPod('holder', annotated({ 'kilit.dev/fencing-token': null })),
    refused: /annotation kilit\.dev\/fencing-token is written by the kilit operator only/,
  },
  {
    name: 'an administrator writes a token through pods/status',
    as: 'admin',
    send: patchingPod('sibling', annotated({ 'kilit.dev/fencing-token': '101' }), 'status'),
    refused: /annotation kilit\.dev\/fencing-token is written by the kilit operator only/,
  },
  {
    name: "somebody with the operator's user name but no Pod writes a token",
    as: 'impostor',
    send: patchingPod('sibling', annotated({ 'kilit.dev/fencing-token': '101' })),
    refused: /annotation kilit\.dev\/fencing-token is written by the kilit operator only/,
  },
  {
    name: 'a person jumps the queue',
    as: 'editor',
    send: patchingPod('holder', annotated({ 'kilit.dev/queued-at': '1' })),
    refused: /annotation kilit\.dev\/queued-at is written by the kilit operator only/,
  },
  {
    name: 'an administrator jumps the queue through pods/status',
    as: 'admin',
    send: patchingPod('sibling', annotated({ 'kilit.dev/queued-at': '1' }), 'status'),
    refused: /annotation kilit\.dev\/queued-at is written by the kilit operator only/,
  },
  {
    name: 'a person makes another Pod the leader',
    as: 'editor',
    send: patchingPod('sibling', labelled({ 'kilit.dev/leader': 'true' })),
    refused: /label kilit\.dev\/leader is written by the kilit operator only, not by "eve"; leave it as it is/,
  },
  {
    name: 'an administrator makes another Pod the leader through pods/status',
    as: 'admin',
    send: patchingPod('sibling', labelled({ 'kilit.dev/leader': 'true' }), 'status'),
    refused: /label kilit\.dev\/leader is written by the kilit operator only/,
  },
  {
    name: 'a person makes a Pod without a lock the leader',
    as: 'editor',
    send: patchingPod('plain', labelled({ 'kilit.dev/leader': 'true' })),
    refused: /label kilit\.dev\/leader is written by the kilit operator only/,
  },
  {
    name: 'a person takes the leader label away',
    as: 'editor',
    send: patchingPod('holder', labelled({ 'kilit.dev/leader': null })),
    refused: /label kilit\.dev\/leader is written by the kilit operator only/,
  },
  {
    name: 'the operator lowers a token',
    as: 'operator',
    send: patchingPod('holder', annotated({ 'kilit.dev/fencing-token': '99' })),
    refused: /the fencing token of a Pod only grows: from "100" to "99" it would not/,
  },
  {
    name: 'the operator writes something that is no token',
    as: 'operator',
    send: patchingPod('sibling', annotated({ 'kilit.dev/fencing-token': '0x10' })),
    refused: /the fencing token of a Pod only grows: from "" to "0x10"/,
  },
  {
    name: 'the operator writes another leader label than "true"',
    as: 'operator',
    send: patchingPod('sibling', labelled({ 'kilit.dev/leader': 'yes' })),
    refused: /label kilit\.dev\/leader must be "true", got "yes"/,
  },
];

const changes: readonly Attack[] = [
  {
    name: 'a Pod is moved to another lock',
    as: 'admin',
    send: patchingPod('sibling', labelled({ 'kilit.dev/lock': 'other' })),
    refused: /the label kilit\.dev\/lock of a Pod is fixed at creation, here "billing"; change it in the Pod template/,
  },
  {
    name: 'a Pod is moved to another lock through pods/status',
    as: 'admin',
    send: patchingPod('sibling', labelled({ 'kilit.dev/lock': 'other' }), 'status'),
    refused: /the label kilit\.dev\/lock of a Pod is fixed at creation/,
  },
  {
    name: 'a Pod loses its lock',
    as: 'admin',
    send: patchingPod('sibling', labelled({ 'kilit.dev/lock': null })),
    refused: /the label kilit\.dev\/lock of a Pod is fixed at creation, here "billing"/,
  },
  {
    name: 'a Pod that runs without a lock is given one',
    as: 'admin',
    send: patchingPod('plain', labelled({ 'kilit.dev/lock': 'billing' })),
    refused: /the label kilit\.dev\/lock=billing cannot be given to a Pod that exists: it has no sidecar/,
  },
  {
    name: 'the operator moves a Pod to another lock',
    as: 'operator',
    send: patchingPod('sibling', labelled({ 'kilit.dev/lock': 'other' })),
    refused: /the label kilit\.dev\/lock of a Pod is fixed at creation/,
  },
  {
    name: 'the mode of a Pod is changed',
    as: 'editor',
    send: patchingPod('sibling', annotated({ 'kilit.dev/mode': 'standby' })),
    refused: /annotation kilit\.dev\/mode of a Pod is fixed at creation/,
  },
  {
    name: 'the mode of a Pod is changed through pods/status',
    as: 'admin',
    send: patchingPod('standby', annotated({ 'kilit.dev/mode': null }), 'status'),
    refused: /annotation kilit\.dev\/mode of a Pod is fixed at creation/,
  },
  {
    name: 'the port of a Pod is changed',
    as: 'editor',
    send: patchingPod('standby', annotated({ 'kilit.dev/port': '9001' })),
    refused: /annotation kilit\.dev\/port of a Pod is fixed at creation/,
  },
  {
    name: 'the image of the sidecar is swapped',
    as: 'editor',
    send: async (at, as) => {
      const pod = (await at.kube.must('GET', podPath(at.namespace, 'sibling'))) as unknown as Pod;
      initContainer(pod, 'kilit').image = 'example/other:1';
      return at.kube.ask('PUT', `${podPath(at.namespace, 'sibling')}?dryRun=All`, { as, body: pod });
    },
    refused: /the image of kilit and kilit-reset is fixed at creation/,
  },
  ...[
    { what: 'writes the run directory', mount: { name: 'kilit-run', mountPath: '/run/kilit' } },
    { what: "reads the sidecar's API token", mount: { name: 'kilit-api', mountPath: '/api', readOnly: true } },
  ].map(({ what, mount }) => ({
    name: `a debug container ${what}`,
    as: 'admin' as const,
    send: patchingPod(
      'sibling',
      { spec: { ephemeralContainers: [{ name: 'debug', image: 'example/debug:1', volumeMounts: [mount] }] } },
      'ephemeralcontainers',
    ),
    refused: /container debug may mount kilit-run read-only and kilit-api not at all/,
  })),
];

const legitimate: readonly Attempt[] = [
  { name: 'a Pod is created', as: 'editor', send: creatingPod(aPod()) },
  { name: 'an injected Pod is created again from its own manifest', as: 'editor', send: creatingSpoilt(() => {}) },
  {
    name: 'the operator writes a greater token',
    as: 'operator',
    send: patchingPod('holder', annotated({ 'kilit.dev/fencing-token': '1000' })),
  },
  {
    name: 'the operator removes token, place and label',
    as: 'operator',
    send: patchingPod('holder', {
      metadata: {
        labels: { 'kilit.dev/leader': null },
        annotations: { 'kilit.dev/fencing-token': null, 'kilit.dev/queued-at': null },
      },
    }),
  },
  {
    name: 'a person labels and annotates a Pod otherwise',
    as: 'editor',
    send: patchingPod('holder', { metadata: { labels: { team: 'a' }, annotations: { note: 'b' } } }),
  },
  {
    name: 'a kubelet writes the status of the holder',
    as: 'admin',
    send: patchingPod('holder', { status: { phase: 'Failed', reason: 'Evicted' } }, 'status'),
  },
  {
    name: 'a debug container without mounts is added to the holder',
    as: 'admin',
    send: patchingPod(
      'holder',
      { spec: { ephemeralContainers: [{ name: 'debug', image: 'example/debug:1' }] } },
      'ephemeralcontainers',
    ),
  },
  {
    name: 'a person deletes the holder',
    as: 'editor',
    send: (at: World, as: Identity) => at.kube.ask('DELETE', `${podPath(at.namespace, 'holder')}?dryRun=All`, { as }),
  },
];

describe('a labelled Pod', () => {
  tryAll(at, { attacks: [...forgeries, ...changes], legitimate });

  test('cannot be given a token through pods/resize, which keeps the metadata as they are', async () => {
    const send = patchingPod('sibling', annotated({ 'kilit.dev/fencing-token': '101' }), 'resize');
    const { status, body } = await send(at.world, at.world.who.admin);
    expect(status).toBe(200);
    expect(body.metadata?.annotations).not.toHaveProperty('kilit.dev/fencing-token');
  });
});
