/** `npm run demo`: see cli.ts for the command line. Ends the cluster, whatever happens, unless it failed or is kept. */
import { spawnSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { whyNoExample } from '../cluster/images/example.ts';
import type { Cluster } from '../cluster/index.ts';
import { repositoryRoot } from '../cluster/paths.ts';
import { sleep } from '../cluster/progress.ts';
import { DEFAULT_NAME, type DemoOptions, HELP, parseDemo } from './cli.ts';
import { playDemo } from './demo.ts';
import { outro, summary } from './outro.ts';
import { liveScreen, plainScreen, type Screen } from './screen.ts';

const EXIT = { failed: 1, usage: 2, interrupted: 130 } as const;
const SIGNAL_MILLISECONDS = 200;
const LOGS = join(repositoryRoot, '.tmp', 'demo-logs');

const startedAt = performance.now();
const elapsed = (): string => `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s`;

class Interrupted extends Error {}

async function main(options: DemoOptions): Promise<number> {
  // A terminal that is closed must not keep the cluster from being ended.
  process.stdout.on('error', () => {});
  const screen = options.plain ? plainScreen(process.stdout, elapsed) : liveScreen(process.stdout, process.env);
  const signal = interruptible(screen);
  let cluster: Cluster | undefined;
  const opened = (open: Cluster): void => {
    cluster = open;
  };
  const bold = (text: string): string => screen.paint('bold', text);
  try {
    const shown = await playDemo({ ...options, screen, signal, elapsed, opened });
    screen.print('', bold(`All acts showed what they claim (${elapsed().trim()})`), ...summary(shown));
    if (!options.keep) await cluster?.down();
    screen.show(undefined);
    screen.print(
      '',
      ...outro({
        name: options.name,
        kept: options.keep,
        defaultName: DEFAULT_NAME,
        billing: whyNoExample() === undefined,
      }),
    );
    return 0;
  } catch (error) {
    screen.show(undefined);
    // Ctrl-C ends kubectl too: its failure may be heard of before the signal.
    await sleep(SIGNAL_MILLISECONDS);
    return signal.aborted ? interrupted({ screen, options }) : failed({ screen, options, cluster, error });
  }
}

/** By the command, since there may be half a cluster only. */
function interrupted({ screen, options }: { readonly screen: Screen; readonly options: DemoOptions }): number {
  const args = [join(repositoryRoot, 'tools', 'cluster', 'main.ts'), 'down', '--name', options.name];
  if (options.keep) screen.print(`The cluster is left up. End it: npm run cluster -- down --name ${options.name}`);
  else spawnSync(process.execPath, args, { stdio: 'inherit' });
  return EXIT.interrupted;
}

/** The first Ctrl-C ends the demo in order, the second at once. */
function interruptible(screen: Screen): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(EXIT.interrupted);
      screen.print('', 'Stopping after the present step; once more ends at once and cleans nothing up.');
      stop.abort(new Interrupted(name));
    });
  }
  return stop.signal;
}

async function failed(at: {
  readonly screen: Screen;
  readonly options: DemoOptions;
  readonly cluster: Cluster | undefined;
  readonly error: unknown;
}): Promise<number> {
  const { screen, options, cluster, error } = at;
  const { name } = options;
  screen.print(
    '',
    screen.paint('red', `The demo failed: ${error instanceof Error ? error.message : String(error)}`),
    '',
  );
  const collected = await cluster?.collectLogs(LOGS).then(
    () => true,
    (err: unknown) => screen.print(`The logs could not be collected: ${String(err)}`),
  );
  if (collected === true)
    screen.print(`Logs of every component and Pod, and all objects: ${relative(process.cwd(), LOGS)}`);
  screen.print(
    `The cluster is left as it is. Its programs' logs:  npm run cluster -- logs --name ${name}`,
    `When done:                                         npm run cluster -- down --name ${name}`,
  );
  return EXIT.failed;
}

function options(): DemoOptions | undefined {
  try {
    return parseDemo(process.argv.slice(2), { env: process.env, isTerminal: process.stdout.isTTY });
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

const parsed = options();
if (parsed === undefined) process.exitCode = EXIT.usage;
else if (parsed.help) console.log(HELP);
else process.exit(await main(parsed));
