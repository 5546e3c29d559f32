/**
 * What the history of a run says about safety. Pure.
 *
 * The oracle is what PostgreSQL accepted, and the revisions of the Leases; never the lock's opinion of itself.
 */
import type { Row } from '../database.ts';
import type { Life } from '../life.ts';

/** A Lease at one revision, or its end. */
export interface LeaseState {
  readonly lock: string;
  readonly revision: bigint;
  /** Pod name and UID as in its `holderIdentity`; empty when it was free. */
  readonly holder: string;
  readonly token: bigint;
  readonly durationSeconds: number;
  /** Wall clock of this machine, milliseconds since 1970. */
  readonly acquired: number;
  readonly renewed: number;
  readonly deleted: boolean;
}

/** A lock's status at one revision. */
export interface StatusState {
  readonly lock: string;
  readonly revision: bigint;
  readonly holder: string;
  readonly token: bigint;
}

export interface History {
  readonly leases: readonly LeaseState[];
  readonly statuses: readonly StatusState[];
  readonly guarded: readonly Row[];
  readonly unguarded: readonly Row[];
  readonly sealed: readonly Row[];
  readonly lives: readonly Life[];
}

export interface Violation {
  readonly rule:
    | 'guarded writes never go back'
    | 'nothing is accepted after a seal'
    | 'tokens of a Lease grow with each grant'
    | 'no two Pods have one token'
    | 'no program starts without a grant'
    | 'status names only holders of the Lease';
  readonly lock: string;
  readonly what: string;
  /** When, by the wall clock of this machine, if that is known. */
  readonly at?: number;
}

export function violations(history: History): readonly Violation[] {
  return [
    ...lateWrites(history.guarded).map(({ row, greatest }) => ({
      rule: 'guarded writes never go back' as const,
      lock: row.lock,
      what: `${row.pod}/${row.life} wrote with token ${row.token} after ${greatest}`,
      at: row.at,
    })),
    ...afterSeal(history),
    ...perLock(history.leases, tokensGrow),
    ...perLock(history.leases, oneHolder),
    ...ungranted(history),
    ...wrongStatus(history),
  ];
}

/** Rows with a token smaller than one before, lock by lock. Of the unguarded table: what a guard is for. */
export function lateWrites(rows: readonly Row[]): readonly { readonly row: Row; readonly greatest: bigint }[] {
  const greatest = new Map<string, bigint>();
  return rows.flatMap((row) => {
    const known = greatest.get(row.lock) ?? 0n;
    if (row.token >= known) greatest.set(row.lock, row.token);
    return row.token < known ? [{ row, greatest: known }] : [];
  });
}

/** A seal stands in the history a moment after it was made: whatever came after that entry, came after the seal. */
function afterSeal({ guarded, sealed }: History): readonly Violation[] {
  const entries = [...guarded, ...sealed.map((row) => ({ ...row, seals: true }))].toSorted((a, b) => a.tick - b.tick);
  const seals = new Map<string, bigint>();
  return entries.flatMap((row) => {
    const known = seals.get(row.lock) ?? 0n;
    if ('seals' in row) {
      if (row.token > known) seals.set(row.lock, row.token);
      return [];
    }
    if (row.token >= known) return [];
    const what = `${row.pod}/${row.life} wrote with token ${row.token} after a seal with ${known}`;
    return [{ rule: 'nothing is accepted after a seal' as const, lock: row.lock, what, at: row.at }];
  });
}

function perLock<State extends { readonly lock: string; readonly revision: bigint }>(
  states: readonly State[],
  check: (lock: string, states: readonly State[]) => readonly Violation[],
): readonly Violation[] {
  const groups = Map.groupBy(states, ({ lock }) => lock);
  return [...groups].flatMap(([lock, group]) =>
    check(
      lock,
      group.toSorted((a, b) => Number(a.revision - b.revision)),
    ),
  );
}

/** A new holder, or a grant anew, has a greater token than all before; nothing else changes the token. */
function tokensGrow(lock: string, states: readonly LeaseState[]): readonly Violation[] {
  let greatest = 0n;
  let former: LeaseState | undefined;
  return states.flatMap((state) => {
    const granted = state.holder !== '' && (state.holder !== former?.holder || state.acquired !== former.acquired);
    // A Lease that was made anew has token 0 until its first grant.
    const right = granted ? state.token > greatest : state.token === (former?.token ?? 0n) || state.token === 0n;
    former = state;
    const known = greatest;
    if (state.token > greatest) greatest = state.token;
    if (right) return [];
    const what = `revision ${state.revision}: token ${state.token} of '${state.holder}' after ${known}`;
    return [{ rule: 'tokens of a Lease grow with each grant' as const, lock, what }];
  });
}

function oneHolder(lock: string, states: readonly LeaseState[]): readonly Violation[] {
  const holders = new Map<bigint, string>();
  return states.flatMap(({ holder, token, revision }) => {
    if (holder === '') return [];
    const known = holders.get(token) ?? holder;
    holders.set(token, known);
    if (known === holder) return [];
    const what = `revision ${revision}: '${holder}' has token ${token} of '${known}'`;
    return [{ rule: 'no two Pods have one token' as const, lock, what }];
  });
}

const podOf = (identity: string): string => identity.slice(0, identity.lastIndexOf('_'));
const grantKey = (lock: string, holder: string, token: bigint): string => `${lock} ${holder} ${token}`;

/** Each program has the token that the Lease gave to its own Pod, in its environment and in its file. */
function ungranted({ leases, lives }: History): readonly Violation[] {
  const grants = new Set(leases.map(({ lock, holder, token }) => grantKey(lock, podOf(holder), token)));
  return lives.flatMap(({ lock, pod, life, token, file, from }) => {
    const wrong: string[] = [];
    if (!grants.has(grantKey(lock, pod, token)))
      wrong.push(`${pod}/${life} started with token ${token}, never granted to it`);
    // A sidecar that lost the lock takes the file away, maybe before the program is stopped.
    if (file !== '' && file !== String(token)) wrong.push(`${pod}/${life} has token ${token}, its file says '${file}'`);
    return wrong.map((what) => ({ rule: 'no program starts without a grant' as const, lock, what, at: from }));
  });
}

/** Who the status names had that token by a revision of the Lease before the status was written. */
function wrongStatus({ leases, statuses }: History): readonly Violation[] {
  const since = new Map<string, bigint>();
  for (const { lock, holder, token, revision } of leases) {
    const key = grantKey(lock, holder, token);
    const known = since.get(key);
    if (known === undefined || revision < known) since.set(key, revision);
  }
  return statuses.flatMap(({ lock, holder, token, revision }) => {
    if (holder === '') return [];
    const granted = since.get(grantKey(lock, holder, token));
    if (granted !== undefined && granted <= revision) return [];
    const what = `revision ${revision}: status names '${holder}' with token ${token}, which the Lease did not`;
    return [{ rule: 'status names only holders of the Lease' as const, lock, what }];
  });
}
