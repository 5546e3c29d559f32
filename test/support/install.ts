/** How the chart is installed for tests, so that a test that removes it can put it back as it was. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const OPERATOR_NAMESPACE = 'kilit-system';
/** Release name, and so the name of the operator's ServiceAccount. */
export const RELEASE = 'kilit';

/** Of the operator's bundle that the image was made from; the harness builds it before it loads the image. */
function buildHash(): string {
  const bundle = join(import.meta.dirname, '../../dist/operator.js');
  return existsSync(bundle) ? createHash('sha256').update(readFileSync(bundle)).digest('hex').slice(0, 12) : '0';
}

export interface InstallOptions {
  /** Operators to run; without any the policies work all the same. */
  readonly replicas: number;
}

/** Arguments of helm that install or upgrade the release and wait for it. */
export const installArgs = ({ replicas }: InstallOptions): readonly string[] => [
  ...`upgrade --install ${RELEASE} charts/kilit --namespace ${OPERATOR_NAMESPACE} --create-namespace`.split(' '),
  '--set',
  `image.tag=dev,replicas=${replicas},fencedLeases.enabled=true`,
  // The tag stays the same: a new build must show in the Deployment, or old operators would be tested.
  '--set',
  `podAnnotations.build=b${buildHash()}`,
  // A test may have changed an object under its own name, and may have died before it put that back.
  '--force-conflicts',
  '--wait',
  '--timeout=3m',
];
