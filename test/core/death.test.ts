import { describe, expect, it } from 'vitest';
import { isConfirmedDead } from '../../src/core/death.ts';
import type { RawContainerStatus, RawPod } from '../../src/core/raw-pod.ts';

const ended = (name: string, over: object = {}): RawContainerStatus => ({
  name,
  restartCount: 0,
  containerID: `containerd://${name}`,
  state: {
    terminated: {
      reason: 'Completed',
      containerID: `containerd://${name}`,
      finishedAt: '2026-01-01T00:00:00Z',
      ...over,
    },
  },
});
const running = (name: string): RawContainerStatus => ({
  name,
  containerID: `containerd://${name}`,
  state: { running: {} },
});
const notStarted = (name: string, over: Partial<RawContainerStatus> = {}): RawContainerStatus => ({
  name,
  restartCount: 0,
  state: { waiting: { reason: 'PodInitializing' } },
  ...over,
});

interface Shape {
  readonly phase?: string;
  readonly ready?: { readonly status: string; readonly reason: string } | null;
  readonly programs?: readonly RawContainerStatus[];
  readonly inits?: readonly RawContainerStatus[];
}

/** A Pod of an own init container before kilit, the two injected ones, a migration after them, and two programs. */
const pod = ({
  phase = 'Succeeded',
  ready = { status: 'False', reason: 'PodCompleted' },
  programs = [ended('app'), ended('side')],
  inits = [ended('kilit-reset'), ended('kilit', { reason: 'Error' }), ended('migrate')],
}: Shape = {}): RawPod => ({
  metadata: { name: 'a', namespace: 'shop', uid: 'u', resourceVersion: '1' },
  spec: {
    containers: [{ name: 'app' }, { name: 'side' }],
    initContainers: [{ name: 'kilit-reset' }, { name: 'kilit', restartPolicy: 'Always' }, { name: 'migrate' }],
  },
  status: {
    phase,
    ...(ready !== null && { conditions: [{ type: 'ContainersReady', ...ready }] }),
    containerStatuses: programs,
    initContainerStatuses: inits,
  },
});

describe('a death is confirmed', () => {
  it('when the kubelet itself reports every program and the sidecar as ended', () => {
    expect(isConfirmedDead(pod())).toBe(true);
    expect(isConfirmedDead(pod({ phase: 'Failed', ready: { status: 'False', reason: 'PodFailed' } }))).toBe(true);
  });

  it('before the kubelet shows a terminal phase, which it holds back', () => {
    expect(isConfirmedDead(pod({ phase: 'Running', ready: { status: 'False', reason: 'PodFailed' } }))).toBe(true);
    expect(isConfirmedDead(pod({ phase: 'Running', ready: { status: 'False', reason: 'ContainersNotReady' } }))).toBe(
      false,
    );
  });

  it('when a program has never started', () => {
    expect(isConfirmedDead(pod({ programs: [ended('app'), notStarted('side')] }))).toBe(true);
    const inits = [ended('kilit-reset'), ended('kilit'), notStarted('migrate')];
    expect(isConfirmedDead(pod({ inits, programs: [notStarted('app'), notStarted('side')] }))).toBe(true);
  });
});

/** What the kubelet makes of a container that it removed for a restart in place, when the Pod ends then. */
const forgotten = (name: string): RawContainerStatus => ({
  name,
  restartCount: 1,
  state: { terminated: { reason: 'ContainerStatusUnknown', exitCode: 137 } },
  lastState: { terminated: { reason: 'RestartingAllContainers' } },
});
const FAILED = { phase: 'Failed', ready: { status: 'False', reason: 'PodFailed' } } as const;
const FORGOTTEN = { ...FAILED, programs: [forgotten('app'), forgotten('side')] };

