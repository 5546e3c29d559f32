/** One long-running program of a cluster: started detached, recorded with its start time, stopped by that record. */
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findCommand, missingCommand } from '../exec.ts';
import { waitFor } from '../progress.ts';
import type { Component } from '../types.ts';
import type { CommandLine } from './flags.ts';
import type { Layout } from './layout.ts';
import { allProcesses, bootId, type ProcessStat, processStat, signalProcess } from './proc.ts';

const STOP_SECONDS = 15;
const KILL_SECONDS = 10;
const LOG_TAIL_CHARACTERS = 3000;

export interface ProcessRecord {
  readonly pid: number;
  readonly startTicks: string;
  readonly bootId: string;
  readonly argv: readonly string[];
}

/** True if the recorded process is the one that has this PID now, and it runs: no other program got its PID. */
export function isSameProcess(
  record: ProcessRecord,
  now: { readonly bootId: string; readonly stat: ProcessStat | undefined },
): boolean {
  return (
    now.stat !== undefined &&
    now.stat.state !== 'Z' &&
    now.stat.state !== 'X' &&
    now.stat.startTicks === record.startTicks &&
    now.bootId === record.bootId
  );
}

export interface ProgramOptions {
  readonly cluster: Layout;
  readonly name: string;
  /** What the process shows as its arguments. */
  readonly command: CommandLine;
  /** What is started; ends as `command` by exec. @default command */
  readonly launcher?: CommandLine;
  /** True when the program answers; `start` returns then. */
  readonly isReady?: () => Promise<boolean>;
  readonly readySeconds?: number;
}

export class Program implements Component {
  readonly name: string;
  readonly logFile: string;
  readonly #options: ProgramOptions;
  readonly #recordFile: string;

  constructor(options: ProgramOptions) {
    this.name = options.name;
    this.logFile = join(options.cluster.logs, `${options.name}.log`);
    this.#options = options;
    this.#recordFile = join(options.cluster.processes, `${options.name}.json`);
  }

  /** Starts the program unless it runs, wakes it up if it is paused; returns when it answers. */
  async start(): Promise<void> {
    const pid = await this.pid();
    if (pid === undefined) await this.#launch();
    else signalProcess(pid, 'SIGCONT');
    const { isReady } = this.#options;
    if (isReady === undefined) return;
    await waitFor(
      async () => {
        if ((await this.pid()) === undefined) throw new Error(`${this.name} ended at once.\n${await this.logTail()}`);
        return isReady();
      },
      {
        what: `${this.name} answers`,
        timeoutSeconds: this.#options.readySeconds ?? 60,
        everyMilliseconds: 100,
        explain: () => this.logTail(),
      },
    );
  }

  /** Of the running process; finds it by its arguments too, if a harness died before it could record it. */
  async pid(): Promise<number | undefined> {
    const recorded = await this.recordedPid();
    if (recorded !== undefined) return recorded;
    const wanted = this.#options.command.join('\0');
    const orphan = (await allProcesses()).find(({ argv }) => argv.join('\0') === wanted);
    return orphan === undefined ? undefined : this.#remember(orphan.pid);
  }

  /** Of the running process if its record is right; needs no command line. */
  async recordedPid(): Promise<number | undefined> {
    const record = await this.#record();
    if (record === undefined) return undefined;
    const now = { bootId: await bootId(), stat: await processStat(record.pid) };
    return isSameProcess(record, now) ? record.pid : undefined;
  }

  async isRunning(): Promise<boolean> {
    return (await this.pid()) !== undefined;
  }

  async pause(): Promise<void> {
    const pid = await this.#signal('SIGSTOP');
    await waitFor(async () => (await processStat(pid))?.state === 'T', {
      what: `${this.name} is paused`,
      timeoutSeconds: KILL_SECONDS,
      everyMilliseconds: 5,
    });
  }

  async resume(): Promise<void> {
    await this.#signal('SIGCONT');
  }

  async kill(): Promise<void> {
    const pid = await this.pid();
    if (pid === undefined) return;
    signalProcess(pid, 'SIGKILL');
    await this.#waitUntilGone(KILL_SECONDS);
  }

  async stop(): Promise<void> {
    const pid = await this.pid();
    if (pid === undefined) return;
    signalProcess(pid, 'SIGTERM');
    signalProcess(pid, 'SIGCONT'); // A paused program gets its SIGTERM when it runs on.
    await this.#waitUntilGone(STOP_SECONDS).catch(() => this.kill());
    await rm(this.#recordFile, { force: true });
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async logTail(): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch(() => '');
    return `The end of ${this.logFile}:\n${text.slice(-LOG_TAIL_CHARACTERS)}`;
  }

  async #launch(): Promise<void> {
    const [program, ...args] = this.#options.launcher ?? this.#options.command;
    const path = program.includes('/') ? program : findCommand(program);
    if (path === undefined) throw new Error(missingCommand(program));
    await mkdir(this.#options.cluster.logs, { recursive: true });
    const log = openSync(this.logFile, 'a');
    const child = spawn(path, args, { detached: true, stdio: ['ignore', log, log], cwd: this.#options.cluster.dir });
    closeSync(log);
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    if (child.pid !== undefined) await this.#remember(child.pid);
  }

  async #remember(pid: number): Promise<number | undefined> {
    const stat = await processStat(pid);
    if (stat === undefined) return undefined;
    const record: ProcessRecord = {
      pid,
      startTicks: stat.startTicks,
      bootId: await bootId(),
      argv: this.#options.command,
    };
    await mkdir(this.#options.cluster.processes, { recursive: true });
    await writeFile(`${this.#recordFile}.new`, JSON.stringify(record));
    await rename(`${this.#recordFile}.new`, this.#recordFile);
    return pid;
  }

  async #record(): Promise<ProcessRecord | undefined> {
    try {
      return JSON.parse(await readFile(this.#recordFile, 'utf8')) as ProcessRecord;
    } catch {
      return undefined;
    }
  }

  async #signal(signal: NodeJS.Signals): Promise<number> {
    const pid = await this.pid();
    if (pid === undefined) throw new Error(`${this.name} does not run; nothing to send ${signal} to.`);
    process.kill(pid, signal);
    return pid;
  }

  async #waitUntilGone(timeoutSeconds: number): Promise<void> {
    await waitFor(async () => !(await this.isRunning()), {
      what: `${this.name} ends`,
      timeoutSeconds,
      everyMilliseconds: 20,
    });
  }
}
