import { ensureCommands, type FindCommand, missingOf, type Packages, packagesOf } from '../../debian.ts';
import type { OnProgress } from '../types.ts';

const PACKAGES: Packages = {
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
export const missingCommands = (find: FindCommand): readonly string[] => missingOf(PACKAGES, find);

export const packagesFor = (commands: readonly string[]): readonly string[] => packagesOf(PACKAGES, commands);

/** Installs what is missing; throws with the names when it cannot. */
export const ensurePackages = (onProgress: OnProgress): Promise<void> => ensureCommands(PACKAGES, { onProgress });
