/** Calls `fire` once, after `ms` milliseconds or later. Returns what cancels it. */
export type SetTimer = (ms: number, fire: () => void) => () => void;

/** The timers of this machine. */
export const setTimer: SetTimer = (ms, fire) => {
  const timer = setTimeout(fire, ms);
  return () => clearTimeout(timer);
};

/** Resolves after `ms` milliseconds, or as soon as `signal` aborts. */
export function sleep(setTimer: SetTimer, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = setTimer(ms, wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}
