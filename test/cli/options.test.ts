import { describe, expect, test } from 'vitest';
import { type Input, type Option, readInput } from '../../src/cli/options.ts';

const OPTIONS: readonly Option[] = [
  { name: 'namespace', short: 'n', value: 'NS', summary: '' },
  { name: 'output', short: 'o', value: 'FORMAT', choices: ['json', 'yaml'], summary: '' },
  { name: 'mark', value: 'RESOURCE=TOKEN', summary: '' },
  { name: 'yes', short: 'y', summary: '' },
];
const TAKES = { operands: ['LOCK'], options: OPTIONS };

describe('readInput', () => {
  test.each([
    ['-n shop billing', { namespace: ['shop'] }],
    ['billing -nshop', { namespace: ['shop'] }],
    ['billing --namespace=shop', { namespace: ['shop'] }],
    ['billing --namespace shop --yes', { namespace: ['shop'], yes: [''] }],
    ['billing -y -o json', { yes: [''], output: ['json'] }],
    ['--mark shop/a=1 --mark shop/b=2 billing', { mark: ['shop/a=1', 'shop/b=2'] }],
    ['-- billing', {}],
  ])('reads %s', (line, options) => {
    const { operands, options: given } = readInput(TAKES, line.split(' ')) as Input;
    expect({ operands, options: Object.fromEntries(given) }).toEqual({ operands: ['billing'], options });
  });

  test.each([
    ['', 'needs LOCK.'],
    ['billing orders', "takes no argument 'orders'."],
    ['billing --namspace shop', "has no option '--namspace'. Did you mean '--namespace'?"],
    ['billing -x', "has no option '-x'."],
    ['billing --constructor', "has no option '--constructor'."],
    ['billing -n', "needs NS after '-n'."],
    ['billing -n -y', "needs NS after '-n'."],
    ['billing --namespace=', "needs NS after '--namespace'."],
    ['billing --yes=no', "takes no value for '--yes'."],
    ['billing -o xml', "takes json, yaml for '-o', not 'xml'."],
  ])('refuses %s', (line, fault) => {
    expect(readInput(TAKES, line === '' ? [] : line.split(' '))).toEqual({ fault });
  });

  test('wants what is required, and lets an operand in brackets be absent', () => {
    const reason: Option = { name: 'reason', value: 'TEXT', required: true, summary: '' };
    expect(readInput({ operands: ['LOCK'], options: [reason] }, ['a'])).toEqual({ fault: 'needs --reason TEXT.' });
    expect(readInput({ operands: ['[TO]'] }, [])).toEqual({ operands: [], options: new Map() });
  });
});
