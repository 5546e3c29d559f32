/** Text for people: tables, lists and times. Pure. */

/** Rows below their heads, each column as wide as its widest cell; an empty cell shows `-`. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [heads, ...rows.map((row) => row.map((cell) => (cell === '' ? '-' : cell)))];
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
] as const;

/** A duration in at most two units: `45s`, `3m12s`, `2d4h`. */
export function duration(milliseconds: number): string {
  let rest = Math.max(0, Math.floor(milliseconds / 1000));
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count > 0) parts.push(`${count}${unit}`);
    else if (parts.length > 0) break; // `1d0h5m` says no more than `1d`
    if (parts.length === 2) break;
  }
  return parts.join('') || '0s';
}

/** How long ago a time of the API was; empty when there is none. */
export function since(time: string | undefined, now: number): string {
  const at = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) ? '' : duration(now - at);
}

/** `a, b and 3 more`: a list that stays short. */
export function some(names: readonly string[], most = 5): string {
  if (names.length <= most) return names.join(', ');
  return `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
