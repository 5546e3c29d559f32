import { API_DIR, INFO_DIR, RUN_DIR } from '../api/names.ts';
import type { Mode } from '../core/holder-types.ts';

export interface SidecarConfig {
  readonly lock: string;
  readonly namespace: string;
  readonly pod: { readonly name: string; readonly uid: string };
  readonly mode: Mode;
  /** The read-only server for probe and metrics. */
  readonly port: number;
  readonly api: { readonly host: string; readonly port: number; readonly dir: string };
  readonly runDir: string;
  /** Where the kubelet shows the Pod's token annotation. */
  readonly infoDir: string;
}

export type ConfigResult =
  | { readonly kind: 'valid'; readonly config: SidecarConfig }
  /** All faults at once, in one message. */
  | { readonly kind: 'invalid'; readonly message: string };

type Env = Readonly<Record<string, string | undefined>>;

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const LOCK = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
const UID = /^[A-Za-z0-9-]{1,64}$/;
const HOST = /^[A-Za-z0-9.:-]{1,253}$/;
/** A Unix socket's path ends at 107 bytes. */
const LONGEST_RUN_DIR = 100;

/** Reads the settings that the injection policy writes. `KILIT_DIR`, `KILIT_INFO_DIR` and `KILIT_API_DIR` are for tests. */
export function readConfig(env: Env): ConfigResult {
  const faults: string[] = [];
  const text = (name: string, rule: { readonly pattern: RegExp; readonly must: string }): string => {
    const value = env[name] ?? '';
    if (!rule.pattern.test(value)) faults.push(`${name} must be ${rule.must}, got ${show(env[name])}`);
    return value;
  };
  const port = (name: string): number => {
    const value = env[name] ?? '';
    const number = /^[1-9][0-9]{0,4}$/.test(value) ? Number(value) : 0;
    if (number < 1 || number > 65_535) faults.push(`${name} must be a port from 1 to 65535, got ${show(env[name])}`);
    return number;
  };
  const config: SidecarConfig = {
    lock: text('KILIT_LOCK', { pattern: LOCK, must: 'a name of at most 63 small letters, digits, - and .' }),
    namespace: text('KILIT_NAMESPACE', { pattern: LABEL, must: 'the name of a namespace' }),
    pod: {
      name: text('KILIT_POD_NAME', { pattern: SUBDOMAIN, must: 'the name of a Pod' }),
      uid: text('KILIT_POD_UID', { pattern: UID, must: 'the UID of a Pod' }),
    },
    mode:
      text('KILIT_MODE', { pattern: /^(gate|standby)$/, must: 'gate or standby' }) === 'standby' ? 'standby' : 'gate',
    port: port('KILIT_PORT'),
    api: {
      host: text('KUBERNETES_SERVICE_HOST', { pattern: HOST, must: 'a host name or address' }),
      port: port('KUBERNETES_SERVICE_PORT'),
      dir: env.KILIT_API_DIR ?? API_DIR,
    },
    runDir: env.KILIT_DIR ?? RUN_DIR,
    infoDir: env.KILIT_INFO_DIR ?? INFO_DIR,
  };
  if (Buffer.byteLength(config.runDir) > LONGEST_RUN_DIR) {
    faults.push(`KILIT_DIR must be at most ${LONGEST_RUN_DIR} bytes long, got ${Buffer.byteLength(config.runDir)}`);
  }
  if (faults.length === 0) return { kind: 'valid', config };
  const count = faults.length === 1 ? '1 setting is wrong' : `${faults.length} settings are wrong`;
  return { kind: 'invalid', message: `${count}: ${faults.join('; ')}` };
}

function show(value: string | undefined): string {
  return value === undefined ? 'nothing' : `'${value.slice(0, 100)}'`;
}
