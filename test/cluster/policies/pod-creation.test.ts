/** Labelled Pods that are refused for what their author wrote; on the real API server. */
import { describe } from 'vitest';
import { type Attack, tryAll, useWorld } from './attempts.ts';
import { create, creatingPod } from './pods.ts';
import { aPod, openWorld } from './world.ts';

const at = useWorld(() => openWorld('pod'));

const withAnnotation = (key: string, value: string) =>
  aPod({ metadata: { name: 'probe', annotations: { [key]: value } } });
const withLock = (lock: string) => aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': lock } } });

const attacks: readonly Attack[] = [
  {
    name: 'a static Pod',
    as: 'node',
    send: (at) => {
      const pod = aPod({
        metadata: {
          name: 'static-far-away',
          labels: { 'kilit.dev/lock': 'billing' },
          annotations: { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.source': 'file' },
        },
        spec: { schedulerName: undefined, nodeName: 'far-away', automountServiceAccountToken: false },
      });
      return create(at, at.who.admin, pod);
    },
    refused: /a static Pod cannot take lock billing: its kubelet starts it without the injected sidecar/,
  },
  {
    name: 'two locks, joined by a dot',
    as: 'editor',
    send: creatingPod(withLock('a.b')),
    refused: /label kilit\.dev\/lock="a\.b" does not name one lock; a Pod takes exactly one/,
  },
  {
    name: 'two locks, joined by an underscore',
    as: 'editor',
    send: creatingPod(withLock('a_b')),
    refused: /label kilit\.dev\/lock="a_b" does not name one lock/,
  },
  {
    name: 'two locks, joined by a comma',
    as: 'editor',
    send: creatingPod(withLock('a,b')),
    refused: /metadata\.labels: Invalid value: "a,b"/,
  },
  {
    name: 'an empty lock',
    as: 'editor',
    send: creatingPod(withLock('')),
    refused: /label kilit\.dev\/lock="" does not name one lock/,
  },
  {
    name: 'a lock in capitals',
    as: 'editor',
    send: creatingPod(withLock('Billing')),
    refused: /label kilit\.dev\/lock="Billing" does not name one lock/,
  },
  {
    name: 'more locks in an annotation',
    as: 'editor',
    send: creatingPod(withAnnotation('kilit.dev/locks', 'a,b')),
    refused: /annotation kilit\.dev\/locks="a,b" is not known; a Pod takes exactly one lock/,
  },
  {
    name: 'an unknown mode',
    as: 'editor',
    send: creatingPod(withAnnotation('kilit.dev/mode', 'Standby')),
    refused: /annotation kilit\.dev\/mode is "Standby"; set it to gate \(the default\) or standby/,
  },
  ...['0', '65536', 'http', '+80', '1e3', ''].map((port) => ({
    name: `port "${port}"`,
    as: 'editor' as const,
    send: creatingPod(withAnnotation('kilit.dev/port', port)),
    refused: new RegExp(
      `annotation kilit\\.dev/port is "${port.replace('+', '\\+')}"; set it to a port from 1 to 65535`,
    ),
  })),
  {
    name: 'hostNetwork without a port of its own (external-provisioner#690)',
    as: 'admin',
    send: creatingPod(aPod({ spec: { hostNetwork: true } })),
    refused:
      /a Pod with hostNetwork shares its ports with every such Pod of the node, also port 9911 of its sidecar; set annotation kilit\.dev\/port/,
  },
  {
    name: 'a container that listens on the port of the sidecar',
    as: 'editor',
    send: creatingPod(
      aPod({ spec: { containers: [{ name: 'web', image: 'example/web:1', ports: [{ containerPort: 9911 }] }] } }),
    ),
    refused:
      /port 9911 of the sidecar is also declared by container web; set annotation kilit\.dev\/port to a free port/,
  },
  {
    name: 'a Windows Pod',
    as: 'editor',
    send: creatingPod(aPod({ spec: { os: { name: 'windows' } } })),
    refused: /runs on Linux only/,
  },
  {
    name: 'a token of its own in the environment',
    as: 'editor',
    send: creatingPod(
      aPod({
        spec: {
          containers: [{ name: 'main', image: 'example/main:1', env: [{ name: 'FENCING_TOKEN', value: '999' }] }],
        },
      }),
    ),
    refused:
      /not gated by lock billing: container main must take FENCING_TOKEN by fileKeyRef from kilit-run; remove FENCING_TOKEN/,
  },
  {
    name: 'a token of its own in the environment of a standby',
    as: 'editor',
    send: creatingPod(
      aPod({
        metadata: {
          name: 'probe',
          labels: { 'kilit.dev/lock': 'billing' },
          annotations: { 'kilit.dev/mode': 'standby' },
        },
        spec: {
          containers: [{ name: 'main', image: 'example/main:1', env: [{ name: 'FENCING_TOKEN', value: '999' }] }],
        },
      }),
    ),
    refused: /container main sets FENCING_TOKEN, which stays unset in mode standby/,
  },
  {
    name: 'a sidecar that the author wrote himself',
    as: 'editor',
    send: creatingPod(
      aPod({ spec: { initContainers: [{ name: 'kilit', image: 'example/fake:1', restartPolicy: 'Always' }] } }),
    ),
    refused: /kilit-reset and kilit must be the first init containers.*got kilit; remove both from the manifest/,
  },
  {
    name: 'a volume kilit-run on the disk of the node',
    as: 'editor',
    send: creatingPod(aPod({ spec: { volumes: [{ name: 'kilit-run', emptyDir: {} }] } })),
    refused: /not as kilit injects them: volume kilit-run is not an emptyDir in memory/,
  },
];

describe('the creation of a labelled Pod with', () => {
  tryAll(at, { attacks });
});
