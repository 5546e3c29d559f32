import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clusterLayout } from '../../tools/cluster/native/layout.ts';
import { mountsBelow, parseStat } from '../../tools/cluster/native/proc.ts';
import { isSameProcess, type ProcessRecord, Program } from '../../tools/cluster/native/program.ts';

const record: ProcessRecord = { pid: 42, startTicks: '1000', bootId: 'boot-a', argv: ['etcd'] };
const running = { bootId: 'boot-a', stat: { state: 'S', startTicks: '1000' } };

describe('a recorded process', () => {
  it('is the same when PID, start time and boot agree', () => {
    expect(isSameProcess(record, running)).toBe(true);
  });

  it('is the same while it is paused', () => {
    expect(isSameProcess(record, { ...running, stat: { state: 'T', startTicks: '1000' } })).toBe(true);
  });

  it.each([
    { why: 'the PID is free', now: { bootId: 'boot-a', stat: undefined } },
    { why: 'another process has the PID', now: { bootId: 'boot-a', stat: { state: 'S', startTicks: '1001' } } },
    { why: 'the machine was restarted', now: { ...running, bootId: 'boot-b' } },
    { why: 'it is a zombie', now: { bootId: 'boot-a', stat: { state: 'Z', startTicks: '1000' } } },
  ])('is gone when $why', ({ now }) => {
    expect(isSameProcess(record, now)).toBe(false);
  });
});

describe('/proc/<pid>/stat', () => {
  it('is read when the command holds spaces and parentheses', () => {
    const after = ['S', ...Array.from({ length: 18 }, () => '0'), '777', '0'];
    expect(parseStat(`12 (a) b (c) ${after.join(' ')}`)).toEqual({ state: 'S', startTicks: '777' });
  });

  it('is refused when it is cut short', () => {
    expect(parseStat('12 (a) S 1')).toBeUndefined();
  });
});

describe('mounts below a folder', () => {
  const mountinfo = [
    '1 0 8:1 / / rw - ext4 /dev/vda rw',
    '2 1 8:1 / /state/dev/node1/a rw - tmpfs tmpfs rw',
    '3 2 8:1 / /state/dev/node1/a/with\\040space rw - tmpfs tmpfs rw',
    '4 1 8:1 / /state/dev2/x rw - tmpfs tmpfs rw',
    '',
  ].join('\n');

  it('come deepest first, with their escapes read', () => {
    expect(mountsBelow(mountinfo, '/state/dev')).toEqual(['/state/dev/node1/a/with space', '/state/dev/node1/a']);
  });

  it('do not include a folder whose name only begins alike', () => {
    expect(mountsBelow(mountinfo, '/state/dev')).not.toContain('/state/dev2/x');
  });
});

describe.runIf(process.platform === 'linux')('a program', () => {
  let dir = '';
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kilit-program-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const sleeper = (): Program =>
    new Program({
      cluster: clusterLayout({ name: 't', index: 0, dir }),
      name: 'sleeper',
      command: ['/bin/sleep', `1${process.pid}`],
    });

  it('is started once, paused, resumed and ended', async () => {
    const program = sleeper();
    await program.start();
    const pid = await program.pid();
    await program.start();
    expect(await program.pid()).toBe(pid);
    await program.pause();
    await program.resume();
    await program.stop();
    expect(await program.isRunning()).toBe(false);
  });

  it('ends when it is stopped while paused', async () => {
    const program = sleeper();
    await program.start();
    await program.pause();
    await program.stop();
    expect(await program.isRunning()).toBe(false);
  });

  it('is found by its arguments when the harness died before recording it', async () => {
    const orphan = spawn('/bin/sleep', [`1${process.pid}`]);
    try {
      const program = sleeper();
      expect(await program.pid()).toBe(orphan.pid);
      expect(await program.recordedPid()).toBe(orphan.pid);
    } finally {
      orphan.kill('SIGKILL');
    }
  });

  it('is not confused by the record of another boot', async () => {
    const program = sleeper();
    await program.start();
    const pid = await program.pid();
    const file = join(dir, 'processes', 'sleeper.json');
    await writeFile(file, JSON.stringify({ pid: process.pid, startTicks: '1', bootId: 'another', argv: [] }));
    expect(await program.recordedPid()).toBeUndefined();
    expect(await program.pid()).toBe(pid);
    await program.kill();
    expect(await program.isRunning()).toBe(false);
  });

  it('shows the end of its log when it ends at once', async () => {
    const program = new Program({
      cluster: clusterLayout({ name: 't', index: 0, dir }),
      name: 'broken',
      command: ['/bin/sh', '-c', 'echo no such flag >&2; exit 1'],
      isReady: async () => false,
    });
    await expect(program.start()).rejects.toThrow(/broken ended at once[\s\S]*no such flag/);
  });
});
