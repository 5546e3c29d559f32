/** What /proc says, as values, and signals. The parsers are pure. */
import { readdir, readFile } from 'node:fs/promises';

export interface ProcessStat {
  readonly state: string;
  /** In clock ticks since boot; with the PID and the boot id it names one process for ever. */
  readonly startTicks: string;
}

/** Parses `/proc/<pid>/stat`. The command name (field 2) may hold spaces and parentheses. */
export function parseStat(text: string): ProcessStat | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  return state === undefined || startTicks === undefined ? undefined : { state, startTicks };
}

export async function processStat(pid: number): Promise<ProcessStat | undefined> {
  try {
    return parseStat(await readFile(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return undefined;
  }
}

export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

/** The mount points below a folder, deepest first. Parses `/proc/self/mountinfo`, where a space is `\040`. */
export function mountsBelow(mountinfo: string, dir: string): readonly string[] {
  return mountinfo
    .split('\n')
    .map((line) =>
      (line.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, octal: string) =>
        String.fromCharCode(parseInt(octal, 8)),
      ),
    )
    .filter((path) => path === dir || path.startsWith(`${dir}/`))
    .toReversed();
}

/** PID and arguments of every process on the machine. */
export async function allProcesses(): Promise<readonly { readonly pid: number; readonly argv: readonly string[] }[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return { pid, argv: text.split('\0').slice(0, -1) };
    }),
  );
  return found.filter(({ argv }) => argv.length > 0);
}

/** Sends a signal; a process that is gone meanwhile is fine. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
