/** The cluster of the `cluster` tests, as its global setup left it. */
import { inject } from 'vitest';
import { type Kube, openKube } from './kube.ts';

export const openTestKube = (): Kube => openKube(inject('kubeconfig'), inject('kubectl'));

/** Where the setup installs the chart, and its release name: also the operator's namespace and ServiceAccount. */
export const OPERATOR_NAMESPACE = 'kilit-system';
export const RELEASE = 'kilit';
