/**
 * Global setup of the `cluster` tests: a real cluster with the chart installed, told to the tests by `inject`.
 *
 *   KILIT_KUBECONFIG     a cluster that is there already; else the harness brings one up
 *   KILIT_TEST_CLUSTER   the name of the harness's cluster (default `test`)
 *   KILIT_TEST_REPLICAS  operators to run (default 2); 0 is enough for the policies and needs no image
 */
import type { TestProject } from 'vitest/node';
import { KILIT_IMAGE, openCluster } from '../../tools/cluster/index.ts';
import { installArgs } from './install.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly kubeconfig: string;
    readonly kubectl: string;
    readonly helm: string;
  }
}

export default async function setup(project: TestProject): Promise<void> {
  const kubeconfig = process.env.KILIT_KUBECONFIG;
  const replicas = Number(process.env.KILIT_TEST_REPLICAS ?? 2);
  const cluster = await openCluster({
    name: process.env.KILIT_TEST_CLUSTER ?? 'test',
    ...(kubeconfig !== undefined && { kubeconfig }),
    onProgress: console.error,
  });
  if (replicas > 0) await cluster.loadImage(KILIT_IMAGE);
  await cluster.helm(installArgs({ replicas }));
  project.provide('kubeconfig', cluster.kubeconfigPath);
  project.provide('kubectl', cluster.kubectlPath);
  project.provide('helm', cluster.helmPath);
}
