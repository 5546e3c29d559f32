/** The install bundle for `kubectl apply`, made of the rendered chart. */
import { type Document, isMap, parseAllDocuments } from 'yaml';

const NAMESPACE = `apiVersion: v1
kind: Namespace
metadata:
  name: kilit-system
  labels:
    app.kubernetes.io/name: kilit
    app.kubernetes.io/part-of: kilit
    pod-security.kubernetes.io/enforce: restricted
`;

const HEADER = `# kilit, as one file for \`kubectl apply --server-side -f\`. Generated from charts/kilit by \`npm run generate\`. Do not edit.
`;

/** Labels and annotations that are true only of what Helm installed. */
const HELM_ONLY: ReadonlySet<string> = new Set([
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/instance',
  'helm.sh/chart',
  'helm.sh/resource-policy',
]);
/** Where `app.kubernetes.io/instance` selects Pods it must stay. */
const SELECTING: ReadonlySet<string> = new Set(['Deployment', 'Service', 'PodDisruptionBudget', 'NetworkPolicy']);

/** @param rendered the output of `helm template` */
export function makeBundle(rendered: string): string {
  const documents = parseAllDocuments(rendered).filter((document) => document.contents !== null);
  for (const document of documents) cleanMetadata(document);
  const order = (document: Document): number => (document.get('kind') === 'CustomResourceDefinition' ? 0 : 1);
  const sorted = documents.toSorted((a, b) => order(a) - order(b));
  const texts = sorted.map((document) => document.toString({ lineWidth: 0 }).replace(/^---\n/, ''));
  return [HEADER + NAMESPACE, ...texts].join('---\n');
}

function cleanMetadata(document: Document): void {
  const kind = String(document.get('kind'));
  document.commentBefore = withoutSource(document.commentBefore);
  if (isMap(document.contents)) document.contents.commentBefore = withoutSource(document.contents.commentBefore);
  for (const part of ['labels', 'annotations']) {
    const map = document.getIn(['metadata', part]);
    if (!isMap(map)) continue;
    for (const key of HELM_ONLY) {
      if (key !== 'app.kubernetes.io/instance' || !SELECTING.has(kind)) map.delete(key);
    }
    if (map.items.length === 0) document.deleteIn(['metadata', part]);
  }
}

/** Helm writes the template's path before each document. */
function withoutSource(comment: string | null | undefined): string | null {
  const lines = (comment ?? '').split('\n').filter((line) => !line.startsWith(' Source: '));
  return lines.join('\n').trim() === '' ? null : lines.join('\n');
}
