/** The operator's settings, from its environment. */
export interface OperatorConfig {
  readonly podName: string;
  readonly namespace: string;
  readonly podUid: string;
  readonly port: number;
  readonly logLevel: string;
  /** Only outside a Pod, for development. */
  readonly kubeconfigPath: string | undefined;
  readonly workers: number;
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** @throws Error that names every wrong setting at once. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): OperatorConfig {
  const faults: string[] = [];
  const required = (name: string): string => {
    const value = env[name] ?? '';
    if (value === '') faults.push(`${name} is missing; the chart sets it by the downward API`);
    return value;
  };
  const integer = (name: string, fallback: number, [least, most]: readonly [number, number]): number => {
    const text = env[name];
    if (text === undefined || text === '') return fallback;
    const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most))
      faults.push(`${name} must be a whole number from ${least} to ${most}, got ${text}`);
    return value;
  };
  const logLevel = env.LOG_LEVEL ?? 'info';
  if (!LOG_LEVELS.includes(logLevel)) faults.push(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, got ${logLevel}`);
  const config: OperatorConfig = {
    podName: required('POD_NAME'),
    namespace: required('POD_NAMESPACE'),
    podUid: required('POD_UID'),
    port: integer('KILIT_HTTP_PORT', 8080, [1, 65_535]),
    logLevel,
    kubeconfigPath: env.KILIT_KUBECONFIG,
    workers: integer('KILIT_WORKERS', 8, [1, 64]),
  };
  if (faults.length > 0) {
    throw new Error(
      `${faults.length} ${faults.length === 1 ? 'setting is' : 'settings are'} wrong: ${faults.join('; ')}`,
    );
  }
  return config;
}
