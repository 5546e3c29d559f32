/** Where the demo writes: a table redrawn in place below the lines, or plain lines only. */
import type { Row } from './sight.ts';
import { changes, coloured, colourless, type Paint, type Table, table } from './view.ts';

export interface Screen {
  /** Whether somebody looks on. */
  readonly live: boolean;
  readonly width: number;
  readonly paint: Paint;
  print(...lines: readonly string[]): void;
  /** Shows that a step goes on; the next line takes its place where that is possible. */
  transient(line: string): void;
  /** Shows the present state. `undefined` removes the table. */
  show(table: Table | undefined): void;
  /** Leaves the table where it is; what comes next is written below. */
  leave(): void;
}

type Out = Pick<NodeJS.WriteStream, 'write'> & { readonly columns?: number };

const PLAIN_WIDTH = 110;
const LARGEST_WIDTH = 120;
/** A log need not repeat every few seconds that a build goes on. */
const TRANSIENT_EVERY_MILLISECONDS = 30_000;
const CLEAR_LINE = '\u001b[2K';
const upAndClear = (lines: number): string => (lines === 0 ? '' : `\u001b[${lines}A\u001b[J`);

export function plainScreen(out: Out, elapsed: () => string): Screen {
  let shown: readonly Row[] = [];
  let transientAt = performance.now();
  const print = (...lines: readonly string[]): void => {
    for (const line of lines) out.write(`${line}\n`);
    transientAt = performance.now();
  };
  return {
    live: false,
    width: PLAIN_WIDTH,
    paint: colourless,
    print,
    transient: (line) => {
      if (performance.now() - transientAt >= TRANSIENT_EVERY_MILLISECONDS) print(line);
    },
    show: (next) => {
      if (next === undefined) return;
      const lines = changes(shown, next.rows);
      shown = next.rows;
      if (lines.length > 0) print(...lines.map((line) => `${elapsed()}  ${line}`));
    },
    leave: () => {},
  };
}

export function liveScreen(out: Out, env: Readonly<Record<string, string | undefined>>): Screen {
  const paint = env['NO_COLOR'] === undefined || env['NO_COLOR'] === '' ? coloured : colourless;
  // A line of the full width would wrap in some terminals.
  const width = (): number => Math.min(LARGEST_WIDTH, (out.columns ?? 80) - 1);
  let bottom: readonly string[] = [];
  const redraw = (above: readonly string[], next: readonly string[]): void => {
    if (above.length === 0 && next.join('\n') === bottom.join('\n')) return;
    out.write(upAndClear(bottom.length) + [...above, ...next].map((line) => `${CLEAR_LINE}${line}\n`).join(''));
    bottom = next;
  };
  return {
    live: true,
    get width() {
      return width();
    },
    paint,
    print: (...lines) => redraw(lines, bottom),
    transient: (line) => redraw([], [paint('dim', line.slice(0, width()))]),
    leave: () => {
      // Its last line says what is waited for: nothing any more.
      redraw([], bottom.slice(0, -1));
      bottom = [];
    },
    show: (next) => redraw([], next === undefined ? [] : table(next, { width: width(), paint })),
  };
}
