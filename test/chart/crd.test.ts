/** The CRD as a reviewer of Kubernetes APIs would read it: a description and a bound on everything. */
import { beforeAll, describe, expect, test } from 'vitest';
import { readSchema } from '../../tools/generate/outputs.ts';
import { generateTypes } from '../../tools/generate/types.ts';

interface Field {
  readonly type?: string;
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly { readonly rule: string }[];
  readonly properties?: Readonly<Record<string, Field>>;
  readonly items?: Field;
}

let fields: readonly [path: string, field: Field][];
beforeAll(async () => {
  const found: [string, Field][] = [];
  const walk = (path: string, field: Field): void => {
    found.push([path, field]);
    for (const [key, child] of Object.entries(field.properties ?? {})) walk(`${path}.${key}`, child);
    if (field.items !== undefined) walk(`${path}[]`, field.items);
  };
  walk('', await readSchema());
  fields = found.filter(([path]) => !['.apiVersion', '.kind', '.metadata'].includes(path));
});

const without = (has: (field: Field) => boolean, of: (field: Field) => boolean = () => true) =>
  fields.filter(([, field]) => of(field) && !has(field)).map(([path]) => path);

describe('the CRD', () => {
  test('describes every field', () => expect(without((f) => (f.description ?? '') !== '')).toEqual([]));

  test('bounds every string', () => {
    const bounded = (f: Field) => f.maxLength !== undefined || f.enum !== undefined || f.format === 'date-time';
    expect(without(bounded, (f) => f.type === 'string')).toEqual([]);
  });

  test('bounds every list and says how it merges', () => {
    const bounded = (f: Field) => f.maxItems !== undefined && f['x-kubernetes-list-type'] !== undefined;
    expect(without(bounded, (f) => f.type === 'array')).toEqual([]);
  });

  test('bounds every number from below', () => {
    const bounded = (f: Field) =>
      f.minimum !== undefined || f['x-kubernetes-validations']?.some(({ rule }) => rule.startsWith('self >=')) === true;
    expect(without(bounded, (f) => f.type === 'integer')).toEqual([]);
  });

  test('has no floats and no booleans', () => {
    expect(without((f) => f.type !== 'number' && f.type !== 'boolean')).toEqual([]);
  });
});

describe('the type generator', () => {
  test('throws on what it cannot express, rather than to write a type that does not fit', () => {
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { share: { type: 'number' } } } },
    };
    expect(() => generateTypes(schema)).toThrow("No TypeScript type for the schema at '.spec.share': type number");
  });

  test('throws on an object without a name', () => {
    const schema = { type: 'object', properties: { other: { type: 'object' } } };
    expect(() => generateTypes(schema)).toThrow("No name for the type at '.other'");
  });
});
