import { existsSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { apiServerCommand, controllerManagerCommand, etcdCommand, schedulerCommand } from './flags.ts';
import type { Layout } from './layout.ts';
import { Program } from './program.ts';

const PROBE_MILLISECONDS = 2000;

export interface ControlPlaneBinaries {
  readonly etcd: string;
  readonly apiServer: string;
  readonly controllerManager: string;
  readonly scheduler: string;
}

/** In the order in which they are started; ended in the opposite one. */
export function controlPlane(
  cluster: Layout,
  binaries: ControlPlaneBinaries,
  options: { readonly fsync: boolean },
): readonly Program[] {
  return [
    new Program({
      cluster,
      name: 'etcd',
      command: etcdCommand(binaries.etcd, cluster, options),
      isReady: () => answers(`http://127.0.0.1:${cluster.etcdPort}/health`),
    }),
    new Program({
      cluster,
      name: 'kube-apiserver',
      command: apiServerCommand(binaries.apiServer, cluster),
      isReady: () => apiServerIsReady(cluster),
      readySeconds: 120,
    }),
    new Program({
      cluster,
      name: 'kube-controller-manager',
      command: controllerManagerCommand(binaries.controllerManager, cluster),
    }),
    new Program({ cluster, name: 'kube-scheduler', command: schedulerCommand(binaries.scheduler, cluster) }),
  ];
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    get(url, { timeout: PROBE_MILLISECONDS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    })
      .on('timeout', () => resolve(false))
      .on('error', () => resolve(false));
  });
}

/** As administrator: `/readyz` is true after the built-in roles are there. */
function apiServerIsReady(cluster: Layout): Promise<boolean> {
  const pki = (file: string): Buffer => readFileSync(join(cluster.pki, file));
  if (!existsSync(join(cluster.pki, 'admin.crt'))) return Promise.resolve(false);
  return new Promise((resolve) => {
    request(
      {
        host: cluster.bridgeAddress,
        port: cluster.apiServerPort,
        path: '/readyz',
        ca: pki('ca.crt'),
        cert: pki('admin.crt'),
        key: pki('admin.key'),
        timeout: PROBE_MILLISECONDS,
        agent: false,
      },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    )
      .on('timeout', function onTimeout(this: { destroy: () => void }) {
        this.destroy();
      })
      .on('error', () => resolve(false))
      .end();
  });
}
