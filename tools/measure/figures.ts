/** Figures of a series: pure. */

export interface Figure {
  readonly name: string;
  readonly unit: 's' | 'MB' | 'per minute';
  readonly values: readonly number[];
  /** What the README promises, in the same unit; undefined: only shown. */
  readonly aim?: number | undefined;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** One row of a Markdown table: tries, median, worst, aim. */
export function row({ name, unit, values, aim }: Figure): string {
  if (values.length === 0) return `| ${name} | 0 | – | – | ${aim ?? '–'} | no value |`;
  const worst = Math.max(...values);
  const digits = unit === 's' ? 2 : 1;
  const kept =
    aim === undefined ? '' : worst <= aim ? 'met' : median(values) <= aim ? 'median met, worst not' : 'missed';
  const aimText = aim === undefined ? '–' : `${aim} ${unit}`;
  return `| ${name} | ${values.length} | ${median(values).toFixed(digits)} ${unit} | ${worst.toFixed(digits)} ${unit} | ${aimText} | ${kept} |`;
}

export function table(figures: readonly Figure[]): string {
  const head = ['| what | tries | median | worst | aim | |', '|---|---|---|---|---|---|'];
  return [...head, ...figures.map(row)].join('\n');
}
