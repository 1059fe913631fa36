import type { LoadSpec } from '../load/messages.js';
import type { Bench, Measured } from '../run/scenario.js';
import { highestRate } from '../run/search.js';

export const LATENCY_LIMIT_MS = 100;
export const CLIENTS = 64;

/** Enough that an arrival waits for a connection only when the server is far behind. */
const OPEN_CONNECTIONS = 512;
const WARM_UP_SECONDS = 1;
const STEPS = 5;
/** Where the search begins and ends, as shares of the closed-loop peak. */
const LOW = 0.3;
const HIGH = 1.1;

export interface Target extends Pick<LoadSpec, 'url' | 'bodies' | 'itemsPerRequest' | 'check'> {
  pids?: Record<string, number>;
}

/** What a server answers at most: as many clients as it takes to keep it busy, each waiting for its answer. */
export async function closedPeak(
  bench: Bench,
  { pids, ...target }: Target,
  {
    seconds = bench.options.seconds,
    clients = CLIENTS,
    ...warmUp
  }: { seconds?: number; clients?: number; warmUpSeconds?: number } = {},
): Promise<Measured> {
  const loop = { kind: 'closed', connections: clients } as const;
  return await bench.load({ ...target, loop, seconds, ...warmUp }, pids);
}

export async function openLoad(
  bench: Bench,
  { pids, ...target }: Target,
  requestsPerSecond: number,
  options: { seed: number; connections?: number; seconds?: number; onMeasuring?: () => void },
): Promise<Measured> {
  const { seed, connections = OPEN_CONNECTIONS, seconds, onMeasuring } = options;
  return await bench.load(
    {
      ...target,
      loop: { kind: 'open', requestsPerSecond, connections, seed },
      warmUpSeconds: WARM_UP_SECONDS,
      ...(seconds === undefined ? {} : { seconds }),
    },
    pids,
    onMeasuring,
  );
}

export function holds({ failures, latencyMs, answered }: Measured): boolean {
  return answered > 0 && Object.keys(failures).length === 0 && latencyMs.p99 <= LATENCY_LIMIT_MS;
}

/** The highest open-loop rate whose p99 stays within the limit, found by trying. */
export async function sustainedRate(
  bench: Bench,
  target: Target,
  peak: number,
  seed: number,
  onTry: (rate: number, load: Measured) => void,
): Promise<number> {
  return await highestRate(peak * LOW, peak * HIGH, STEPS, async (rate) => {
    const load = await openLoad(bench, target, rate, { seed });
    onTry(rate, load);
    const held = holds(load);
    bench.say(
      `    ${rate.toFixed(0)} requests/s: p99 ${load.latencyMs.p99.toFixed(0)} ms${held ? '' : ' - too much'}`,
    );
    return held;
  });
}
