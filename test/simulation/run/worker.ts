/** A thread that runs seeds; a mutation is planted before anything of the project is loaded. */
import { parentPort, workerData } from 'node:worker_threads';
import { leaveOutClientNode, plant } from '../mutations/hooks.ts';
import { MUTATIONS } from '../mutations/mutations.ts';
import type { Order, WorkerSettings } from './messages.ts';

const { mutation } = workerData as WorkerSettings;
leaveOutClientNode();
const planted = MUTATIONS.find(({ name }) => name === mutation);
if (planted !== undefined) plant(planted);
const { runSeeds } = await import('./seeds.ts');

async function obey(order: Order & { kind: 'run' }): Promise<void> {
  const report = await runSeeds({ ...order, mutation });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(report);
}

parentPort?.on('message', (order: Order) => {
  if (order.kind === 'stop') process.exit(0);
  void obey(order);
});
