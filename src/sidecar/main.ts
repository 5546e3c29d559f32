#!/usr/bin/env node
import { join } from 'node:path';
import { holderIdentity } from '../api/names.ts';
import { createApiClient } from './api-client.ts';
import { createClock } from './clock.ts';
import { readConfig, type SidecarConfig } from './config.ts';
import { createRunFiles, readIfThere } from './files.ts';
import { createGate } from './gate.ts';
import { createLeaseClient } from './lease-client.ts';
import { followLease } from './lease-watch.ts';
import { createLog, type Log } from './log.ts';
import { postLossEvent, postUnrenewedEvent } from './loss-event.ts';
import { createMetrics } from './metrics.ts';
import { reset } from './reset.ts';
import { createProbeServer, createSocketServer, listen } from './servers.ts';
import { createSidecar, mayRun } from './sidecar.ts';
import { onTerminate } from './signals.ts'; // first: see there
import { createTroubleLog } from './state-log.ts';
import { setTimer } from './timer.ts';
import { createWatchers } from './watchers.ts';

/**
 * The injected native sidecar `kilit`, and with the argument `reset` the init container `kilit-reset` before it.
 *
 * Exit codes: the sidecar ends with 1, or with 80 if no program was given a token in its life (`IDLE_EXIT_CODE`); either
 * makes the kubelet restart the whole Pod behind the gate. `reset` ends with 0 when it has done its work, else with 1.
 */
function main(): void {
  const read = readConfig(process.env);
  if (read.kind === 'invalid') {
    createLog().error({}, read.message);
    process.exit(1);
  }
  const { config } = read;
  const log = createLog({ lock: config.lock, namespace: config.namespace, pod: config.pod.name });
  if (process.argv[2] === 'reset') runReset(config, log);
  else runSidecar(config, log);
}

function runReset(config: SidecarConfig, log: Log): void {
  const cancel = new AbortController();
  onTerminate(() => cancel.abort());
  const files = createRunFiles(config.runDir, config.mode);
  reset({ files, log, setTimer, signal: cancel.signal }).then(
    () => process.exit(0),
    (error: unknown) => {
      if (!cancel.signal.aborted) log.error({ err: error }, 'Reset failed');
      process.exit(1);
    },
  );
}

function runSidecar(config: SidecarConfig, log: Log): void {
  const clock = createClock();
  const { now, wallMicros } = clock;
  const api = createApiClient(config.api);
  const lease = createLeaseClient({ api, wallMicros }, config);
  const files = createRunFiles(config.runDir, config.mode);
  const metrics = createMetrics();
  const stop = new AbortController();
  const isOpen = () => mayRun(sidecar.view()) || (config.mode === 'standby' && sidecar.view().state !== 'lost');
  const gate = createGate(isOpen);
  const watchers = createWatchers(() => sidecar.view());
  const sidecar = createSidecar(
    {
      now,
      setTimer,
      lease,
      files,
      metrics,
      log,
      random: Math.random,
      openGate: gate.open,
      tell: watchers.tell,
      note: (note) => {
        // A connection pool of its own: an event that fails closes the pool, and a renewal may be under way in the other.
        const apart = createApiClient(config.api);
        void postUnrenewedEvent({ api: apart, wallMicros }, { config, ...note }).finally(() => apart.close());
      },
      exit: (end) => void leave(end),
    },
    { identity: holderIdentity(config.pod), mode: config.mode },
  );
  const leave = async (end: {
    readonly explanation: string;
    readonly token: string | undefined;
    readonly postEvent: boolean;
    readonly code: number;
  }) => {
    stop.abort();
    try {
      if (end.postEvent) await postLossEvent({ api, wallMicros }, { config, ...end });
    } finally {
      process.exit(end.code);
    }
  };

  process.on('uncaughtException', sidecar.crash);
  process.on('unhandledRejection', sidecar.crash);
  onTerminate(() => sidecar.dispatch({ kind: 'terminated' }));
  sidecar.dispatch({ kind: 'started', epoch: files.consumeEpoch() });
  if (sidecar.view().state === 'lost') return;

  files.removeSocket();
  const programs = createSocketServer({ ...sidecar, watchers });
  listen(programs, { path: files.socketPath }, sidecar.crash);
  const renderMetrics = () =>
    metrics.render({
      held: sidecar.view().state === 'held',
      unrenewed: sidecar.view().state === 'unrenewed',
      renewedAt: sidecar.renewedAt(),
      now: now(),
    });
  listen(createProbeServer({ gate, metrics: renderMetrics }), { port: config.port }, sidecar.crash);

  followLease({
    api,
    lease,
    now,
    setTimer,
    signal: stop.signal,
    random: Math.random,
    observe: (observation) => sidecar.dispatch({ kind: 'observed', observation }),
    onTrouble: createTroubleLog(log, config),
    sign: () => readIfThere(join(config.infoDir, 'token')) ?? '',
  }).catch(sidecar.crash);
}

main();
