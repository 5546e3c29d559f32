/** Installs Debian packages for commands that are missing. */
import { findCommand, run } from './cluster/exec.ts';
import { withMachineLock } from './cluster/machine-lock.ts';
import { step } from './cluster/progress.ts';
import type { OnProgress } from './cluster/types.ts';

/** Command or file → the Debian package that brings it. */
export type Packages = Readonly<Record<string, string>>;

/** Where a command is, or undefined. */
export type FindCommand = (command: string) => string | undefined;

export interface EnsureOptions {
  readonly onProgress: OnProgress;
  /** @default `findCommand`: the PATH and the `sbin` folders */
  readonly find?: FindCommand;
}

export const missingOf = (packages: Packages, find: FindCommand): readonly string[] =>
  Object.keys(packages).filter((command) => find(command) === undefined);

export const packagesOf = (packages: Packages, commands: readonly string[]): readonly string[] => [
  ...new Set(commands.map((command) => packages[command] ?? command)),
];

/** Installs by `apt-get` what is missing; throws with the names when it cannot. One at a time on a machine. */
export async function ensureCommands(table: Packages, options: EnsureOptions): Promise<void> {
  const find = options.find ?? findCommand;
  if (missingOf(table, find).length === 0) return;
  await withMachineLock({ scope: 'apt', name: 'apt' }, async () => {
    const missing = missingOf(table, find);
    if (missing.length === 0) return;
    const packages = packagesOf(table, missing);
    if (findCommand('apt-get') === undefined) {
      throw new Error(
        `The commands ${missing.join(', ')} are missing, and there is no apt-get here. Install what Debian calls: ${packages.join(' ')}`,
      );
    }
    await step(options.onProgress, `install Debian packages: ${packages.join(' ')}`, (detail) =>
      install(packages, detail),
    );
    const still = missingOf(table, find);
    if (still.length > 0)
      throw new Error(`Installed ${packages.join(' ')}, but these are still missing: ${still.join(', ')}`);
  });
}

async function install(packages: readonly string[], detail: (text: string) => void): Promise<void> {
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const args = ['install', '-y', '--no-install-recommends', ...packages];
  detail('apt-get install');
  await run('apt-get', args, { env }).catch(async () => {
    detail('apt-get update');
    await run('apt-get', ['update'], { env });
    detail('apt-get install');
    await run('apt-get', args, { env });
  });
}
