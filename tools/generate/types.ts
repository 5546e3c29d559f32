/**
 * TypeScript types from the CRD's OpenAPI schema, so that the schema is written once.
 *
 * Covers what this project's CRD uses (objects, arrays, strings, integers, enums, defaults) and throws on all else,
 * rather than to write a type that does not fit.
 */

/** The part of an OpenAPI v3 schema that the generator reads. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** Names of the interfaces, by the path of the object in the schema. */
const NAMES: Readonly<Record<string, string>> = {
  '': 'DistributedLock',
  '.spec': 'DistributedLockSpec',
  '.status': 'DistributedLockStatus',
  '.status.conditions[]': 'LockCondition',
  '.status.holder': 'LockHolder',
  '.status.terms': 'LockTerms',
  '.status.lastBreak': 'LockBreak',
  '.status.lastHandover': 'LockHandover',
  '.status.queue[]': 'LockWaiter',
};

const HEADER = `// Generated from charts/kilit/files/crd.yaml by \`npm run generate\`. Do not edit.

/** The part of \`metadata\` that kilit reads; as in every Kubernetes object. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
}
`;

/**
 * The source text of the types of one CRD version, as an object looks when it was *read*: fields with a default are there.
 *
 * Interfaces come in the order in which they are first needed.
 */
export function generateTypes(root: Schema): string {
  const interfaces: string[] = [];
  writeInterface('', root, interfaces);
  return [HEADER, ...interfaces].join('\n');
}

function writeInterface(path: string, schema: Schema, out: string[]): string {
  const name = NAMES[path];
  if (name === undefined)
    throw new Error(`No name for the type at '${path}': add it to NAMES in tools/generate/types.ts`);
  const index = out.push('') - 1;
  const fields = Object.entries(schema.properties ?? {}).map(([key, child]) => field(path, schema, key, child, out));
  out[index] = `${docComment(schema, '')}export interface ${name} {\n${fields.join('')}}\n`;
  return name;
}

function field(path: string, parent: Schema, key: string, schema: Schema, out: string[]): string {
  const here = `${path}.${key}`;
  const type = here === '.metadata' ? 'ObjectMeta' : typeOf(here, schema, out);
  const present = alwaysThere.has(here) || schema.default !== undefined || parent.required?.includes(key) === true;
  return `${docComment(schema, '  ')}  readonly ${key}${present ? '' : '?'}: ${type};\n`;
}

const alwaysThere: ReadonlySet<string> = new Set(['.apiVersion', '.kind', '.metadata']);

function typeOf(path: string, schema: Schema, out: string[]): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `'${value}'`).join(' | ');
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
      return 'number';
    case 'object':
      return writeInterface(path, schema, out);
    case 'array':
      if (schema.items === undefined) break;
      return `readonly ${typeOf(`${path}[]`, schema.items, out)}[]`;
  }
  throw new Error(`No TypeScript type for the schema at '${path}': type ${String(schema.type)}`);
}

function docComment(schema: Schema, indent: string): string {
  const lines = (schema.description ?? '').trim().split('\n');
  const { default: value } = schema;
  if (typeof value === 'number' || typeof value === 'string') lines.push('', `@default ${value}`);
  const text = lines.map((line) => line.trim());
  if (text.length === 1 && text[0] === '') return '';
  if (text.length === 1) return `${indent}/** ${text[0]} */\n`;
  return `${indent}/**\n${text.map((line) => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */\n`;
}
