/** The rendered chart as objects. */
import { parseAllDocuments } from 'yaml';
import { type RenderOptions, renderChart } from '../../tools/generate/helm.ts';

export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

export async function renderObjects(options: RenderOptions = {}): Promise<readonly Rendered[]> {
  const documents = parseAllDocuments(await renderChart({ set: ['image.tag=dev'], ...options }));
  return documents.map((document) => document.toJS() as Rendered | null).filter((object) => object !== null);
}

export function one(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.filter((object) => object.kind === kind && object.metadata.name === name);
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} objects ${kind}/${name}`);
  return found[0];
}
