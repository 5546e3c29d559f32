/** `src/api/generated/policies.ts`: the policies of the chart by name, for `kilit doctor`. */
import { parseAllDocuments } from 'yaml';

interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly policyName?: string; readonly validationActions?: readonly string[] };
}

/** @param manifest the install bundle: what the chart installs by default */
export function generatePolicies(manifest: string): string {
  const objects = parseAllDocuments(manifest).map((document) => document.toJS() as Rendered);
  const names = (kind: string): readonly string[] =>
    objects
      .filter((one) => one.kind === kind)
      .map(({ metadata }) => metadata.name)
      .toSorted();
  const action = (policy: string): string =>
    objects.find(({ kind, spec }) => kind === 'ValidatingAdmissionPolicyBinding' && spec?.policyName === policy)?.spec
      ?.validationActions?.[0] ?? 'Deny';
  return `// Generated from charts/kilit by \`npm run generate\`. Do not edit.

/** Mutating policies that the chart installs by default. */
export const MUTATING_POLICIES: readonly string[] = [
${names('MutatingAdmissionPolicy')
  .map((name) => `  '${name}',`)
  .join('\n')}
];

/** Validating policies that the chart installs by default, and what their binding must do. */
export const VALIDATING_POLICIES: Readonly<Record<string, string>> = {
${names('ValidatingAdmissionPolicy')
  .map((name) => `  '${name}': '${action(name)}',`)
  .join('\n')}
};
`;
}
