/**
 * Catches SIGTERM and SIGINT from the first line that runs: `main.ts` imports this before everything else.
 *
 * A container's first process does not get a signal that it has no handler for, so one that comes before the handler
 * would be lost, and the sidecar would live until the kubelet kills it.
 */
let terminated = false;
let listener: (() => void) | undefined;

function terminate(): void {
  terminated = true;
  listener?.();
}

process.on('SIGTERM', terminate);
process.on('SIGINT', terminate);

/** Calls `listen` at each signal, and at once if one has come already. */
export function onTerminate(listen: () => void): void {
  listener = listen;
  if (terminated) listen();
}
