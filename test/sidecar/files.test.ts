import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRunFiles } from '../../src/sidecar/files.ts';

let dir = '';
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'kilit-files-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const text = (name: string) => readFileSync(join(dir, name), 'utf8');
const permissions = (name: string) => statSync(join(dir, name)).mode & 0o777;

describe('a grant', () => {
  test('is written in the format of fileKeyRef, readable for all whatever the umask', () => {
    const umask = process.umask(0o077);
    try {
      createRunFiles(dir, 'gate').writeGrant(123n);
    } finally {
      process.umask(umask);
    }
    expect(text('env')).toBe("FENCING_TOKEN='123'\n");
    expect(text('token')).toBe('123');
    expect([permissions('env'), permissions('token')]).toEqual([0o644, 0o644]);
    expect(readdirSync(dir).toSorted()).toEqual(['env', 'token']);
  });

  test('keeps every digit above 2^53', () => {
    createRunFiles(dir, 'gate').writeGrant(9_007_199_254_740_993n);
    expect(text('env')).toBe("FENCING_TOKEN='9007199254740993'\n");
  });

  test('has no env file in standby mode', () => {
    createRunFiles(dir, 'standby').writeGrant(123n);
    expect(readdirSync(dir)).toEqual(['token']);
  });

  test('is removed, also when only a part of it or nothing is there', () => {
    const files = createRunFiles(dir, 'gate');
    files.writeGrant(123n);
    files.removeGrant();
    files.removeGrant();
    expect(readdirSync(dir)).toEqual([]);
    expect(files.hasGrant()).toBe(false);
  });

  test('leaves no env file behind when it cannot be written', () => {
    mkdirSync(join(dir, 'env'));
    expect(() => createRunFiles(dir, 'gate').writeGrant(123n)).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readdirSync(dir).toSorted()).toEqual(['env', 'token']);
    expect(statSync(join(dir, 'env')).isDirectory()).toBe(true);
  });

  test('is not said to be removed when it could not be', () => {
    mkdirSync(join(dir, 'env'));
    expect(() => createRunFiles(dir, 'gate').removeGrant()).toThrow(/EISDIR|EPERM/);
  });
});

describe('the epoch', () => {
  test('is found once', () => {
    const files = createRunFiles(dir, 'gate');
    files.writeEpoch('e');
    expect([files.consumeEpoch(), files.consumeEpoch()]).toEqual(['fresh', 'absent']);
  });
});

describe('a loss', () => {
  test('is counted, and its reason is one line', () => {
    const files = createRunFiles(dir, 'gate');
    files.recordLoss('DeadlinePassed: a\nb', 1000);
    files.recordLoss('HolderChanged: c', 1000);
    expect(text('reason')).toBe('HolderChanged: c\n');
    expect(files.readLosses()).toEqual({ count: 2 });
  });

  test('is the first after a garbled record', () => {
    writeFileSync(join(dir, 'losses'), '{"count":');
    const files = createRunFiles(dir, 'gate');
    files.recordLoss('Crashed', 0);
    expect(files.readLosses()).toEqual({ count: 1 });
  });
});
