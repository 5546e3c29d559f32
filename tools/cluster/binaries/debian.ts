import { findCommand, run } from '../exec.ts';
import { withMachineLock } from '../machine-lock.ts';
import { step } from '../progress.ts';
import type { OnProgress } from '../types.ts';

/** Command or file → the Debian package that brings it. */
const PACKAGES: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  ctr: 'containerd',
  'containerd-shim-runc-v2': 'containerd',
  runc: 'runc',
  buildah: 'buildah',
  '/usr/lib/cni/ptp': 'containernetworking-plugins',
  ip: 'iproute2',
  iptables: 'iptables',
  conntrack: 'conntrack',
  nft: 'nftables',
  nsenter: 'util-linux',
  openssl: 'openssl',
  busybox: 'busybox-static',
};

/** Commands that the native provider needs and this machine lacks. */
export function missingCommands(find: (command: string) => string | undefined): readonly string[] {
  return Object.keys(PACKAGES).filter((command) => find(command) === undefined);
}

export function packagesFor(commands: readonly string[]): readonly string[] {
  return [...new Set(commands.map((command) => PACKAGES[command] ?? command))];
}

/** Installs what is missing; throws with the names when it cannot. */
export async function ensurePackages(onProgress: OnProgress): Promise<void> {
  if (missingCommands(findCommand).length === 0) return;
  await withMachineLock({ scope: 'apt', name: 'apt' }, async () => {
    const missing = missingCommands(findCommand);
    if (missing.length === 0) return;
    const packages = packagesFor(missing);
    if (findCommand('apt-get') === undefined) {
      throw new Error(
        `The commands ${missing.join(', ')} are missing, and there is no apt-get here. Install what Debian calls: ${packages.join(' ')}`,
      );
    }
    await step(onProgress, `install Debian packages: ${packages.join(' ')}`, (detail) => install(packages, detail));
    const still = missingCommands(findCommand);
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
