import type { LockView } from '../../../src/core/holder-view.ts';
import type { History } from './history.ts';
import type { Proc } from './machine.ts';
import type { Random } from './random.ts';
import type { SidecarProcess } from './sidecar.ts';

export interface ProgramBehaviour {
  /** How long it runs before it ends by itself; `undefined`: for ever. */
  readonly runsMs: number | undefined;
  readonly exitCode: number;
  /** How long it goes on after SIGTERM; `undefined`: until it is killed. */
  readonly stopsMs: number | undefined;
  readonly writeEveryMs: number;
  /** Standby: how long it takes to stop its work once told, and whether it says so. */
  readonly standsDownMs: number | undefined;
}

/** The user's program: writes to its resource with the token that it has. */
export class Program {
  readonly proc: Proc;
  readonly startedAt: number;
  readonly life: string;
  /** The sidecar under which it was started. */
  readonly sidecar: SidecarProcess | undefined;
  /** The token it works with; standby: only while it believes that it holds. */
  token: bigint | undefined;
  readonly #deps: ProgramDeps;
  #ended = false;

  constructor(deps: ProgramDeps, token: bigint | undefined) {
    this.#deps = deps;
    this.proc = deps.proc;
    this.life = deps.life;
    this.sidecar = deps.sidecar;
    this.token = token;
    this.startedAt = deps.proc.machine.time.now();
    const { runsMs, exitCode } = deps.behaviour;
    if (runsMs !== undefined && this.startedAt + runsMs < deps.endsByItselfUntilMs) {
      this.proc.setTimer(runsMs, () => this.#end(exitCode));
    }
    this.#scheduleWrite();
  }

  get alive(): boolean {
    return !this.#ended;
  }

  /** SIGTERM. */
  terminate(): void {
    const { stopsMs } = this.#deps.behaviour;
    if (stopsMs === undefined) return;
    this.proc.deliver(() => this.proc.setTimer(stopsMs, () => this.#end(0)));
  }

  /** SIGKILL. A suspended machine kills nobody; its kubelet is suspended too. */
  kill(): void {
    this.#end(137);
  }

  /** Standby: what the sidecar tells over the socket. */
  told(view: LockView, standDown: () => void): void {
    this.proc.deliver(() => {
      if (this.#ended) return;
      if (view.state === 'held') this.token = BigInt(view.token ?? '0');
      if (view.state !== 'losing') return;
      const { standsDownMs } = this.#deps.behaviour;
      if (standsDownMs === undefined) return;
      this.proc.setTimer(standsDownMs, () => {
        this.token = undefined;
        standDown();
      });
    });
  }

  /** Each write is sent, and arrives a little later, whatever becomes of the program. */
  #scheduleWrite(): void {
    const { behaviour, random, history } = this.#deps;
    this.proc.setTimer(behaviour.writeEveryMs * (0.5 + random.next()), () => {
      if (this.#ended) return;
      const { time } = this.proc.machine;
      const { token, life } = this;
      if (token !== undefined) time.after(random.between(1, 40), () => history.write({ at: time.now(), token, life }));
      this.#scheduleWrite();
    });
  }

  #end(code: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.proc.kill();
    this.#deps.exited(code);
  }
}

interface ProgramDeps {
  readonly proc: Proc;
  readonly life: string;
  readonly behaviour: ProgramBehaviour;
  readonly endsByItselfUntilMs: number;
  readonly history: History;
  readonly random: Random;
  readonly sidecar: SidecarProcess | undefined;
  readonly exited: (code: number) => void;
}
