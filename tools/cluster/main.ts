/** `npm run cluster`: see cli.ts for the command line. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { productDir } from './binaries/build.ts';
import { helm, kubernetes } from './binaries/go-modules.ts';
import { type Command, HELP, howToUse, parseCommand } from './cli.ts';
import { KILIT_IMAGE } from './constants.ts';
import { openCluster } from './index.ts';
import { downKind } from './kind.ts';
import { down } from './native/down.ts';
import { allClusters, readCluster } from './native/state.ts';
import { clusterDir } from './paths.ts';
import { status } from './status.ts';

const LOG_LINES = 100;
const startedAt = performance.now();

/** Progress goes to standard error: `kubeconfig` prints its result alone on standard output. */
const onProgress = (line: string): void => {
  const elapsed = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(4);
  console.error(`${elapsed} s  ${line}`);
};

async function main(command: Command): Promise<void> {
  switch (command.action) {
    case 'help':
      return console.log(HELP);
    case 'up': {
      const cluster = await openCluster({ ...command, onProgress });
      return console.log(`Cluster '${cluster.name}' is up. For kubectl and helm in this shell:\n${howToUse(cluster)}`);
    }
    case 'down':
      return end(command);
    case 'status':
      return console.log((await status()).join('\n'));
    case 'logs':
      return logs(command);
    case 'kubeconfig':
      return kubeconfig(command);
    case 'load-image': {
      const cluster = await openCluster({
        ...command,
        nodes: (await readCluster(command.name))?.nodes ?? command.nodes,
        onProgress,
      });
      return cluster.loadImage(...(command.rest.length > 0 ? command.rest : [KILIT_IMAGE]));
    }
  }
}

async function end(command: Command): Promise<void> {
  const names = command.all ? (await allClusters()).map((cluster) => cluster.name) : [command.name];
  for (const name of names) {
    if ((await readCluster(name))?.provider === 'kind') await downKind(name, onProgress);
    else await down(name, onProgress);
  }
}

async function logs(command: Command): Promise<void> {
  const { collect, name } = command;
  if (collect !== undefined) return (await openCluster({ ...command, onProgress })).collectLogs(collect);
  const dir = join(clusterDir(name), 'logs');
  const [program] = command.rest;
  if (program === undefined) {
    const files = await readdir(dir).catch(() => []);
    const names = files.map((file) => file.replace(/\.log$/, ''));
    return console.log(names.length === 0 ? `Cluster '${name}' has no logs.` : `${names.join('\n')}\nin ${dir}`);
  }
  const text = await readFile(join(dir, `${program}.log`), 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`Cluster '${name}' has no log of '${program}'. See: npm run cluster -- logs`);
  return console.log(text.trimEnd().split('\n').slice(-LOG_LINES).join('\n'));
}

async function kubeconfig({ name, env }: Command): Promise<void> {
  const record = await readCluster(name);
  if (record === undefined)
    throw new Error(`There is no cluster '${name}'. Bring it up: npm run cluster -- up --name ${name}`);
  const path = join(clusterDir(name), 'admin.kubeconfig');
  if (!env) return console.log(path);
  const folders =
    record.provider === 'kind' ? [] : [productDir(kubernetes(record.kubernetesVersion)), productDir(helm)];
  return console.log(`export KUBECONFIG='${path}'\nexport PATH="${[...folders, '$PATH'].join(':')}"`);
}

try {
  await main(parseCommand(process.argv.slice(2), process.env));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
