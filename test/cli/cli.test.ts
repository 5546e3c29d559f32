/** The command line as a user runs it. */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { installSql, uninstallSql } from '../../src/guards/postgres/index.ts';
import { repositoryRoot } from '../../tools/cluster/paths.ts';
import { inProcess } from './support/in-process.ts';

const MAIN = join(repositoryRoot, 'src/cli/main.ts');

function kilit(...words: string[]): { code: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...words], { encoding: 'utf8' });
  return { code: status, stdout, stderr };
}

describe('kilit', () => {
  test('prints the SQL of the guard and nothing else', () => {
    expect(kilit('guard', 'postgres', 'sql')).toEqual({ code: 0, stdout: installSql(), stderr: '' });
    expect(kilit('guard', 'postgres', 'uninstall')).toEqual({ code: 0, stdout: uninstallSql(), stderr: '' });
    expect(installSql()).toContain('create or replace function kilit.enter(resource text, token text)');
  });

  test.each([[], ['guard'], ['guard', 'postgres'], ['guard', 'postgres', 'sql'], ['guard', 'postgres', 'uninstall']])(
    'explains itself with examples: %s %s %s',
    (...words: string[]) => {
      const { code, stdout, stderr } = kilit(...words, '--help');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain(`Usage: ${['kilit', ...words].join(' ')}`);
      expect(stdout).toMatch(/Examples\n {2}(npx )?kilit /);
    },
  );

  test.each(['list', 'describe', 'break', 'handover', 'base show', 'base raise', 'doctor'])(
    'explains %s with examples and every option',
    async (line) => {
      const { code, stdout, stderr } = await inProcess([...line.split(' '), '--help'], {});
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(new RegExp(`\\nUsage: kilit ${line}[ \\n]`));
      expect(stdout).toMatch(new RegExp(`\\nExamples\\n {2}kilit ${line}`));
      expect(stdout).toMatch(/\n {6}--kubeconfig FILE +credentials/);
    },
  );

  test('shows the help of a group that is called alone', async () => {
    const ran = (...words: string[]) => inProcess(words, {});
    expect(await ran()).toEqual(await ran('--help'));
    expect(await ran('guard', 'postgres')).toEqual(await ran('guard', 'postgres', '-h'));
    expect(await ran('guard', 'postgres')).toEqual(await ran('help', 'guard', 'postgres'));
    expect((await ran('guard', 'postgres')).stdout).toContain('Usage: kilit guard postgres COMMAND');
  });

  test.each([
    [['gard'], "'kilit gard' is no command. Did you mean 'kilit guard'? See: kilit --help\n"],
    [['guard', 'mysql'], "'kilit guard mysql' is no command. See: kilit guard --help\n"],
    [['constructor'], "'kilit constructor' is no command. See: kilit --help\n"],
    [
      ['guard', 'postgres', 'sql', '--force'],
      "'kilit guard postgres sql' takes no argument '--force'. See: kilit guard postgres sql --help\n",
    ],
  ])('answers %j with what is wrong and where help is', (words, stderr) => {
    expect(kilit(...words)).toEqual({ code: 2, stdout: '', stderr });
  });

  test('says its version', () => {
    expect(kilit('--version')).toEqual({ code: 0, stdout: 'kilit 0.1.0\n', stderr: '' });
  });

  test('does not mind that its reader goes away', async () => {
    const stderr = await new Promise<string>((resolve) => {
      execFile(
        'sh',
        ['-c', `"${process.execPath}" "${MAIN}" guard postgres sql | head -1`],
        (_error, _stdout, stderr) => resolve(stderr),
      );
    });
    expect(stderr).toBe('');
  });
});
