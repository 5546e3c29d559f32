/** What every measurement needs: the cluster, a namespace of its own, and Pods whose program can be watched. */
import type { KubeObject } from '../../test/support/kube.ts';
import type { PodOptions, Scene } from '../../test/support/scene.ts';
import { waitFor } from '../../test/support/wait.ts';
import type { Cluster } from '../cluster/index.ts';

/** Ends at once when told to, and says when it started and what it then saw. */
export const PROGRAM = `
const fs = require('fs');
process.on('SIGTERM', () => process.exit(0));
const at = Date.now();
const run = fs.statSync('/run/kilit/token').mtimeMs;
console.log(JSON.stringify({ started: { env: process.env.FENCING_TOKEN, at, run } }));
const timer = setInterval(() => {
  let shown = '';
  try { shown = fs.readFileSync('/etc/kilit/token', 'utf8').trim(); } catch {}
  if (shown !== process.env.FENCING_TOKEN) return;
  console.log(JSON.stringify({ display: shown, at: Date.now() }));
  clearInterval(timer);
}, 10);
setInterval(() => {}, 1e6);
`;

export interface Bench {
  readonly cluster: Cluster;
  readonly scene: Scene;
  readonly tries: number;
  readonly say: (line: string) => void;
}

export interface Start {
  readonly pod: string;
  readonly token: string;
  /** Wall clocks of this one machine, in milliseconds. */
  readonly startedAt: number;
  readonly tokenFileAt: number;
  readonly grantedAt: number;
}

export const measuredPod = (options: Pick<PodOptions, 'lock' | 'name' | 'spec'>): PodOptions => ({
  ...options,
  program: PROGRAM,
});

/** Waits for the program of this Pod and returns when it was granted the lock and when it started. */
export async function startOf({ scene }: Bench, lock: string, pod: string, seconds = 120): Promise<Start> {
  const started = (await scene.started(pod, seconds)) as unknown as { env: string; at: number; run: number };
  const lease = await scene.readLease(lock);
  return {
    pod,
    token: started.env,
    startedAt: started.at,
    tokenFileAt: started.run,
    grantedAt: Date.parse(lease.spec?.acquireTime ?? ''),
  };
}

export const displayedAt = ({ scene }: Bench, pod: string): Promise<number> =>
  waitFor('the display of the token', async () => {
    const line = (await scene.logs(pod)).find((entry) => 'display' in entry);
    return line === undefined ? undefined : Number(line.at);
  });

/** A waiter is ready when its sidecar runs and the operator counts it. */
export const waits = ({ scene }: Bench, lock: string, pod: string): Promise<true> =>
  waitFor(
    `Pod ${pod} to wait`,
    async () => {
      const { status } = await scene.readLock(lock);
      const entry = status?.queue?.find((waiter) => waiter.name === pod);
      return entry?.reason === 'Waiting' || undefined;
    },
    { seconds: 120 },
  ).then(() => true);

export const uidOf = (object: KubeObject | { readonly metadata: { readonly uid: string } }): string =>
  object.metadata?.uid ?? '';
