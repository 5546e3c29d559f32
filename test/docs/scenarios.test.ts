/** The page docs/scenarios.md says which test shows what: a renamed test must be renamed there too. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../tools/cluster/paths.ts';

const read = (file: string): string => readFileSync(join(repositoryRoot, file), 'utf8').replaceAll("\\'", "'");

const rows = read('docs/scenarios.md')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| what users'));

/** The last cell of a row: files in backticks, each with names of its tests in quotes behind it. */
const named = rows.flatMap((row) => {
  let file = '';
  return [...(row.split('|')[3] ?? '').matchAll(/`(test\/[^`]+)`|"([^"]+)"/g)].flatMap(([, path, name]) => {
    file = path ?? file;
    return name === undefined ? [] : [{ row, file, name }];
  });
});

test('every row of docs/scenarios.md names a test', () => {
  const rowsWithTest = new Set(named.map(({ row }) => row));
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.filter((row) => !rowsWithTest.has(row))).toEqual([]);
});

test('the tests that docs/scenarios.md names exist', () => {
  const absent = named.filter(({ file, name }) => !read(file).includes(name));
  expect(absent.map(({ file, name }) => `${file}: ${name}`)).toEqual([]);
});
