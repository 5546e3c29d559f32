import type { Io } from './io.ts';

/** Prints data for programs, as JSON or YAML. */
export async function printData(io: Io, format: 'json' | 'yaml', data: unknown): Promise<void> {
  if (format === 'json') {
    io.out(`${JSON.stringify(data, null, 2)}\n`);
    return;
  }
  const { stringify } = await import('yaml');
  io.out(stringify(data));
}
