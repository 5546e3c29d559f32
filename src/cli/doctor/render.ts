import { plural } from '../text.ts';
import type { Finding, Result } from './finding.ts';

const SHOWN: Readonly<Record<Result, string>> = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' };

/** Findings as text: one line each when all is well, else what it means and what to do. */
export function renderFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, result, says, means, todo }) => [
    `${SHOWN[result]}  ${check.padEnd(width)}  ${says}`,
    ...(means === undefined ? [] : [`      ${''.padEnd(width)}  ${means}`]),
    ...(todo === undefined ? [] : [`      ${''.padEnd(width)}  → ${todo}`]),
  ]);
  const count = (result: Result): number => findings.filter((finding) => finding.result === result).length;
  return `${lines.join('\n')}\n\n${plural(count('fail'), 'failure')}, ${plural(count('warn'), 'warning')}, ${count('ok')} ok\n`;
}
