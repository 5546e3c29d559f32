/** What is refused to those who write a fenced Lease, and what every leader election must be let do. */
import { describe } from 'vitest';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import {
  anElection,
  byRevision,
  change,
  createElection,
  FENCED,
  patching,
  TIME,
  TOKEN,
  takenBy,
  withoutAnnotations,
} from './fenced-leases.ts';
import { creating, leasePath, released, renewed, replacing, withAnnotations, withMetadata } from './leases.ts';
import { openWorld, type World } from './world.ts';

const at = useWorld(
  () => openWorld('fenced'),
  async (world) => {
    await createElection(world, { name: 'app' });
    await change(world, 'app', renewed);
    // So that the token that is due is not by chance the present one plus one.
    for (let i = 0; i < 3; i += 1) await change(world, 'app', renewed);
    await createElection(world, { name: 'plain', labels: {}, annotations: { [TOKEN]: '777' } });
  },
);

const forged = (token: string) => ({ annotations: { [TOKEN]: token } });
const tokenOf = (lease: { metadata: { annotations: Readonly<Record<string, string>> } }): bigint =>
  BigInt(lease.metadata.annotations[TOKEN] ?? '');

const attacks: readonly Attack[] = [
  {
    name: 'creating it with a token',
    as: 'editor',
    send: creating(() => anElection({ name: 'new', ...forged('5') })),
    refused:
      /Lease new: the fencing token must be 0 at creation, got "5"; kilit mints it: leave annotation \S+ as it is/,
  },
  {
    name: 'creating it with a token by PUT',
    as: 'admin',
    send: (world, as) =>
      world.kube.ask('PUT', `${leasePath(world, 'new')}?dryRun=All`, {
        as,
        body: anElection({ name: 'new', ...forged('900000000000000000') }),
      }),
    refused: /must be 0 at creation/,
  },
  {
    name: 'creating it with a token by server-side apply',
    as: 'admin',
    send: patching('new', anElection({ name: 'new', ...forged('1') }), 'apply'),
    refused: /must be 0 at creation/,
  },
  {
    name: 'creating it with an acquireTime for which a token is said to be',
    as: 'editor',
    send: creating(() => anElection({ name: 'new', annotations: { [TIME]: '2026-01-01T00:00:00Z' } })),
    refused: /annotation kilit\.dev\/fenced-acquire-time must be "", got "2026-01-01T00:00:00Z"; kilit writes it/,
  },
  {
    name: 'taking it over with the token plus one',
    as: 'editor',
    send: replacing('app', (lease) => withAnnotations(takenBy('b', lease), { [TOKEN]: String(tokenOf(lease) + 1n) })),
    refused: /Lease app: the fencing token must be \d+ for this grant, got "\d+"/,
  },
  {
    name: 'taking it over with one more than is due',
    as: 'admin',
    send: replacing('app', (lease, { base }) =>
      withAnnotations(takenBy('b', lease), { [TOKEN]: String(BigInt(byRevision(lease, base)) + 1n) }),
    ),
    refused: /must be \d+ for this grant/,
  },
  {
    name: 'taking it over with a token of 18 digits',
    as: 'editor',
    send: patching('app', { spec: { holderIdentity: 'b' }, metadata: forged('999999999999999999') }),
    refused: /must be \d+ for this grant/,
  },
  {
    name: 'taking it over with a token for an acquireTime of another',
    as: 'editor',
    send: replacing('app', (lease) => withAnnotations(takenBy('b', lease), { [TIME]: '2026-01-01T00:00:00Z' })),
    refused: /fenced-acquire-time must be "20\d\d-.*", got "2026-01-01T00:00:00Z"/,
  },
  {
    name: 'raising the token without a new holder',
    as: 'editor',
    send: replacing('app', (lease) => withAnnotations(renewed(lease), { [TOKEN]: String(tokenOf(lease) + 1n) })),
    refused: /must be \d+ as long as its holder does not change, got "\d+"/,
  },
  {
    name: 'lowering the token',
    as: 'admin',
    send: replacing('app', (lease) => withAnnotations(renewed(lease), { [TOKEN]: String(tokenOf(lease) - 1n) })),
    refused: /must be \d+ as long as its holder does not change/,
  },
  {
    name: 'writing the token with a zero in front',
    as: 'admin',
    send: replacing('app', (lease) => withAnnotations(renewed(lease), { [TOKEN]: `0${tokenOf(lease)}` })),
    refused: /must be \d+ as long as its holder does not change/,
  },
  {
    name: 'setting the token back to "0", so that the next renewal would mint',
    as: 'editor',
    send: patching('app', { metadata: forged('0') }),
    refused: /must be \d+ as long as its holder does not change, got "0"/,
  },
  {
    name: 'changing the token while releasing',
    as: 'editor',
    send: patching('app', { spec: { holderIdentity: '' }, metadata: forged('5') }),
    refused: /must be \d+ as long as its holder does not change, got "5"/,
  },
  {
    name: 'changing the acquireTime that the token is for',
    as: 'editor',
    send: patching('app', { metadata: { annotations: { [TIME]: '2026-01-01T00:00:00Z' } } }),
    refused: /fenced-acquire-time must be/,
  },
  {
    name: 'taking the label off',
    as: 'admin',
    send: patching('app', { metadata: { labels: { 'kilit.dev/fenced': null } } }),
    refused: /Lease app is fenced: its label kilit\.dev\/fenced=true must stay.*delete the Lease and let it be created/,
  },
  {
    name: 'giving the label another value',
    as: 'editor',
    send: patching('app', { metadata: { labels: { 'kilit.dev/fenced': 'false' } } }),
    refused: /its label kilit\.dev\/fenced=true must stay/,
  },
  {
    name: 'taking label, token and holder away in one write',
    as: 'editor',
    send: replacing('app', (lease) => withMetadata(withoutAnnotations(takenBy('b', lease)), { labels: {} })),
    refused: /its label kilit\.dev\/fenced=true must stay/,
  },
  {
    name: 'labelling it "yes", which would fence nothing',
    as: 'editor',
    send: creating(() => anElection({ name: 'new', labels: { 'kilit.dev/fenced': 'yes' } })),
    refused:
      /label kilit\.dev\/fenced must be "true" or absent, got "yes"; with any other value the Lease is not fenced/,
  },
  {
    name: 'labelling a Lease and choosing its token in the same write',
    as: 'editor',
    send: patching('plain', { metadata: { labels: FENCED, ...forged('778') } }),
    refused: /Lease plain: the fencing token must be \d+ for this grant, got "778"/,
  },
];

