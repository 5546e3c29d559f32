/** All generated files of the project, by path. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { repositoryRoot } from '../cluster/paths.ts';
import { cliDocs } from './cli-docs.ts';
import { renderChart } from './helm.ts';
import { makeBundle } from './manifest.ts';
import { generatePolicies } from './policies.ts';
import { generateTypes, type Schema } from './types.ts';

interface Crd {
  readonly spec: { readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: Schema } }] };
}

export const CRD_PATH: string = join(repositoryRoot, 'charts', 'kilit', 'files', 'crd.yaml');

export async function readSchema(): Promise<Schema> {
  const crd = parse(await readFile(CRD_PATH, 'utf8')) as Crd;
  return crd.spec.versions[0].schema.openAPIV3Schema;
}

/** Path in the work tree → what the file must hold. */
export async function generateAll(): Promise<ReadonlyMap<string, string>> {
  const manifest = makeBundle(await renderChart({ set: ['image.tag=dev'] }));
  return new Map([
    ['src/api/generated/distributedlock.ts', generateTypes(await readSchema())],
    ['docs/cli.md', cliDocs()],
    ['src/api/generated/policies.ts', generatePolicies(manifest)],
    ['manifests/kilit.yaml', manifest],
  ]);
}
