import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_CLUSTERS, MAX_NODES } from '../../tools/cluster/constants.ts';
import { clusterLayout, freeIndex, type Layout, nodeLayout } from '../../tools/cluster/native/layout.ts';

const layout = (index: number, name = `c${index}`): Layout => clusterLayout({ name, index, dir: `/state/${name}` });

/** The longest name of a network interface that Linux takes. */
const MAX_LINK_NAME = 15;

describe('the index of a cluster', () => {
  it('is the lowest free one', () => {
    expect(freeIndex([], 16)).toBe(0);
    expect(freeIndex([0, 1, 3], 16)).toBe(2);
  });

  it('is not given when all are taken', () => {
    expect(() => freeIndex([0, 1], 2)).toThrow('2 clusters exist on this machine');
  });

  it('separates everything on the machine of any two clusters', () => {
    const index = fc.integer({ min: 0, max: MAX_CLUSTERS - 1 });
    fc.assert(
      fc.property(index, index, (a, b) => {
        fc.pre(a !== b);
        expect(shared(onMachine(layout(a)), onMachine(layout(b)))).toEqual([]);
      }),
    );
  });

  it('gives each node of a cluster its own names and addresses', () => {
    const nodes = Array.from({ length: MAX_NODES }, (_, number) => nodeLayout(layout(0), number + 1));
    const values = nodes.flatMap((node) => Object.values(node));
    expect(new Set(values).size).toBe(values.length - MAX_NODES); // Only netns and cgroup of one node are the same word.
  });

  it('keeps link names short enough for the kernel', () => {
    const last = layout(MAX_CLUSTERS - 1);
    for (const name of [last.bridge, nodeLayout(last, MAX_NODES).hostLink]) {
      expect(name.length).toBeLessThanOrEqual(MAX_LINK_NAME);
    }
  });

  it('keeps service addresses inside the service range', () => {
    expect(layout(0)).toMatchObject({ serviceCidr: '10.96.0.0/20', apiServiceAddress: '10.96.0.1' });
    expect(layout(15)).toMatchObject({ serviceCidr: '10.96.240.0/20', apiServiceAddress: '10.96.240.1' });
  });
});

/** Values that two clusters must not have in common. */
function onMachine(cluster: Layout): readonly (string | number)[] {
  const { etcdPort, etcdPeerPort, controllerManagerPort, schedulerPort } = cluster;
  const nodes = Array.from({ length: MAX_NODES }, (_, number) => Object.values(nodeLayout(cluster, number + 1)));
  const ports = [etcdPort, etcdPeerPort, controllerManagerPort, schedulerPort];
  const names = [
    cluster.bridge,
    cluster.bridgeAddress,
    cluster.nodeCidr,
    cluster.podCidr,
    cluster.serviceCidr,
    cluster.dir,
  ];
  return [...ports, ...names, ...nodes.flat().filter((value) => !/^node\d$/.test(value))];
}

const shared = (a: readonly unknown[], b: readonly unknown[]): readonly unknown[] =>
  a.filter((value) => b.includes(value));
