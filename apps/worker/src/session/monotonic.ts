import { hrtime } from 'node:process';

/** Milliseconds of the machine's monotonic clock: the same in every thread, as `performance.now()` is not. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
