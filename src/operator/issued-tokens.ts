import { leaseName } from '../api/names.ts';
import { ReadyReason } from '../api/reasons.ts';
import type { GrantGate, RevisionFall } from '../core/observed.ts';
import { gateOf } from '../core/revision-fall.ts';
import { type FencingToken, parseFencingToken } from '../core/token.ts';
import type { Caches } from './caches.ts';
import type { Log } from './log.ts';

/**
 * What was written in the last moments before a restore may not have reached this process: so many revisions of it.
 *
 * A watch may be silent for 30 s before it is known to be dead; a busy cluster writes some hundred times a second.
 */
const UNSEEN_REVISIONS = 10_000n;

/** What this process remembers of the tokens that were issued. In memory only: a restarted operator knows none of it. */
export interface IssuedTokens {
  /** For the gate. */
  known(): { readonly highestToken: FencingToken; readonly revision: bigint; readonly fall?: RevisionFall };
  /** How many locks this keeps from being granted. */
  locksBehind(gate: GrantGate): number;
}

/**
 * Remembers the highest token seen, and that the revisions of Leases went back.
 *
 * A token is the revision of a Lease and the base at most, so none above the highest revision seen and the base then can
 * have been issued. Every replica remembers, so a new leader does too.
 */
export function createIssuedTokens(deps: {
  readonly caches: Pick<Caches, 'leases' | 'locks' | 'tokenBase'>;
  readonly log: Pick<Log, 'error'>;
  /** The revisions went back: no decision of before holds. */
  readonly wentBack: () => void;
}): IssuedTokens {
  const { caches, log, wentBack } = deps;
  let highestToken = 0n;
  let highestBase = 0n;
  let fall: RevisionFall | undefined;
  const saw = (token: FencingToken | undefined) => {
    if (token !== undefined && token > highestToken) highestToken = token;
  };
  caches.leases.onChange(({ entry }) => saw(entry?.view.token));
  caches.locks.onChange(({ entry }) => saw(parseFencingToken(entry?.view.status.fencingToken)));
  caches.tokenBase.onChange(({ entry }) => {
    const base = entry?.view ?? 0n;
    if (base > highestBase) highestBase = base;
  });
  caches.leases.onWentBack(({ from, to }) => {
    const issued = from + highestBase + UNSEEN_REVISIONS;
    fall = { from, to, issued: fall === undefined || issued > fall.issued ? issued : fall.issued };
    log.error(
      { from: from.toString(), to: to.toString(), base: highestBase.toString() },
      'Revisions went back; granting nothing whose token may have been issued before',
    );
    wentBack();
  });
  return {
    known: () => ({ highestToken, revision: caches.leases.highest, ...(fall !== undefined && { fall }) }),
    locksBehind(gate) {
      let behind = 0;
      for (const { view: lock } of caches.locks.entries()) {
        const lease = caches.leases.get(lock.namespace, leaseName(lock.name))?.view;
        const own = gateOf({ lock, lease, gate });
        if (!own.open && own.reason === ReadyReason.RevisionFellBehind) behind += 1;
      }
      return behind;
    },
  };
}
