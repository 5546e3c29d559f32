/** Backup and restore of a native cluster's etcd, done as a person does who follows `docs/guides/restore-and-move.md`. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBinaries } from '../../tools/cluster/binaries/build.ts';
import { etcdutl } from '../../tools/cluster/binaries/go-modules.ts';
import { run } from '../../tools/cluster/exec.ts';
import type { Cluster } from '../../tools/cluster/index.ts';
import { clusterLayout } from '../../tools/cluster/native/layout.ts';
import { readCluster } from '../../tools/cluster/native/state.ts';
import { clusterDir } from '../../tools/cluster/paths.ts';

/** What watches the API server: after its revisions went back they are told nothing until they are started again. */
const CLIENTS = ['kube-controller-manager', 'kube-scheduler'];
const SERVERS = ['kube-apiserver', 'etcd'];

export class Etcd implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #etcdutl: string;
  readonly #dir: string;
  readonly #data: string;
  readonly #client: string;
  readonly #peer: string;

  private constructor(cluster: Cluster, own: { index: number; etcdutl: string; dir: string }) {
    const layout = clusterLayout({ name: cluster.name, index: own.index, dir: clusterDir(cluster.name) });
    this.#cluster = cluster;
    this.#etcdutl = own.etcdutl;
    this.#dir = own.dir;
    this.#data = join(layout.dir, 'etcd');
    this.#client = `http://127.0.0.1:${layout.etcdPort}`;
    this.#peer = `http://127.0.0.1:${layout.etcdPeerPort}`;
  }

  /** Builds etcdutl the first time, about a minute on two cores. */
  static async open(cluster: Cluster): Promise<Etcd> {
    const record = await readCluster(cluster.name);
    if (record === undefined) throw new Error(`Cluster ${cluster.name} was not made by this harness`);
    const { etcdutl: path = '' } = await ensureBinaries(etcdutl, console.error);
    const dir = await mkdtemp(join(tmpdir(), 'kilit-etcd-'));
    return new Etcd(cluster, { index: record.index, etcdutl: path, dir });
  }

  /** Saves a snapshot, as `etcdctl snapshot save` does; returns its file. */
  async snapshot(name: string): Promise<string> {
    const file = join(this.#dir, `${name}.db`);
    const out = createWriteStream(file);
    const sent = request(`${this.#client}/v3/maintenance/snapshot`, { method: 'POST' });
    sent.end('{}');
    const [response] = (await once(sent, 'response')) as [AsyncIterable<Buffer>];
    let rest = '';
    for await (const chunk of response) {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) out.write(blobOf(line));
    }
    if (rest.trim() !== '') out.write(blobOf(rest));
    out.end();
    await once(out, 'close');
    return file;
  }

  /** Stops what uses it, restores the snapshot with these flags, and starts everything again. */
  async restore(snapshot: string, flags: readonly string[] = []): Promise<void> {
    await this.#replaceData(async () => {
      const to = ['--data-dir', this.#data, '--name=default', `--initial-cluster=default=${this.#peer}`];
      const peer = `--initial-advertise-peer-urls=${this.#peer}`;
      await run(this.#etcdutl, ['snapshot', 'restore', snapshot, ...to, peer, ...flags]);
    });
  }

  /** A new, empty cluster on the same machines: its revision begins at 1. */
  async renew(): Promise<void> {
    await this.#replaceData(async () => {});
  }

  async #replaceData(make: () => Promise<void>): Promise<void> {
    for (const name of [...CLIENTS, ...SERVERS]) await this.#cluster.component(name).stop();
    await rm(this.#data, { recursive: true, force: true });
    await make();
    for (const name of [...SERVERS.toReversed(), ...CLIENTS]) await this.#cluster.component(name).restart();
    for (const node of this.#cluster.nodes) {
      await node.restartKubelet();
      await this.#cluster.component(`kube-proxy-${node.name}`).restart();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
  }
}

function blobOf(line: string): Buffer {
  const { result } = JSON.parse(line) as { readonly result?: { readonly blob?: string } };
  if (result === undefined) throw new Error(`etcd sent no snapshot: ${line.slice(0, 300)}`);
  return Buffer.from(result.blob ?? '', 'base64');
}
