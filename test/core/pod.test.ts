import { describe, expect, it } from 'vitest';
import { podView } from '../../src/core/pod.ts';
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
