/** Composition root of the operator: reads the environment, wires the parts, leads while elected, ends at SIGTERM. */
import pino from 'pino';
import { createKubeClient } from '../kube/client.ts';
import { loadKubeConfig } from '../kube/config.ts';
import { createCaches } from './caches.ts';
import { readConfig } from './config.ts';
import { createMetrics } from './metrics.ts';
import { runOperator } from './operator.ts';

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const log = pino({
    level: config.logLevel,
    base: { instance: config.podName },
  });
  const metrics = createMetrics();
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, 'Stopping');
      stop.abort(new Error(signal));
    });
  }
  const kubeConfig = loadKubeConfig(config.kubeconfigPath);
  const client = createKubeClient(kubeConfig, {
    requested(verb, code, durationSeconds) {
      metrics.requests.inc({ verb, code: String(code) });
      metrics.requestSeconds.observe({ verb }, durationSeconds);
    },
  });
  await runOperator({ config, kubeConfig, client, caches: createCaches(config.namespace), metrics, log }, stop.signal);
  log.info({}, 'Stopped');
  client.close();
}

process.on('unhandledRejection', (err) => {
  process.stderr.write(`${JSON.stringify({ level: 60, msg: 'Unhandled rejection', err: String(err) })}\n`);
  process.exit(1);
});

main().then(
  () => process.exit(0),
  (err: unknown) => {
    process.stderr.write(`${err instanceof Error ? (err.stack ?? err.message) : String(err)}\n`);
    process.exit(1);
  },
);
