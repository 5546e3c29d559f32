import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { repositoryRoot } from '../../tools/cluster/paths.ts';
import { renderChart } from '../../tools/generate/helm.ts';

const read = (file: string) => readFile(join(repositoryRoot, 'charts', 'kilit', file), 'utf8');

interface Schema {
  readonly type?: string;
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
}

describe('the values', () => {
  test.each([
    { set: 'replica=3', says: /'replica' not allowed/ },
    { set: 'image.name=x', says: /'name' not allowed/ },
    { set: 'sidecar.resources.requests.gpu=1', says: /'gpu' not allowed/ },
    { set: 'image.pullPolicy=Sometimes', says: /pullPolicy.*must be one of/ },
    { set: 'image.digest=sha256:abc', says: /digest.*does not match pattern/ },
    { set: 'replicas=-1', says: /replicas.*minimum/ },
    { set: 'sidecar.port=70000', says: /port.*maximum/ },
    { set: 'sidecar.resources.limits.cpu=null', says: /missing property 'cpu'/ },
    { set: 'mesh.initContainers={kilit}', says: /initContainers/ },
  ])('$set is refused', async ({ set, says }) => {
    await expect(renderChart({ set: [set] })).rejects.toThrow(says);
  });

  test('every object of the schema refuses what it does not know', async () => {
    const open: string[] = [];
    const walk = (path: string, schema: Schema): void => {
      if (schema.properties !== undefined && schema.additionalProperties !== false) open.push(path);
      for (const [key, child] of Object.entries(schema.properties ?? {})) walk(`${path}.${key}`, child);
    };
    walk('', JSON.parse(await read('values.schema.json')) as Schema);
    expect(open).toEqual([]);
  });

  test('every value is in the schema, and every property of the schema has a default', async () => {
    const schema = JSON.parse(await read('values.schema.json')) as Schema;
    const values = parse(await read('values.yaml')) as Record<string, unknown>;
    const compare = (path: string, value: unknown, known: Schema): void => {
      if (known.properties === undefined) return;
      // Helm passes `global` to every chart.
      const keys = Object.keys(known.properties).filter((key) => key !== 'global');
      expect([path, ...Object.keys(value as object).toSorted()]).toEqual([path, ...keys.toSorted()]);
      for (const key of keys) {
        compare(`${path}.${key}`, (value as Record<string, unknown>)[key], known.properties[key] ?? {});
      }
    };
    compare('', values, schema);
  });

  test('every value has a comment', async () => {
    const lines = (await read('values.yaml')).split('\n');
    const bare = lines.filter((line, index) => {
      const value = /^ *[a-zA-Z]+: ?\S/.test(line) || /^[a-zA-Z]+:$/.test(line);
      const above = lines[index - 1] ?? '';
      // A block may be explained by the comments of what is in it; quantities by their block's.
      const inBlock = /^ {2,}(cpu|memory):/.test(line);
      const block = line.endsWith(':') && /^ +#/.test(lines[index + 1] ?? '');
      return value && !inBlock && !block && !/^ *#/.test(above);
    });
    expect(bare).toEqual([]);
  });
});
