import { registerHooks } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Mutation } from './mutations.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

const STAND_IN = 'data:text/javascript,export class ListWatch {} export class Watch {} export class KubeConfig {}';

/** Loads nothing in the place of `@kubernetes/client-node`, which no simulation uses and which takes half a second. */
export function leaveOutClientNode(): void {
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      specifier === '@kubernetes/client-node'
        ? { url: STAND_IN, format: 'module', shortCircuit: true }
        : nextResolve(specifier, context),
  });
}

/** Writes a mutation into the modules that this thread loads from now on. @throws if an edit does not fit its file */
export function plant({ name, edits }: Mutation): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const wanted = edits.filter(({ file }) => pathToFileURL(resolve(ROOT, file)).href === url);
      if (wanted.length === 0) return loaded;
      let source = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
      for (const { file, find, replace } of wanted) {
        const parts = source.split(find);
        if (parts.length !== 2) throw new Error(`Mutation ${name} does not fit ${file} any more: ${find}`);
        source = parts.join(replace);
      }
      return { ...loaded, source };
    },
  });
}
