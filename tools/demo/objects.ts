/** What the demo makes in the cluster: one namespace, one lock, Pods of one small program. Pure. */
import { GROUP, KIND, LOCK_LABEL, VERSION } from '../../src/api/names.ts';
import { TEST_IMAGE } from '../cluster/index.ts';

export const NAMESPACE = 'shop';
export const LOCK = 'billing';
/** The shortest there is, so that the viewer waits less; the default is 15. */
export const LEASE_SECONDS = 5;
export const TAKEOVER_DELAY_SECONDS = 5;
export const PROGRAM = 'app';
export const MADE_BY_DEMO = { app: 'worker' } as const;

/** Prints its token each second, and ends at SIGTERM: it knows nothing of kilit but an environment variable. */
const SOURCE = `
process.on('SIGTERM', () => process.exit(0));
const say = () => console.log('token ' + process.env.FENCING_TOKEN);
say();
setInterval(say, 1000);
`;

export const namespaceObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };

export const lockObject = {
  apiVersion: `${GROUP}/${VERSION}`,
  kind: KIND,
  metadata: { name: LOCK, namespace: NAMESPACE },
  spec: { leaseDurationSeconds: LEASE_SECONDS, takeoverDelaySeconds: TAKEOVER_DELAY_SECONDS },
};

/** `restartPolicy: Never`: a program that dies is not started again in the same Pod, so its death passes the lock on. */
export const workerObject = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: NAMESPACE, labels: { ...MADE_BY_DEMO, [LOCK_LABEL]: LOCK } },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 5,
    containers: [
      { name: PROGRAM, image: TEST_IMAGE, imagePullPolicy: 'IfNotPresent', command: ['node', '-e', SOURCE] },
    ],
  },
});

/** The object as kubectl reads it from its standard input. */
export const manifest = (...objects: readonly object[]): string =>
  objects.map((object) => JSON.stringify(object)).join('\n---\n');
