import { describe, expect, it } from 'vitest';
import { notStartedAt, type Progress, progressOf } from '../../src/core/progress.ts';
import type { RawContainerStatus, RawPod } from '../../src/core/raw-pod.ts';

type State = 'waiting' | 'running' | 'failed' | 'completed';

const status = (name: string, state: State, run = 1): RawContainerStatus => ({
  name,
  ...(state !== 'waiting' && { containerID: `containerd://${name}-${run}` }),
  state:
    state === 'waiting'
      ? { waiting: { reason: 'CrashLoopBackOff' } }
      : state === 'running'
        ? { running: {} }
        : { terminated: { exitCode: state === 'failed' ? 1 : 0 } },
});

const pod = (programs: readonly RawContainerStatus[], inits: readonly RawContainerStatus[] = []): RawPod => ({
  metadata: { name: 'a', namespace: 'shop', uid: 'u', resourceVersion: '1' },
  spec: {
    initContainers: [
      { name: 'kilit-reset' },
      { name: 'kilit', restartPolicy: 'Always' },
      { name: 'migrate' },
      { name: 'logs', restartPolicy: 'Always' },
    ],
    containers: [{ name: 'app' }, { name: 'helper' }],
  },
  status: {
    containerStatuses: programs,
    initContainerStatuses: [status('kilit-reset', 'completed'), status('kilit', 'running'), ...inits],
  },
});

type Seen = readonly [second: number, pod: RawPod];

/** What is known after these states of the Pod, seen at these times in seconds. */
const after = (...seen: readonly Seen[]): Progress =>
  seen.reduce<Progress | undefined>((known, [second, raw]) => progressOf(raw, second * 1000, known), undefined) ??
  progressOf(pod([]), 0, undefined);

/** When the grant that was confirmed at second 0 counts as not started, in seconds. */
const due = (...seen: readonly Seen[]): number | undefined => {
  const at = notStartedAt(after(...seen), { confirmedAt: 0, startDeadlineSeconds: 60 });
  return at === undefined ? undefined : at / 1000;
};

const waiting = pod([status('app', 'waiting')]);
const running = (run = 1) => pod([status('app', 'running', run)]);

describe('a grant counts as not started', () => {
  it('startDeadlineSeconds after its confirmation while no program has run', () => {
    expect(due([0, waiting])).toBe(60);
    expect(due([0, pod([])])).toBe(60);
  });

  it('never while a program runs', () => {
    expect(due([0, waiting], [5, running()])).toBeUndefined();
    expect(due([0, pod([status('app', 'waiting'), status('helper', 'running')])])).toBeUndefined();
  });

  it('at the same time as before after a run of less than 30 s, and after many of them', () => {
    expect(due([5, running()], [34, waiting])).toBe(60);
    expect(due([5, running()], [10, waiting], [30, running(2)], [33, waiting])).toBe(60);
  });

  it('startDeadlineSeconds after the end of a run of 30 s, also with short ones after it', () => {
    expect(due([5, running()], [35, waiting])).toBe(95);
    expect(due([5, running()], [35, waiting], [45, running(2)], [46, waiting])).toBe(95);
  });

  it('takes a container that was replaced unseen for two runs', () => {
    expect(due([5, running()], [30, running(2)], [50, waiting])).toBe(60);
  });

  it('never while an init container behind the gate runs, however long', () => {
    expect(due([0, waiting], [5, pod([], [status('migrate', 'running')])])).toBeUndefined();
  });

  it('startDeadlineSeconds after an init container has completed, and not after one that failed', () => {
    const migrating = pod([], [status('migrate', 'running')]);
    expect(due([5, migrating], [15, pod([status('app', 'waiting')], [status('migrate', 'completed')])])).toBe(75);
    expect(due([5, migrating], [15, pod([status('app', 'waiting')], [status('migrate', 'failed')])])).toBe(60);
  });

  it('although a native sidecar runs, which is no program', () => {
    expect(due([0, pod([status('app', 'waiting')], [status('logs', 'running')])])).toBe(60);
  });

  it('by what this process has seen itself: what was there before counts from its first sight', () => {
    expect(due([100, running()], [125, waiting])).toBe(60);
    expect(notStartedAt(after([100, waiting]), { confirmedAt: 100_000, startDeadlineSeconds: 60 })).toBe(160_000);
  });
});
