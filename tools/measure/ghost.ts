/** A node without a kubelet, and what a kubelet would say of the Pods that are bound to it. */
import { RESET_CONTAINER, SIDECAR_CONTAINER } from '../../src/api/names.ts';
import type { Kube } from '../../test/support/kube.ts';

const ENDED = {
  exitCode: 0,
  reason: 'Completed',
  containerID: 'containerd://ghost',
  finishedAt: '2026-01-01T00:00:00Z',
};
const NODE_INFO_FIELDS = [
  'machineID',
  'systemUUID',
  'bootID',
  'kernelVersion',
  'osImage',
  'containerRuntimeVersion',
  'kubeProxyVersion',
  'operatingSystem',
  'architecture',
];

/** The controller manager takes a node for lost after 50 s without a sign. */
const BEAT_MS = 10_000;

export async function ghostNode(kube: Kube, name: string): Promise<AsyncDisposable & { readonly name: string }> {
  await kube.must('POST', '/api/v1/nodes', { body: { metadata: { name }, spec: { unschedulable: true } } });
  const nodeInfo = Object.fromEntries(NODE_INFO_FIELDS.map((field) => [field, 'x']));
  const beat = () =>
    kube.must('PATCH', `/api/v1/nodes/${name}/status`, {
      patch: 'strategic',
      body: {
        status: {
          nodeInfo: { ...nodeInfo, kubeletVersion: 'v1.36.0' },
          declaredFeatures: ['RestartAllContainersOnContainerExits'],
          conditions: [{ type: 'Ready', status: 'True', reason: 'Ghost', lastHeartbeatTime: new Date().toISOString() }],
        },
      },
    });
  await beat();
  const timer = setInterval(() => void beat().catch(() => {}), BEAT_MS);
  return {
    name,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await kube.ask('DELETE', `/api/v1/nodes/${name}`);
    },
  };
}

const container = (name: string, state: object) => ({
  name,
  state,
  image: 'ghost',
  imageID: '',
  ready: false,
  restartCount: 0,
});

/** The sidecar runs, and the gate is shut. */
export const waitingStatus = () => ({
  phase: 'Pending',
  initContainerStatuses: [
    container(RESET_CONTAINER, { terminated: ENDED }),
    container(SIDECAR_CONTAINER, { running: { startedAt: '2026-01-01T00:00:00Z' } }),
  ],
});

/** Everything has ended well. */
export const endedStatus = () => ({
  phase: 'Succeeded',
  conditions: [{ type: 'ContainersReady', status: 'False', reason: 'PodCompleted' }],
  initContainerStatuses: [
    container(RESET_CONTAINER, { terminated: ENDED }),
    container(SIDECAR_CONTAINER, { terminated: ENDED }),
  ],
  containerStatuses: [container('app', { terminated: ENDED })],
});
