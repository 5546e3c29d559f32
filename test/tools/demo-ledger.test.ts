import { describe, expect, it } from 'vitest';
import { type Charge, faults } from '../../examples/paused-holder/ledger.ts';

const customers = [
  { id: 1, name: 'Ada' },
  { id: 2, name: 'Bela' },
];
const charge = (customer: number, token: bigint, writtenBy = 'a'): Charge => ({ customer, token, writtenBy });

describe('the ledger of the example', () => {
  it('is right when each customer was charged once, by whichever holder', () => {
    expect(faults(customers, [charge(1, 5n), charge(2, 9n, 'b')])).toEqual([]);
  });

  it('is wrong when a customer was not charged', () => {
    expect(faults(customers, [charge(1, 5n)])).toEqual(['customer 2 (Bela) was not charged']);
  });

  it('is wrong when a customer was charged twice, also with one token', () => {
    expect(faults(customers, [charge(1, 5n), charge(1, 5n), charge(2, 5n)])).toEqual([
      'customer 1 (Ada) was charged 2 times, with the tokens 5 and 5',
    ]);
  });

  it('is wrong when a late holder wrote, although each customer was charged once', () => {
    expect(faults(customers, [charge(2, 10n, 'b'), charge(1, 9n)])).toEqual([
      'a charged customer 1 with token 9 after 10 had charged',
    ]);
  });
});
