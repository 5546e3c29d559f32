import { ElectionError } from './errors.ts';

/** What a caller may choose. Only `identity` has no default. */
export interface ElectionOptions {
  /**
   * Who this process is in the Lease. Unique for each *process*: a Pod's UID, not its host name (two Pods on the host
   * network share that one). A restarted container may keep it: the former one's lease is then waited out.
   */
  readonly identity: string;
  /**
   * How long others wait after the last renewal they observed before they take over, in seconds. Written into the Lease.
   *
   * Same meaning as client-go's LeaseDuration. At least 1.1 × `renewDeadlineSeconds`: clocks may run 10 % apart.
   *
   * @default 15
   */
  readonly leaseDurationSeconds?: number;
  /**
   * How long this process leads after its last confirmed renewal was *sent*, in seconds.
   *
   * @default 10
   */
  readonly renewDeadlineSeconds?: number;
  /**
   * From the start of one try (to acquire or to renew) to the start of the next, in seconds; up to 20 % is added at random.
   *
   * @default 2
   */
  readonly retryPeriodSeconds?: number;
  /**
   * How long one request may take, in seconds. Below the retry period, so that tries never overlap.
   *
   * @default 0.9 × retryPeriodSeconds
   */
  readonly requestTimeoutSeconds?: number;
  /**
   * How long the work may take to end after its signal has aborted, in seconds. The lease is renewed meanwhile.
   *
   * @default 20
   */
  readonly stopTimeoutSeconds?: number;
}

export type ElectionSettings = Required<ElectionOptions>;

/** Every wait between tries is the retry period times something from 1 up to this. */
export const JITTER_FACTOR = 1.2;
/** How much faster a waiter's clock may run than the holder's. */
export const CLOCK_RATE_RATIO = 1.1;

const LONGEST_SECONDS = 3600;

/**
 * Fills in the defaults and refuses timings that cannot keep two leaders apart.
 *
 * @throws ElectionError `InvalidConfig`, with all faults in one message.
 */
export function electionSettings(options: ElectionOptions): ElectionSettings {
  const retryPeriodSeconds = options.retryPeriodSeconds ?? 2;
  const settings: ElectionSettings = {
    identity: options.identity,
    leaseDurationSeconds: options.leaseDurationSeconds ?? 15,
    renewDeadlineSeconds: options.renewDeadlineSeconds ?? 10,
    retryPeriodSeconds,
    requestTimeoutSeconds: options.requestTimeoutSeconds ?? retryPeriodSeconds * 0.9,
    stopTimeoutSeconds: options.stopTimeoutSeconds ?? 20,
  };
  const faults = [...rangeFaults(settings), ...orderFaults(settings)];
  if (faults.length > 0) {
    const count = faults.length === 1 ? '1 setting is' : `${faults.length} settings are`;
    throw new ElectionError('InvalidConfig', `${count} wrong: ${faults.join('; ')}`);
  }
  return settings;
}

function rangeFaults({ identity, leaseDurationSeconds, ...periods }: ElectionSettings): string[] {
  const faults: string[] = [];
  if (identity.trim() === '') faults.push('identity must not be empty');
  if (!Number.isInteger(leaseDurationSeconds) || leaseDurationSeconds < 1 || leaseDurationSeconds > LONGEST_SECONDS) {
    faults.push(
      `leaseDurationSeconds must be a whole number from 1 to ${LONGEST_SECONDS}, got ${leaseDurationSeconds}`,
    );
  }
  for (const [name, seconds] of Object.entries(periods)) {
    if (!(seconds > 0 && seconds <= LONGEST_SECONDS)) {
      faults.push(`${name} must be above 0 and at most ${LONGEST_SECONDS}, got ${seconds}`);
    }
  }
  return faults;
}

function orderFaults(settings: ElectionSettings): string[] {
  const { leaseDurationSeconds, renewDeadlineSeconds, retryPeriodSeconds, requestTimeoutSeconds } = settings;
  const faults: string[] = [];
  const shortestLease = renewDeadlineSeconds * CLOCK_RATE_RATIO;
  if (leaseDurationSeconds < shortestLease - ROUNDING) {
    faults.push(
      `leaseDurationSeconds must be at least ${CLOCK_RATE_RATIO} × renewDeadlineSeconds (${rounded(shortestLease)}), ` +
        `got ${leaseDurationSeconds}`,
    );
  }
  const longestRetry = retryPeriodSeconds * JITTER_FACTOR;
  if (renewDeadlineSeconds <= longestRetry) {
    faults.push(
      `renewDeadlineSeconds must be above ${JITTER_FACTOR} × retryPeriodSeconds (${rounded(longestRetry)}), ` +
        `got ${renewDeadlineSeconds}`,
    );
  }
  if (requestTimeoutSeconds >= retryPeriodSeconds) {
    faults.push(
      `requestTimeoutSeconds must be below retryPeriodSeconds (${retryPeriodSeconds}), got ${requestTimeoutSeconds}`,
    );
  }
  return faults;
}

/** 10 × 1.1 is 11.000000000000002: products of decimal settings are compared with this tolerance. */
const ROUNDING = 1e-9;
const rounded = (seconds: number): number => Number(seconds.toFixed(6));
