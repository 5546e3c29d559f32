import { addLoss, type Losses, NO_LOSSES } from '../../../src/core/backoff.ts';
import type { Mode } from '../../../src/core/holder-types.ts';
import type { FencingToken } from '../../../src/core/token.ts';
import type { RunFiles } from '../../../src/sidecar/files.ts';

/** `/run/kilit` of one Pod, in memory; it outlives its containers. */
export interface MemoryFiles extends RunFiles {
  /** What `fileKeyRef` reads. */
  readonly env: () => string | undefined;
  /** The volume takes no more writes. */
  isFull: boolean;
  readonly text: () => string;
}

export function createMemoryFiles(mode: Mode): MemoryFiles {
  const files = new Map<string, string>();
  let losses: Losses = NO_LOSSES;
  const write = (name: string, text: string) => {
    if (memory.isFull) throw new Error('ENOSPC: no space left on device');
    files.set(name, text);
  };
  const memory: MemoryFiles = {
    isFull: false,
    socketPath: '/run/kilit/sock',
    env: () => files.get('env'),
    text: () => [...files].map(([name, text]) => `${name}=${text}`).join(' '),
    writeEpoch: () => write('epoch', 'fresh'),
    consumeEpoch: () => (files.delete('epoch') ? 'fresh' : 'absent'),
    writeGrant(token: FencingToken) {
      write('token', String(token));
      if (mode === 'gate') write('env', String(token));
    },
    removeGrant() {
      files.delete('env');
      files.delete('token');
    },
    hasGrant: () => files.has('env') || files.has('token'),
    removeSocket: () => {},
    readLosses: () => losses,
    recordLoss(reason, heldMs) {
      if (memory.isFull) throw new Error('ENOSPC: no space left on device');
      losses = addLoss(losses, heldMs);
      files.set('reason', reason);
    },
  };
  return memory;
}
