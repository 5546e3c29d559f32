import type { LossReason } from './holder-types.ts';

/** Each loss in a sentence: for the file `reason`, the event and the log. */
const SENTENCES: Readonly<Record<LossReason, string>> = {
  DeadlinePassed: 'no renewal got a good reply in time',
  HolderChanged: 'the Lease names another holder',
  GrantChanged: 'the Lease records another grant to this Pod',
  LeaseDeleted: 'the Lease was deleted',
  YieldAsked: 'the operator asked this Pod to yield the lock',
  Terminated: 'the sidecar was told to end',
  FilesFailed: 'the token could not be written to the shared volume',
  Crashed: 'the sidecar met an unexpected error',
  RestartedAlone: 'the sidecar was restarted without its Pod',
};

/** `DeadlinePassed: no renewal got a good reply in time`. */
export function explainLoss(reason: LossReason): string {
  return `${reason}: ${SENTENCES[reason]}`;
}
