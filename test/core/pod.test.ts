import { describe, expect, it } from 'vitest';
import { type PodView, podView } from '../../src/core/pod.ts';
import type { RawContainerStatus } from '../../src/core/raw-pod.ts';

type State = NonNullable<RawContainerStatus['state']>;

const waiting = (reason: string): State => ({ waiting: { reason } });
const ended: State = { terminated: { reason: 'Completed' } };

/** What the view says of a sidecar that does not run, given the states of the two injected containers. */
const reasonOf = (states: { readonly reset?: State; readonly sidecar?: State }): string | undefined =>
  podView(
    {
      metadata: { name: 'a', namespace: 'shop', uid: 'u', resourceVersion: '1' },
      spec: { containers: [{ name: 'app' }] },
      status: {
        initContainerStatuses: [
          ...(states.reset === undefined ? [] : [{ name: 'kilit-reset', state: states.reset }]),
          ...(states.sidecar === undefined ? [] : [{ name: 'kilit', state: states.sidecar }]),
        ],
      },
    },
    0,
    undefined,
  ).sidecarWaiting;

describe('why a sidecar does not run', () => {
  it.each(['ErrImagePull', 'ImagePullBackOff', 'CreateContainerConfigError', 'CrashLoopBackOff'])(
    'is %s of kilit-reset as long as that has not ended',
    (reason) => {
      expect(reasonOf({ reset: waiting(reason), sidecar: waiting('PodInitializing') })).toBe(reason);
    },
  );

  it('is what the kubelet says of the sidecar once kilit-reset has ended', () => {
    expect(reasonOf({ reset: ended, sidecar: waiting('ErrImagePull') })).toBe('ErrImagePull');
  });

  it('is that of the sidecar too while kilit-reset runs, which waits out the back-off after losses', () => {
    expect(reasonOf({ reset: { running: {} }, sidecar: waiting('PodInitializing') })).toBe('PodInitializing');
  });

  it('is nothing when it runs, or when the kubelet has not spoken yet', () => {
    expect(reasonOf({ reset: ended, sidecar: { running: {} } })).toBeUndefined();
    expect(reasonOf({})).toBeUndefined();
  });
});

describe('the grace period of a Pod', () => {
  const deleted = (graceSeconds: number, previous?: PodView): PodView =>
    podView(
      {
        metadata: {
          name: 'a',
          namespace: 'shop',
          uid: 'u',
          resourceVersion: '1',
          deletionTimestamp: '2026-01-01T00:00:00Z',
          deletionGracePeriodSeconds: graceSeconds,
        },
        spec: { containers: [{ name: 'app' }], terminationGracePeriodSeconds: 30 },
      },
      0,
      previous,
    );

  it('is the longer of what it asks for and what it is deleted with', () => {
    expect(deleted(600).graceSeconds).toBe(600);
    expect(deleted(5).graceSeconds).toBe(30);
  });

  it('does not become shorter by a second deletion: that one counts from its own time on', () => {
    expect(deleted(5, deleted(600)).graceSeconds).toBe(600);
  });
});
