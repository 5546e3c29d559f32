/** The parts that the injection adds to a Pod, and Pods for it. */
import { expect } from 'vitest';
import type { Container } from './pods.ts';
import { aPod } from './world.ts';

export const TOKEN_ENV = {
  name: 'FENCING_TOKEN',
  valueFrom: { fileKeyRef: { volumeName: 'kilit-run', path: 'env', key: 'FENCING_TOKEN', optional: false } },
};
export const SOCKET_ENV = { name: 'KILIT_SOCKET', value: '/run/kilit/sock' };
export const RUN_MOUNT = { name: 'kilit-run', mountPath: '/run/kilit', readOnly: true };
export const INFO_MOUNT = { name: 'kilit-info', mountPath: '/etc/kilit', readOnly: true };

export const names = (containers: readonly { readonly name: string }[]) => containers.map(({ name }) => name);
export const main = (change: Partial<Container> = {}) => ({ name: 'main', image: 'example/main:1', ...change });
export const spec = (change: object) => aPod({ spec: change });
export const annotated = (annotations: Record<string, string>, change: object = {}) =>
  aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing' }, annotations }, spec: change });

export function expectGated(one: Container): void {
  expect(one.env?.slice(0, 2)).toEqual([TOKEN_ENV, SOCKET_ENV]);
  expect(one.volumeMounts).toEqual(expect.arrayContaining([RUN_MOUNT, INFO_MOUNT]));
}
