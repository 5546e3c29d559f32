/** How the demo looks: rows to a table, and two sets of rows to the lines that tell what changed. Pure. */
import { styleText } from 'node:util';
import type { Row, RowState } from './sight.ts';

type Style = Parameters<typeof styleText>[0];

/** Colours a text, or leaves it alone. */
export type Paint = (style: Style, text: string) => string;
export const coloured: Paint = (style, text) => styleText(style, text, { validateStream: false });
export const colourless: Paint = (_, text) => text;

const MARKS: Readonly<Record<RowState, { readonly mark: string; readonly style: Style }>> = {
  holds: { mark: '●', style: 'green' },
  granted: { mark: '◐', style: 'green' },
  stale: { mark: '▲', style: 'red' },
  waits: { mark: '○', style: 'dim' },
  stopping: { mark: '◌', style: 'yellow' },
  ended: { mark: '×', style: 'dim' },
};

/** At least; a longer Pod name makes its column wider. */
const COLUMNS = { pod: 10, state: 10, token: 8 };
const RULE_WIDTH = 78;

export interface Table {
  readonly title: string;
  readonly rows: readonly Row[];
  /** What the demo waits for at present. */
  readonly pending?: string | undefined;
}

export function table(
  { title, rows, pending }: Table,
  at: { readonly width: number; readonly paint: Paint },
): string[] {
  const { paint } = at;
  const podWidth = widestPod(rows);
  const head = cut(`    ${columns({ pod: 'POD', state: 'STATE', token: 'TOKEN' }, podWidth)}WHY`, at.width);
  return [
    paint('dim', `  ${'─'.repeat(Math.max(0, Math.min(RULE_WIDTH, at.width - 2)))}`),
    paint('bold', cut(`  ${title}`, at.width)),
    paint('dim', head),
    ...rows.map((row) => {
      const { mark, style } = MARKS[row.state];
      return paint(style, cut(`  ${mark} ${line(row, podWidth)}`, at.width));
    }),
    paint('dim', cut(pending === undefined ? '' : `  … ${pending}`, at.width)),
  ];
}

/** One line for each Pod that is new, looks different or is gone. */
export function changes(before: readonly Row[], after: readonly Row[]): readonly string[] {
  const podWidth = widestPod([...before, ...after]);
  const text = (row: Row): string => line(row, podWidth);
  const old = new Map(before.map((row) => [row.pod, text(row)]));
  const kept = new Set(after.map((row) => row.pod));
  return [
    ...after.filter((row) => old.get(row.pod) !== text(row)).map(text),
    ...before.filter((row) => !kept.has(row.pod)).map((row) => `${row.pod.padEnd(podWidth)} gone`),
  ];
}

const widestPod = (rows: readonly Row[]): number => Math.max(COLUMNS.pod, ...rows.map((row) => row.pod.length));

const line = (row: Row, podWidth: number): string => columns(row, podWidth) + row.why;

const columns = (
  { pod, state, token }: { readonly pod: string; readonly state: string; readonly token: string },
  podWidth: number,
): string => `${pod.padEnd(podWidth)} ${state.padEnd(COLUMNS.state)} ${token.padEnd(COLUMNS.token)} `;

const cut = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, width - 1)}…`);

/** Breaks a text at spaces into lines of at most `width` characters, each after `indent` spaces. */
export function wrap(text: string, { width, indent }: { readonly width: number; readonly indent: number }): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && indent + last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.map((each) => ' '.repeat(indent) + each);
}
