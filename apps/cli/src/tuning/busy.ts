import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const WATCH_MS = 500;
/** From here on what is measured depends on how the system shares the cores out between programs. */
const BUSY = 0.2;

/** Share of the machine's cores, 0 to 1, that others use while we do nothing. */
export async function busyShare(): Promise<number> {
  const before = cpuTimes();
  await sleep(WATCH_MS);
  const after = cpuTimes();
  const total = after.total - before.total;
  return total > 0 ? 1 - (after.idle - before.idle) / total : 0;
}

/** What to tell who measures on a machine that also does something else; undefined when it is at rest. */
export function busyWarning(share: number): string | undefined {
  if (share <= BUSY) return undefined;
  return (
    `WARNING: other programs use ${Math.round(share * 100)}% of this machine. What is measured now need not ` +
    'hold when it is at rest: end them and run this again.'
  );
}

function cpuTimes(): { idle: number; total: number } {
  let idle = 0;
  let total = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.idle + times.user + times.nice + times.sys + times.irq;
  }
  return { idle, total };
}
