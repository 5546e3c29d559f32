import { seconds } from '../../cluster/progress.ts';
import { type Billing, type BillingLog, type GuardMode, openBilling, type Refusal } from '../billing.ts';
import { awaitNext, deletePods, type Next } from '../hand-over.ts';
import { LEASE_SECONDS, MADE_BY_DEMO, NAMESPACE } from '../objects.ts';
import { type Holder, rowsOf, settledHolder } from '../sight.ts';
import type { Stage } from '../stage.ts';

/** One run of the story until the paused holder wakes up. */
interface Late extends AsyncDisposable {
  readonly next: Next;
  readonly log: BillingLog;
  readonly customer: number;
}

export async function pausedHolder(stage: Stage): Promise<Next> {
  const billing = openBilling(stage.cluster, NAMESPACE);
  await stage.say(
    'A billing program charges six customers in PostgreSQL. For each it looks who is not charged yet, thinks for a second ' +
      'and writes the charge, all in one transaction. Two Pods run it, behind the same lock. The ledger is protected: ' +
      'a write needs a token that is not older than the newest one that the database has seen.',
  );
  await removeWorkers(stage);
  await billing.startDatabase();
  const next = await guarded(stage, billing);
  await unguarded(stage, billing);
  await stage.say(
    'Both times the lock did the same, and both times one Pod was late. What made the difference is that the database ' +
      'compared tokens. A lock without that is right nearly always.',
  );
  return next;
}

async function guarded(stage: Stage, billing: Billing): Promise<Next> {
  await using late = await untilLate(stage, billing, 'on');
  const { next, log, customer } = late;
  const { from, to } = next;
  await stage.say(
    `Now ${from.name} wakes up in the middle of its transaction, and writes the charge for customer ${customer}. ` +
      '(Here its program wakes up a moment before its sidecar, which would have it stopped; in earnest that is chance.)',
  );
  const wokenAt = performance.now();
  stage.watches.setFrozen(from.uid, false);
  await billing.wakeProgram(from.name);
  const refused = await log.until(/StaleToken/);
  stage.result(`${from.name}, ${seconds(performance.now() - wokenAt)} later: "${refused.replace(/^token \d+: /, '')}"`);
  await wakeSidecar(stage, billing, from);
  const refusals = await billing.sql<Refusal>('on', 'select token, mark, application from kilit.refusals');
  stage.check(
    refusals.some(
      ({ token, mark, application }) => token === from.token && mark === to.token && application === from.name,
    ),
    `the database has it in kilit.refusals: token ${from.token} of ${from.name}, when the newest seen was ${to.token}`,
  );
  const { right, lines } = await billing.check('on');
  stage.check(right, `the ledger is right: ${lines.at(-1)?.replace(/^ok +/, '')}`);
  return next;
}

async function unguarded(stage: Stage, billing: Billing): Promise<void> {
  await stage.say(
    'The same again with the guard off: the same program and lock, a plain transaction, another database whose ledger is ' +
      'not protected.',
  );
  await using late = await untilLate(stage, billing, 'off');
  const { next, log, customer } = late;
  const { from } = next;
  await stage.say(`Now ${from.name} wakes up, in the middle of its transaction.`);
  stage.watches.setFrozen(from.uid, false);
  await billing.wakeProgram(from.name);
  await log.until(new RegExp(`: charged customer ${customer} `));
  stage.result(`${from.name} charged customer ${customer}, with its old token ${from.token}: nothing stopped it.`);
  await wakeSidecar(stage, billing, from);
  const { right, lines } = await billing.check('off');
  const wrong = lines.filter((line) => line.startsWith('WRONG')).map((line) => line.replace(/^WRONG +/, ''));
  stage.check(
    !right && wrong.some((line) => line.includes(`customer ${customer} `) && line.includes('charged 2 times')),
    `the checker says that the ledger is wrong: ${wrong.join('; ')}`,
  );
}

/** Starts the program, pauses its Pod in the middle of a charge, and waits until another has charged everybody else. */
async function untilLate(stage: Stage, billing: Billing, guard: GuardMode): Promise<Late> {
  await using stack = new AsyncDisposableStack();
  const former = new Set(stage.watches.sight().pods.map((pod) => pod.metadata.uid));
  await billing.deploy(guard);
  const from = await stage.until('a holder that charges, and one that waits', (sight) => {
    const waiting = rowsOf(sight).some((row) => row.why.includes('in line'));
    const isNew = sight.pods.length === 2 && sight.pods.every((pod) => !former.has(pod.metadata.uid));
    return waiting && isNew ? settledHolder(sight) : undefined;
  });
  const log = stack.use(billing.follow(from.name));
  const { customer, at } = await billing.pauseInTheMiddle(guard, { pod: from.name, log });
  const handOver = { from, blow: 'the pause', at, apart: from.uid };
  stage.watches.setFrozen(from.uid, true);
  stage.result(
    `${from.name} (token ${from.token}) has charged ${customer - 1} customers and is about to charge customer ${customer}. ` +
      `Every process of its Pod is stopped, for longer than its lease of ${LEASE_SECONDS} s.`,
  );
  const next = await awaitNext(stage, handOver);
  {
    await using log = billing.follow(next.to.name);
    await log.until(/all customers are charged/);
    const sealed = log.lines().find((line) => line.includes('sealed'));
    const first =
      sealed?.includes('ended 1 ') === true ? 'sealed the ledger, which ended the open session of the other, and ' : '';
    stage.result(`${next.to.name} (token ${next.to.token}) ${first}charged customers ${customer} to 6.`);
  }
  const all = stack.move();
  return { next, log, customer, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Its sidecar sees that the lock is lost, and ends; so the kubelet restarts the Pod behind the gate. */
async function wakeSidecar(stage: Stage, billing: Billing, late: Holder): Promise<void> {
  await billing.wakeSidecar(late.name);
  await stage.until(`${late.name} to wait in line again`, (sight) =>
    rowsOf(sight).some((row) => row.pod === late.name && row.why.includes('in line')) ? true : undefined,
  );
}

/** The Pods of the acts before, which would take part. */
async function removeWorkers(stage: Stage): Promise<void> {
  const selector = Object.entries(MADE_BY_DEMO).map(([key, value]) => `${key}=${value}`);
  await deletePods(stage, ['-l', selector.join(',')]);
  await stage.until('the other programs to end', (sight) => (sight.pods.length === 0 ? true : undefined));
}