describe('the death of a Pod that was restarted behind its gate, and whose programs the kubelet forgot,', () => {
  it('is confirmed by a sidecar that says by its exit code that no program had a token in its life', () => {
    const inits = [ended('kilit-reset', { exitCode: 0 }), ended('kilit', { exitCode: 80 }), forgotten('migrate')];
    expect(isConfirmedDead(pod({ ...FORGOTTEN, inits }))).toBe(true);
  });

  it('is confirmed by a kilit-reset that did not come to its end: no sidecar came after it', () => {
    const inits = [ended('kilit-reset', { exitCode: 1 }), forgotten('kilit'), forgotten('migrate')];
    expect(isConfirmedDead(pod({ ...FORGOTTEN, inits }))).toBe(true);
  });

  it('is confirmed by the complete end of a sidecar that was killed, with that of its restart', () => {
    const inits = [ended('kilit-reset', { exitCode: 0 }), ended('kilit', { exitCode: 137 }), forgotten('migrate')];
    expect(isConfirmedDead(pod({ ...FORGOTTEN, inits }))).toBe(true);
    // A program whose record was lost in another way may live.
    const lost = { ...forgotten('app'), lastState: { terminated: { reason: 'Error' } } };
    expect(isConfirmedDead(pod({ ...FORGOTTEN, inits, programs: [lost, forgotten('side')] }))).toBe(false);
  });

  it.each([
    ['the end of the sidecar is made up', [ended('kilit-reset', { exitCode: 0 }), forgotten('kilit')]],
    ['the sidecar runs', [ended('kilit-reset', { exitCode: 0 }), running('kilit')]],
    ['both ends are made up', [forgotten('kilit-reset'), forgotten('kilit')]],
  ])('is not confirmed when %s', (_, inits) => {
    expect(isConfirmedDead(pod({ ...FORGOTTEN, inits: [...inits, forgotten('migrate')] }))).toBe(false);
  });

  it('is not confirmed while the kubelet may restart something', () => {
    const inits = [ended('kilit-reset', { exitCode: 0 }), ended('kilit', { exitCode: 80 }), forgotten('migrate')];
    const ready = { status: 'False', reason: 'ContainersNotReady' };
    expect(isConfirmedDead(pod({ ...FORGOTTEN, ready, inits }))).toBe(false);
  });
});

describe('a death is not confirmed', () => {
  it.each<[string, Shape]>([
    ['while the kubelet may restart something', { ready: { status: 'False', reason: 'ContainersNotReady' } }],
    ['by a phase without the condition of the kubelet: the Pod garbage collector writes that', { ready: null }],
    [
      'by a phase written over a condition of the running Pod',
      { phase: 'Failed', ready: { status: 'True', reason: '' } },
    ],
    ['while a program runs', { programs: [ended('app'), running('side')] }],
    ['while a gated init container runs', { inits: [ended('kilit-reset'), ended('kilit'), running('migrate')] }],
    ['while the sidecar runs', { inits: [ended('kilit-reset'), running('kilit'), ended('migrate')] }],
    ['when the status of a program is missing', { programs: [ended('app')] }],
    ['when there are no statuses', { programs: [], inits: [] }],
    [
      'when the kubelet made the end up',
      { programs: [ended('app', { reason: 'ContainerStatusUnknown' }), ended('side')] },
    ],
    ['without a containerID', { programs: [ended('app', { containerID: '' }), ended('side')] }],
    ['without a time of its end', { programs: [ended('app', { finishedAt: undefined }), ended('side')] }],
    ['when a waiting program has run before', { programs: [ended('app'), notStarted('side', { restartCount: 1 })] }],
    [
      'when a waiting program has a containerID',
      { programs: [ended('app'), notStarted('side', { containerID: 'x' })] },
    ],
    [
      'when a waiting program has a last state',
      { programs: [ended('app'), notStarted('side', { lastState: { terminated: {} } })] },
    ],
  ])('%s', (_, shape) => {
    expect(isConfirmedDead(pod(shape))).toBe(false);
  });
});
