/** A kubectl that goes on: its lines one by one, until it ends. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Cluster } from '../cluster/index.ts';

/** Calls `onLine` for each line of standard output; resolves when kubectl has ended, however that happened. */
export async function kubectlLines(
  cluster: Pick<Cluster, 'kubectlPath' | 'kubeconfigPath'>,
  args: readonly string[],
  at: { readonly signal: AbortSignal; readonly onLine: (line: string) => void },
): Promise<void> {
  const child = spawn(cluster.kubectlPath, args, {
    env: { ...process.env, KUBECONFIG: cluster.kubeconfigPath },
    stdio: ['ignore', 'pipe', 'ignore'],
    signal: at.signal,
  });
  const closed = new Promise<void>((resolve) => {
    child.on('error', () => resolve());
    child.on('close', () => resolve());
  });
  createInterface({ input: child.stdout }).on('line', at.onLine);
  await closed;
}
