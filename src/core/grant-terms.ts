import { ON_RENEWAL_FAILURE_ANNOTATION, TAKEOVER_ANNOTATION } from '../api/names.ts';

/**
 * What ends a grant besides its holder.
 *
 * - `Lease`: the holder's confirmed death, or time: lease duration and takeover delay without a renewal.
 * - `PodGone`: the holder's confirmed death alone. Time never passes a grant on that a program may have started under.
 */
export type Takeover = 'Lease' | 'PodGone';

/**
 * What the sidecar does when no renewal was answered by the deadline.
 *
 * - `Stop`: it stops the program.
 * - `ContinueFenced`: the program goes on until somebody else is seen to hold the lock, or nobody. Two programs may run
 *   then; only a guard at the resource refuses the older one.
 */
export type OnRenewalFailure = 'Stop' | 'ContinueFenced';

type Annotations = Readonly<Record<string, unknown>>;

/** Any other text than `PodGone` is the default: the policy lets none through. */
export const takeoverOf = (annotations: Annotations): Takeover =>
  annotations[TAKEOVER_ANNOTATION] === 'PodGone' ? 'PodGone' : 'Lease';

/** Any other text than `ContinueFenced` is the default, which is the safe one. */
export const onRenewalFailureOf = (annotations: Annotations): OnRenewalFailure =>
  annotations[ON_RENEWAL_FAILURE_ANNOTATION] === 'ContinueFenced' ? 'ContinueFenced' : 'Stop';