const legitimate: readonly Attempt[] = [
  { name: 'creating it held', as: 'editor', send: creating(() => anElection({ name: 'new' })) },
  { name: 'creating it free', as: 'editor', send: creating(() => anElection({ name: 'new', holder: '' })) },
  { name: 'renewing', as: 'editor', send: replacing('app', renewed) },
  {
    name: 'renewing without sending any annotation',
    as: 'editor',
    send: replacing('app', (l) => withoutAnnotations(renewed(l))),
  },
  { name: 'releasing', as: 'editor', send: replacing('app', released) },
  { name: 'taking over', as: 'editor', send: replacing('app', (lease) => takenBy('b', lease)) },
  {
    name: 'taking over with the very token that is due',
    as: 'editor',
    send: replacing('app', (lease, { base }) =>
      withAnnotations(takenBy('b', lease), { [TOKEN]: byRevision(lease, base) }),
    ),
  },
  { name: 'taking over by a merge patch', as: 'editor', send: patching('app', { spec: { holderIdentity: 'b' } }) },
  {
    name: 'taking over by server-side apply',
    as: 'editor',
    send: patching('app', anElection({ holder: 'b' }), 'apply'),
  },
  {
    name: 'other labels and annotations',
    as: 'editor',
    send: patching('app', { metadata: { labels: { team: 'x' }, annotations: { note: 'y' } } }),
  },
  { name: 'labelling a held Lease', as: 'editor', send: patching('plain', { metadata: { labels: FENCED } }) },
  { name: 'any token on a Lease without the label', as: 'editor', send: patching('plain', { metadata: forged('1') }) },
  {
    name: 'deleting it',
    as: 'editor',
    send: (world: World, as) => world.kube.ask('DELETE', `${leasePath(world, 'app')}?dryRun=All`, { as }),
  },
];

describe('a fenced Lease', () => {
  tryAll(at, { attacks, legitimate });
});
