import { describe, expect, it } from 'vitest';
import { outro, summary } from '../../tools/demo/outro.ts';
import type { Row } from '../../tools/demo/sight.ts';
import { changes, coloured, colourless, table, wrap } from '../../tools/demo/view.ts';

const holds: Row = { pod: 'worker-1', state: 'holds', token: '4711', why: 'its program runs' };
const waits: Row = { pod: 'worker-2', state: 'waits', token: '', why: 'next in line' };
const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');

describe('the table', () => {
  const of = { title: 'lock shop/billing', rows: [holds, waits], pending: 'waiting for the next grant: 0.3 s' };

  it('shows each Pod, its state, its token and why', () => {
    expect(table(of, { width: 60, paint: colourless })).toEqual([
      `  ${'─'.repeat(58)}`,
      '  lock shop/billing',
      '    POD        STATE      TOKEN    WHY',
      '  ● worker-1   holds      4711     its program runs',
      '  ○ worker-2   waits               next in line',
      '  … waiting for the next grant: 0.3 s',
    ]);
  });

  it('makes room for the long name of a Pod of a Deployment', () => {
    const long: Row = { ...waits, pod: 'billing-7c5d65c89d-pqsnq' };
    const lines = table({ ...of, rows: [holds, long] }, { width: 80, paint: colourless });
    const columns = [...lines.slice(2, 4), lines[4] ?? ''].map((text) => text.search(/STATE|holds|waits/));
    expect(new Set(columns)).toEqual(new Set([4 + long.pod.length + 1]));
  });

  it('never is wider than the terminal, which would break the redrawing', () => {
    for (const width of [1, 10, 30]) {
      for (const text of table(of, { width, paint: colourless })) expect(text.length).toBeLessThanOrEqual(width + 1);
    }
  });

  it('has the same text with colours', () => {
    const lines = table(of, { width: 60, paint: coloured });
    expect(lines.map((text) => text.replaceAll(escapes, ''))).toEqual(table(of, { width: 60, paint: colourless }));
    expect(lines.join('')).toMatch(escapes);
  });

  it('has as many lines whether or not something is waited for', () => {
    const at = { width: 60, paint: colourless };
    expect(table({ ...of, pending: undefined }, at)).toHaveLength(table(of, at).length);
  });
});

describe('the lines on change', () => {
  it('tell every Pod at first', () => {
    expect(changes([], [holds, waits])).toEqual([
      'worker-1   holds      4711     its program runs',
      'worker-2   waits               next in line',
    ]);
  });

  it('tell nothing when nothing changed', () => {
    expect(changes([holds, waits], [holds, waits])).toEqual([]);
  });

  it('tell only what changed, and who is gone', () => {
    const granted: Row = { ...waits, state: 'granted', token: '4720', why: 'its program is being started' };
    expect(changes([holds, waits], [granted])).toEqual([
      'worker-2   granted    4720     its program is being started',
      'worker-1   gone',
    ]);
  });
});

describe('a paragraph', () => {
  it('is broken at spaces, and indented', () => {
    expect(wrap('one two three', { width: 10, indent: 2 })).toEqual(['  one two', '  three']);
  });

  it('keeps a word that is too long', () => {
    expect(wrap('a incomprehensible b', { width: 8, indent: 0 })).toEqual(['a', 'incomprehensible', 'b']);
  });
});

describe('the end', () => {
  it('has one line for each act, in columns', () => {
    const from = { name: 'a', uid: 'u', token: '5' };
    const shown = [{ title: 'killed', from, to: { ...from, token: '12' }, afterMilliseconds: 2345 }];
    expect(summary(shown)).toEqual(['           token    next program ran after', '  killed   5 → 12    2.3 s']);
  });

  it('tells how to keep the cluster when it is gone, and does not when it is there', () => {
    const at = { name: 'second', defaultName: 'demo', billing: true };
    expect(outro({ ...at, kept: false }).join('\n')).toContain('npm run demo -- --keep --name second');
    expect(outro({ ...at, kept: true }).join('\n')).not.toContain('--keep');
  });

  it('shows how to read the ledgers only where the last act was played', () => {
    const at = { name: 'demo', kept: true, defaultName: 'demo' };
    expect(outro({ ...at, billing: true }).join('\n')).toContain('check unguarded');
    expect(outro({ ...at, billing: false }).join('\n')).not.toContain('check unguarded');
  });

  it('names the cluster in every command that needs it', () => {
    const lines = outro({ name: 'second', kept: true, defaultName: 'demo', billing: true }).filter((text) =>
      text.includes('npm run'),
    );
    expect(lines).toHaveLength(2);
    for (const text of lines) expect(text).toContain('--name second');
  });
});
