import { holderIdentity } from '../../../src/api/names.ts';
import type { Mode } from '../../../src/core/holder-types.ts';
import type { LockView } from '../../../src/core/holder-view.ts';
import { createClock } from '../../../src/sidecar/clock.ts';
import { createLeaseClient } from '../../../src/sidecar/lease-client.ts';
import { followLease } from '../../../src/sidecar/lease-watch.ts';
import { postLossEvent } from '../../../src/sidecar/loss-event.ts';
import { createMetrics } from '../../../src/sidecar/metrics.ts';
import { reset } from '../../../src/sidecar/reset.ts';
import { createSidecar } from '../../../src/sidecar/sidecar.ts';
import { createSidecarApi } from '../api/sidecar-api.ts';
import type { Store } from '../api/store.ts';
import type { Proc } from './machine.ts';
import type { Link } from './network.ts';
import type { Random } from './random.ts';
import type { MemoryFiles } from './run-files.ts';

export const QUIET = { debug() {}, info() {}, warn() {}, error() {} };

export interface Identity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly lock: string;
  readonly mode: Mode;
}

/** A running sidecar, as its Pod and its kubelet see it. */
export interface SidecarProcess {
  readonly proc: Proc;
  readonly link: Link;
  readonly view: () => LockView;
  /** SIGTERM. */
  readonly terminate: () => void;
  /** The startup probe's long poll: `answered` is called at the opening, or never. */
  readonly probe: (answered: () => void) => void;
  readonly standDown: () => void;
  readonly breakWatches: (expired: boolean) => void;
}

/** Why a sidecar ends: with a code other than 0, which makes the kubelet restart the whole Pod. */
function exitCode(_explanation: string, code: number): number {
  return code;
}

/** Wires the real parts of the sidecar as src/sidecar/main.ts does, over a simulated machine. */
export function startSidecar(
  deps: {
    readonly proc: Proc;
    readonly link: Link;
    readonly store: Store;
    readonly files: MemoryFiles;
    readonly random: Random;
    /** What the kubelet shows in `/etc/kilit/token`. */
    readonly sign: () => string;
    readonly tell: (view: LockView) => void;
    readonly exited: (code: number, explanation: string) => void;
  },
  identity: Identity,
): SidecarProcess {
  const { proc, link, store, files, random, sign, tell, exited } = deps;
  const { machine, setTimer } = proc;
  const { now, wallMicros } = createClock({
    monotonicMs: () => machine.monotonicMs(),
    bootMs: () => machine.bootMs(),
    wallMs: () => machine.wallMs(),
  });
  const { namespace, lock, mode, name, uid } = identity;
  const pod = { name, uid };
  const api = createSidecarApi({ proc, link, store, random, who: { kind: 'sidecar', name, podUid: uid } });
  const lease = createLeaseClient({ api, wallMicros }, { namespace, lock });
  const stop = new AbortController();
  const waiting: (() => void)[] = [];
  const isOpen = () => sidecar.view().state === 'held' || (mode === 'standby' && sidecar.view().state !== 'lost');
  const openGate = () => {
    if (isOpen()) for (const answer of waiting.splice(0)) answer();
  };
  const exit = (code: number, explanation: string) => {
    if (!proc.alive) return;
    proc.kill();
    exited(code, explanation);
  };
  const leave = async (end: { explanation: string; token: string | undefined; postEvent: boolean; code: number }) => {
    stop.abort();
    const config = {
      namespace,
      lock,
      pod,
      mode,
      port: 0,
      api: { host: '', port: 0, dir: '' },
      runDir: '',
      infoDir: '',
    };
    try {
      if (end.postEvent) await postLossEvent({ api, wallMicros }, { config, ...end });
    } finally {
      exit(exitCode(end.explanation, end.code), end.explanation);
    }
  };
  const sidecar = createSidecar(
    {
      now,
      setTimer,
      lease,
      files,
      metrics: createMetrics(),
      log: QUIET,
      random: random.next,
      openGate,
      note: () => {},
      tell,
      exit: (end) => void leave(end),
    },
    { identity: holderIdentity(pod), mode },
  );
  sidecar.dispatch({ kind: 'started', epoch: files.consumeEpoch() });
  if (sidecar.view().state !== 'lost') {
    followLease({
      api,
      lease,
      now,
      setTimer,
      signal: stop.signal,
      random: random.next,
      observe: (observation) => sidecar.dispatch({ kind: 'observed', observation }),
      onTrouble: () => {},
      sign,
    }).catch(sidecar.crash);
  }
  return {
    proc,
    link,
    view: sidecar.view,
    terminate: () => proc.deliver(() => sidecar.dispatch({ kind: 'terminated' })),
    probe(answered) {
      proc.deliver(() => (isOpen() ? answered() : waiting.push(answered)));
    },
    standDown: () => proc.deliver(() => void sidecar.standDown()),
    breakWatches: (expired) => api.breakWatches(expired),
  };
}

/** `kilit-reset`. Calls `exited` with 0 when it has done its work. */
export function startReset(deps: {
  readonly proc: Proc;
  readonly files: MemoryFiles;
  readonly exited: (code: number) => void;
}): void {
  const { proc, files, exited } = deps;
  const end = (code: number) => {
    if (!proc.alive) return;
    proc.kill();
    exited(code);
  };
  reset({ files, log: QUIET, setTimer: proc.setTimer, signal: new AbortController().signal }).then(
    () => end(0),
    () => end(1),
  );
}
