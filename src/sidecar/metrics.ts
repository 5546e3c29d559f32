import type { WriteResult } from '../core/holder-types.ts';
import type { Instant } from '../core/lease.ts';

type Result = WriteResult['kind'];

/** What the sidecar counts. A token is never a metric's value: above 2^53 it would change. */
export interface Metrics {
  countRenewal(result: Result): void;
  /** The deadline passed and the program goes on (`onRenewalFailure: ContinueFenced`). */
  countUnrenewed(): void;
  /** In Prometheus' text format. */
  render(gauges: {
    readonly held: boolean;
    readonly unrenewed: boolean;
    readonly renewedAt: Instant | undefined;
    readonly now: Instant;
  }): string;
}

/** Every series exists from the start, at 0. */
export function createMetrics(): Metrics {
  const renewals: Record<Result, number> = { ok: 0, conflict: 0, refused: 0, failed: 0, timedOut: 0 };
  let unrenewals = 0;
  return {
    countRenewal(result) {
      renewals[result] += 1;
    },
    countUnrenewed() {
      unrenewals += 1;
    },
    render({ held, unrenewed, renewedAt, now }) {
      const lines = [
        '# HELP kilit_sidecar_held Whether this Pod holds its lock.',
        '# TYPE kilit_sidecar_held gauge',
        `kilit_sidecar_held ${held ? 1 : 0}`,
        '# HELP kilit_sidecar_unrenewed Whether the lease could not be renewed and the program goes on behind its guard.',
        '# TYPE kilit_sidecar_unrenewed gauge',
        `kilit_sidecar_unrenewed ${unrenewed ? 1 : 0}`,
        '# HELP kilit_sidecar_unrenewed_total How often that began.',
        '# TYPE kilit_sidecar_unrenewed_total counter',
        `kilit_sidecar_unrenewed_total ${unrenewals}`,
        '# HELP kilit_sidecar_renewals_total Writes that confirmed or renewed the lease, by result.',
        '# TYPE kilit_sidecar_renewals_total counter',
        ...Object.entries(renewals).map(
          ([result, count]) => `kilit_sidecar_renewals_total{result="${result}"} ${count}`,
        ),
      ];
      if (renewedAt !== undefined) {
        lines.push(
          '# HELP kilit_sidecar_last_renewal_age_seconds Since the last good renewal was sent. Absent while neither held nor unrenewed.',
          '# TYPE kilit_sidecar_last_renewal_age_seconds gauge',
          `kilit_sidecar_last_renewal_age_seconds ${Math.max(0, now - renewedAt) / 1000}`,
        );
      }
      return `${lines.join('\n')}\n`;
    },
  };
}
