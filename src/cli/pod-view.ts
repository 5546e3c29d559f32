import { type PodView, podView } from '../core/pod.ts';
import type { RawPod } from '../core/raw-pod.ts';

/** A Pod as the operator reduces it, seen for the first time. */
export const viewOf = (pod: RawPod): PodView => podView(pod, 0, undefined);
