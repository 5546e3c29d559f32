/** Checks of tokens: they must go on above every one that was ever issued. Pure. */
import { LEASE_PREFIX, TOKEN_ANNOTATION } from '../../../api/names.ts';
import { parseFencingToken } from '../../../core/token.ts';
import { orElse } from '../../attempt.ts';
import { greatest, tokensOfLeases, tokensOfLocks, tokensOfMarks } from '../../base/issued.ts';
import { notAbove, proposedBase } from '../../base/raise-to.ts';
import { MARKS_SQL, type Mark } from '../../mark.ts';
import { some } from '../../text.ts';
import { type Facts, podName } from '../facts.ts';
import { type Finding, fail, ok, onRead, warn } from '../finding.ts';

const RESTORED =
  'The revision fell behind: etcd was restored without --bump-revision, or objects were moved here from another cluster. Tokens that are known elsewhere would come again.';

export function revision(facts: Facts): readonly Finding[] {
  const check = 'revision';
  const { leases, locks, operator } = facts;
  return onRead(check, operator.base, (base) =>
    onRead(check, facts.revision, (now) =>
      onRead(check, leases, (all) => {
        const known = {
          base,
          revision: now,
          greatest: greatest([...tokensOfLeases(all), ...tokensOfLocks(orElse(locks, []))]),
        };
        const behind = notAbove(base, known);
        const stale = all.filter((lease) => {
          const token = parseFencingToken(lease.metadata.annotations?.[TOKEN_ANNOTATION]) ?? 0n;
          return BigInt(lease.metadata.resourceVersion) + base < token;
        });
        if (behind === undefined && stale.length === 0) {
          const seen = known.greatest === undefined ? 'none was issued' : `greatest token ${known.greatest.token}`;
          return [
            ok(
              check,
              `The next token is ${now + base} or more; ${seen}. Tokens issued after a backup only guards know (check marks)`,
            ),
          ];
        }
        const says =
          behind === undefined
            ? `Leases whose token is above their revision and the base ${base}: ${some(stale.map(podName))}.`
            : `The next token would be ${now + base} (revision ${now}, base ${base}), not above ${behind.token} of ${behind.where}.`;
        const todo = `Before anything is granted: kilit base raise ${proposedBase(known)}; then restart the operator.`;
        return [fail(check, { says, means: RESTORED, todo })];
      }),
    ),
  );
}

export function marks(facts: Facts): readonly Finding[] {
  const check = 'marks';
  if (facts.marks.length === 0) {
    return [ok(check, `None given. To compare those of PostgreSQL: kilit doctor $(${MARKS_SQL})`)];
  }
  return onRead(check, facts.operator.base, (base) =>
    onRead(check, facts.revision, (now) =>
      onRead(check, facts.leases, (leases) => {
        const tokens = new Map(
          leases.map((lease) => [
            `${lease.metadata.namespace}/${lease.metadata.name.slice(LEASE_PREFIX.length)}`,
            lease,
          ]),
        );
        const ahead = facts.marks.filter((mark) => mark.token >= now + base);
        const refused = facts.marks.filter(
          (mark) => !ahead.includes(mark) && isRefused(mark, tokens.get(mark.resource)),
        );
        const findings: Finding[] = [];
        if (ahead.length > 0) {
          const known = {
            base,
            revision: now,
            greatest: greatest([...tokensOfLeases(leases), ...tokensOfMarks(facts.marks)]),
          };
          findings.push(
            fail(check, {
              says: `Guards have seen tokens that this cluster has not come to (next is ${now + base}): ${some(ahead.map(markText))}.`,
              means: `${RESTORED} Until then every holder is refused.`,
              todo: `kilit base raise ${proposedBase(known)}; then restart the operator.`,
            }),
          );
        }
        if (refused.length > 0) {
          findings.push(
            fail(check, {
              says: `The holder's token is behind the mark: ${some(refused.map(markText))}.`,
              means: 'The guard refuses each write of the present holder. The next grant has a greater token.',
              todo: "kilit handover LOCK --reason '…', or delete the holder's Pod.",
            }),
          );
        }
        return findings.length > 0 ? findings : [ok(check, `No guard is ahead: ${some(facts.marks.map(markText))}`)];
      }),
    ),
  );
}

const markText = ({ resource, token }: Mark): string => `${resource} at ${token}`;

function isRefused(mark: Mark, lease: Parameters<typeof tokensOfLeases>[0][number] | undefined): boolean {
  if ((lease?.spec?.holderIdentity ?? '') === '') return false;
  return mark.token > (parseFencingToken(lease?.metadata.annotations?.[TOKEN_ANNOTATION]) ?? 0n);
}

export function strayLeases({ leases, locks }: Facts): readonly Finding[] {
  const check = 'stray-leases';
  return onRead(check, leases, (all) =>
    onRead(check, locks, (known) => {
      const names = new Set(known.map(podName));
      const strays = all.filter(
        ({ metadata }) => !names.has(`${metadata.namespace}/${metadata.name.slice(LEASE_PREFIX.length)}`),
      );
      if (strays.length === 0) return [ok(check, `Each of ${all.length} Leases ${LEASE_PREFIX}* has its lock`)];
      return [
        warn(check, {
          says: `Leases without a lock: ${some(strays.map(podName))}.`,
          means: 'Their lock was deleted past its finalizer. A holder may still renew one; nobody is granted it.',
          todo: 'Create the lock again: the operator takes the Lease over, and its tokens go on. Deleting that lock then takes it along.',
        }),
      ];
    }),
  );
}
