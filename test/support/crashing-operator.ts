/**
 * The real operator, which kills itself with SIGKILL around its first write.
 *
 *   CRASH=before   at the moment when it would send its first write
 *   CRASH=after    when the API server has answered its first write, before anything is made of the answer
 *   CRASH=never    lives on
 *
 * Run in turn, `before` and `after` kill the operator before and after each write that it ever makes.
 */
import { writeSync } from 'node:fs';
import pino from 'pino';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { loadKubeConfig } from '../../src/kube/config.ts';
import { createCaches } from '../../src/operator/caches.ts';
import { readConfig } from '../../src/operator/config.ts';
import { createMetrics } from '../../src/operator/metrics.ts';
import { runOperator } from '../../src/operator/operator.ts';
import { createWriter } from '../../src/operator/writer.ts';

const crash = process.env.CRASH;
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
};

/** The client as the writer sees it: everything that the writer sends is a write. */
const dying = (client: KubeClient): KubeClient => ({
  close: () => client.close(),
  async request<Answer>(request: Parameters<KubeClient['request']>[0]): Promise<Answer> {
    if (crash === 'before') return die();
    const answer = await client.request<Answer>(request);
    writeSync(1, `wrote ${request.verb} ${request.path}\n`);
    return crash === 'after' ? die() : answer;
  },
});

const config = readConfig(process.env);
const kubeConfig = loadKubeConfig(config.kubeconfigPath);
const client = createKubeClient(kubeConfig);
await runOperator(
  {
    config,
    kubeConfig,
    client,
    caches: createCaches(config.namespace),
    metrics: createMetrics(),
    log: pino({ level: config.logLevel }),
    createWriter: (deps) => createWriter({ ...deps, client: dying(deps.client) }),
  },
  new AbortController().signal,
);
