/** Is a lock's lease long enough for its Pods and for this API server? Pure. */
import { lockView } from '../../../core/lock.ts';
import { viewOf } from '../../pod-view.ts';
import { some } from '../../text.ts';
import { type Facts, isLive, podName } from '../facts.ts';
import { type Finding, fail, ok, onRead, warn } from '../finding.ts';

const SECONDS_PER_KILL = 2;

/** The kubelet kills containers in turn, each may take 2 s: a lease below that is spent on the stopping alone. */
export function containers({ locks, pods }: Facts): readonly Finding[] {
  const check = 'lease-for-containers';
  return onRead(check, locks, (all) =>
    onRead(check, pods, (labelled) => {
      const most = new Map<string, number>();
      for (const pod of labelled.filter(isLive).map(viewOf)) {
        const key = `${pod.namespace}/${pod.lock}`;
        most.set(key, Math.max(most.get(key) ?? 0, pod.containers));
      }
      const short = all.flatMap((lock) => {
        const count = most.get(podName(lock)) ?? 0;
        const needed = SECONDS_PER_KILL * count + 1;
        const { leaseDurationSeconds: lease } = lockView(lock).spec;
        return count > 0 && lease < needed
          ? [`${podName(lock)} (lease ${lease} s, ${count} containers need ${needed} s)`]
          : [];
      });
      if (short.length === 0) return [ok(check, 'Each lease is longer than the kubelet may need to stop a holder')];
      return [
        warn(check, {
          says: `Leases shorter than the stopping of a holder: ${some(short, 3)}.`,
          means:
            'Nothing is unsafe (the operator waits for the stopping too), but a short pause costs a restart that takes longer than the lease.',
          todo: 'Raise spec.leaseDurationSeconds, or use fewer containers.',
        }),
      ];
    }),
  );
}

/** A renewal goes out every third of the lease: it must be back long before the next. */
export function latency({ locks, latenciesMs }: Facts): readonly Finding[] {
  const check = 'lease-for-latency';
  return onRead(check, locks, (all) => {
    const slowest = Math.max(0, ...latenciesMs);
    const measured = `slowest of ${latenciesMs.length} requests from here: ${Math.round(slowest)} ms`;
    const tooSlow = (part: number) =>
      all.filter((lock) => slowest >= (lockView(lock).spec.leaseDurationSeconds * 1000) / part).map(podName);
    const [failing, tight] = [tooSlow(3), tooSlow(9)];
    if (tight.length === 0) return [ok(check, `The API server answers fast enough for each lease (${measured})`)];
    const text = {
      says: `The API server is slow for the lease of ${some(failing.length > 0 ? failing : tight)} (${measured}).`,
      means: 'Renewals may come too late, and holders be stopped although they are well.',
      todo: 'Raise spec.leaseDurationSeconds to nine times the slowest answer or more, or find out why the API server is slow.',
    };
    return [failing.length > 0 ? fail(check, text) : warn(check, text)];
  });
}
