/** What a ledger of charges must keep, and where it does not. Pure. */

export interface Customer {
  readonly id: number;
  readonly name: string;
}

export interface Charge {
  readonly customer: number;
  readonly token: bigint;
  readonly writtenBy: string;
}

/**
 * Everything that is wrong, as sentences: each customer is charged exactly once, and no token comes after a greater one.
 *
 * `charges` stand in the order in which they were committed.
 */
export function faults(customers: readonly Customer[], charges: readonly Charge[]): readonly string[] {
  const wrong = customers.flatMap(({ id, name }) => {
    const tokens = charges.filter(({ customer }) => customer === id).map(({ token }) => token);
    if (tokens.length === 1) return [];
    if (tokens.length === 0) return [`customer ${id} (${name}) was not charged`];
    return [`customer ${id} (${name}) was charged ${tokens.length} times, with the tokens ${tokens.join(' and ')}`];
  });
  let greatest = 0n;
  for (const { customer, token, writtenBy } of charges) {
    if (token >= greatest) greatest = token;
    else wrong.push(`${writtenBy} charged customer ${customer} with token ${token} after ${greatest} had charged`);
  }
  return wrong;
}
