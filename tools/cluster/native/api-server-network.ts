/** Faults of the API server's network, by rules of this machine in chains that carry the cluster's bridge in their name. */
import { run, succeeds } from '../exec.ts';
import type { Layout } from './layout.ts';

interface Chain {
  readonly table: 'filter' | 'nat';
  readonly hook: 'INPUT' | 'PREROUTING';
  readonly name: string;
}

const iptables = (chain: Chain, ...args: string[]): Promise<unknown> =>
  run('iptables', ['-w', '-t', chain.table, ...args]);

const etcdChain = (cluster: Layout): Chain => ({ table: 'filter', hook: 'INPUT', name: `${cluster.bridge}-ETCD` });
const resetChain = (cluster: Layout): Chain => ({ table: 'filter', hook: 'INPUT', name: `${cluster.bridge}-RESET` });
const divertChain = (cluster: Layout): Chain => ({
  table: 'nat',
  hook: 'PREROUTING',
  name: `${cluster.bridge}-DIVERT`,
});

async function add(chain: Chain, rules: readonly string[][]): Promise<void> {
  await remove(chain);
  await iptables(chain, '-N', chain.name);
  for (const rule of rules) await iptables(chain, '-A', chain.name, ...rule);
  await iptables(chain, '-I', chain.hook, '-j', chain.name);
}

/** Harmless when it is not there. */
async function remove({ table, hook, name }: Chain): Promise<void> {
  for (const args of [
    ['-D', hook, '-j', name],
    ['-F', name],
    ['-X', name],
  ]) {
    await succeeds('iptables', ['-w', '-t', table, ...args]);
  }
}

/** Drops all packets between the API server and etcd; connections stay open. */
export function cutEtcd(cluster: Layout): Promise<void> {
  const port = String(cluster.etcdPort);
  return add(
    etcdChain(cluster),
    ['--dport', '--sport'].map((side) => ['-i', 'lo', '-p', 'tcp', side, port, '-j', 'DROP']),
  );
}

export const healEtcd = (cluster: Layout): Promise<void> => remove(etcdChain(cluster));

/**
 * Leads the nodes' and Pods' new connections to the API server to a port of this machine, and resets those they have.
 *
 * The control plane and this machine reach the API server as before.
 */
export async function divertApiServer(cluster: Layout, port: number): Promise<void> {
  const to = [
    '-i',
    cluster.bridge,
    '-d',
    `${cluster.bridgeAddress}/32`,
    '-p',
    'tcp',
    '--dport',
    String(cluster.apiServerPort),
  ];
  await add(divertChain(cluster), [[...to, '-j', 'REDIRECT', '--to-ports', String(port)]]);
  // What is led elsewhere has another port by now.
  await add(resetChain(cluster), [[...to, '-j', 'REJECT', '--reject-with', 'tcp-reset']]);
}

export async function restoreApiServer(cluster: Layout): Promise<void> {
  await remove(resetChain(cluster));
  await remove(divertChain(cluster));
}

/** What a harness that died has left. */
export async function healAll(cluster: Layout): Promise<void> {
  await healEtcd(cluster);
  await restoreApiServer(cluster);
}
