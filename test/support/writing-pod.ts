/** A gated Pod whose program writes what it does into a file of this machine (`history.ts` reads it). */
import { TEST_IMAGE } from '../../tools/cluster/index.ts';
import type { PodOptions } from './scene.ts';

const HISTORY = '/history';

/** Writes a line every 20 ms until SIGTERM (which it may ignore), or until its time is over. */
const PROGRAM = `
const { appendFileSync, readFileSync } = require('fs');
const { LOCK, DID, DEAF, RUN_MS, SPIN_MS, HOSTNAME, FENCING_TOKEN } = process.env;
const life = Math.random().toString(36).slice(2, 8);
const read = (path) => { try { return readFileSync(path, 'utf8').trim() } catch { return '' } };
const token = FENCING_TOKEN ?? '';
const file = read('/run/kilit/token');
const write = (did) => appendFileSync('${HISTORY}/' + LOCK, JSON.stringify({ pod: HOSTNAME, life, did, token, file, at: Date.now() }) + '\\n');
process.on('SIGTERM', () => { write('got SIGTERM'); if (!DEAF) process.exit(0); });
write(DID ?? 'started');
if (DID) process.exit(0);
for (const from = performance.now(); SPIN_MS && performance.now() - from < Number(SPIN_MS); ) {}
setInterval(() => write('ran'), 20);
if (RUN_MS) setTimeout(() => process.exit(0), Number(RUN_MS));
`;

export interface WritingPodOptions extends Pick<PodOptions, 'lock' | 'name' | 'annotations' | 'spec'> {
  /** Ends with code 0 after so many milliseconds. @default never */
  readonly runMs?: number;
  /** Blocks its event loop for so many milliseconds after its first line. @default not at all */
  readonly spinMs?: number;
  /** Ignores SIGTERM. */
  readonly deaf?: boolean;
  /** Has an init container of its own that writes a line too. */
  readonly migrates?: boolean;
  readonly volumes?: readonly object[];
  readonly volumeMounts?: readonly object[];
}

/** `dir` is a folder of this machine; the history is its file of the lock's name. */
export function writingPod(options: WritingPodOptions, dir: string): PodOptions {
  const { runMs, spinMs, deaf, migrates, volumes = [], volumeMounts = [], spec, ...pod } = options;
  const container = {
    env: [
      { name: 'LOCK', value: options.lock },
      ...(runMs === undefined ? [] : [{ name: 'RUN_MS', value: String(runMs) }]),
      ...(spinMs === undefined ? [] : [{ name: 'SPIN_MS', value: String(spinMs) }]),
      ...(deaf === true ? [{ name: 'DEAF', value: 'yes' }] : []),
    ],
    volumeMounts: [{ name: 'history', mountPath: HISTORY }, ...volumeMounts],
  };
  const migrate = {
    ...container,
    name: 'migrate',
    image: TEST_IMAGE,
    imagePullPolicy: 'Never',
    command: ['node', '-e', PROGRAM],
    env: [...container.env, { name: 'DID', value: 'migrated' }],
  };
  return {
    ...pod,
    program: PROGRAM,
    container,
    spec: {
      volumes: [{ name: 'history', hostPath: { path: dir, type: 'Directory' } }, ...volumes],
      ...(migrates === true && { initContainers: [migrate] }),
      ...spec,
    },
  };
}
