/** The cluster of the `cluster` tests, as its global setup left it. */
import { execFileSync } from 'node:child_process';
import { inject } from 'vitest';
import { type Kube, openKube } from './kube.ts';

export const openTestKube = (): Kube => openKube(inject('kubeconfig'), inject('kubectl'));

/** Runs helm against it, in the root of the work tree. Returns the standard output, throws with the standard error. */
export const helm = (...args: readonly string[]): string =>
  execFileSync(inject('helm'), ['--kubeconfig', inject('kubeconfig'), ...args], { encoding: 'utf8', stdio: 'pipe' });

/** Runs kubectl against it. Returns the standard output, throws with the standard error. */
export const kubectl = (...args: readonly string[]): string =>
  execFileSync(inject('kubectl'), ['--kubeconfig', inject('kubeconfig'), ...args], { encoding: 'utf8', stdio: 'pipe' });

export { OPERATOR_NAMESPACE, RELEASE } from './install.ts';
