import { describe, expect, it } from 'vitest';
import { workloadOf } from '../../src/core/workload.ts';

const pod = (owner: object | undefined, labels: Readonly<Record<string, string>> = {}) =>
  workloadOf({
    metadata: {
      name: 'a',
      namespace: 'shop',
      uid: 'u',
      resourceVersion: '1',
      labels,
      ...(owner !== undefined && {
        ownerReferences: [{ kind: 'X', name: 'x', uid: 'owner', controller: true, ...owner }],
      }),
    },
    spec: { containers: [] },
  });

describe('the workload of a Pod', () => {
  it('is its Deployment, by the name of the ReplicaSet without the hash of the template', () => {
    const labels = { 'pod-template-hash': '7d9c5b4f6' };
    const owner = { kind: 'ReplicaSet', name: 'billing-eu-7d9c5b4f6' };
    expect(pod(owner, labels)).toEqual({ id: 'Deployment/billing-eu', revision: '7d9c5b4f6' });
  });

  it.each(['StatefulSet', 'DaemonSet'])('is its %s, by UID', (kind) => {
    const labels = { 'controller-revision-hash': 'billing-5d4f' };
    expect(pod({ kind, name: 'billing' }, labels)).toEqual({ id: `${kind}/owner`, revision: 'billing-5d4f' });
  });

  it.each([
    ['it has no owner', undefined, {}],
    ['its owner is no controller', { kind: 'StatefulSet', controller: false }, { 'controller-revision-hash': 'h' }],
    ['a Job made it', { kind: 'Job' }, { 'controller-revision-hash': 'h' }],
    ['its ReplicaSet belongs to no Deployment', { kind: 'ReplicaSet', name: 'billing' }, {}],
    ['its ReplicaSet is called otherwise', { kind: 'ReplicaSet', name: 'billing-x' }, { 'pod-template-hash': 'y' }],
    ['it carries no hash', { kind: 'StatefulSet' }, {}],
  ])('is unknown when %s', (_, owner, labels) => {
    expect(pod(owner, labels as Record<string, string>)).toBeUndefined();
  });
});
