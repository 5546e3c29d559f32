import { writeSync } from 'node:fs';

export type LogFields = Readonly<Record<string, unknown>>;

/** One JSON line per call, in the shape that pino writes; the message is constant and in the past tense. */
export interface Log {
  /** State changes. */
  info(fields: LogFields, msg: string): void;
  /** Degraded within its limits. */
  warn(fields: LogFields, msg: string): void;
  /** A person must act. */
  error(fields: LogFields, msg: string): void;
}

const LEVELS = { info: 30, warn: 40, error: 50 } as const;

/** pino itself would cost more memory than the rest of the sidecar. */
export function createLog(bindings: LogFields = {}, write: (line: string) => void = writeLine): Log {
  const at = (level: keyof typeof LEVELS) => (fields: LogFields, msg: string) =>
    write(`${JSON.stringify({ level: LEVELS[level], time: Date.now(), ...bindings, ...fields, msg }, serialize)}\n`);
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

function serialize(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value instanceof Error) return { type: value.name, message: value.message, stack: value.stack };
  return value;
}

/** Straight to the file descriptor: `process.stdout` would cost memory, and lines must be out before the exit. */
function writeLine(line: string): void {
  try {
    writeSync(1, line);
  } catch {
    // A log that cannot be written (full or closed pipe) must not end a grant.
  }
}
