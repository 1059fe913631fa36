/**
 * Loaded into a process before its program (`--import`): each SIGUSR2 makes its wall clock jump, as one does
 * that is set by hand or by NTP after a long sleep. The monotonic clock goes on as ever.
 */
import { isMainThread } from 'node:worker_threads';

const HOUR_MS = 3_600_000;
const JUMPS_MS = [HOUR_MS, -HOUR_MS, 0];

if (isMainThread) {
  const RealDate = Date;
  let shiftMs = 0;
  let jumps = 0;
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      super(...((args.length === 0 ? [RealDate.now() + shiftMs] : args) as [number]));
    }
    static override now(): number {
      return RealDate.now() + shiftMs;
    }
  } as DateConstructor;
  process.on('SIGUSR2', () => {
    shiftMs = JUMPS_MS[jumps++ % JUMPS_MS.length] ?? 0;
  });
}
