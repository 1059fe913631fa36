import type { LoadSpec } from '../load/messages.js';
import type { Bench, Measured } from '../run/scenario.js';
import { highestRate } from '../run/search.js';
import { rememberedRate } from './found-rate.js';

export const LATENCY_LIMIT_MS = 100;
export const CLIENTS = 64;

/** Enough that an arrival waits for a connection only when the server is far behind. */
const OPEN_CONNECTIONS = 512;
const WARM_UP_SECONDS = 1;
const STEPS = 5;
/** Each try of a search that is not the scenario itself, in seconds. */
const SEARCH_SECONDS = 10;
/** Where the search begins and ends, as shares of the closed-loop peak. */
const LOW = 0.3;
const HIGH = 1.1;

export interface Target
  extends Pick<
    LoadSpec,
    'url' | 'otherUrls' | 'bodies' | 'wire' | 'itemsPerRequest' | 'check' | 'deadlineMs'
  > {
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
  options: {
    seed: number;
    connections?: number;
    warmUpSeconds?: number;
    seconds?: number;
    onMeasuring?: () => void;
  },
): Promise<Measured> {
  const {
    seed,
    connections = OPEN_CONNECTIONS,
    warmUpSeconds = WARM_UP_SECONDS,
    seconds,
    onMeasuring,
  } = options;
  return await bench.load(
    {
      ...target,
      loop: { kind: 'open', requestsPerSecond, connections, seed },
      warmUpSeconds,
      ...(seconds === undefined ? {} : { seconds }),
    },
    pids,
    onMeasuring,
  );
}

export function holds({ failures, latencyMs, answered }: Measured): boolean {
  return answered > 0 && Object.keys(failures).length === 0 && latencyMs.p99 <= LATENCY_LIMIT_MS;
}

/** The rate that can be sustained: as `slo` found it on this machine, or else looked for now. */
export async function knownRate(bench: Bench, target: Target): Promise<number> {
  const known = await rememberedRate(bench);
  if (known) return known;
  bench.say('slo has not been run on this machine: looking for the rate that can be sustained...');
  const seconds = Math.min(SEARCH_SECONDS, bench.options.seconds);
  const peak = await closedPeak(bench, target, { seconds });
  return await sustainedRate(bench, target, peak.requestsPerSecond, 0, () => undefined, seconds);
}

/** The highest open-loop rate whose p99 stays within the limit, found by trying. */
export async function sustainedRate(
  bench: Bench,
  target: Target,
  peak: number,
  seed: number,
  onTry: (rate: number, load: Measured) => void,
  seconds = bench.options.seconds,
): Promise<number> {
  return await highestRate(peak * LOW, peak * HIGH, STEPS, async (rate) => {
    const load = await openLoad(bench, target, rate, { seed, seconds });
    onTry(rate, load);
    const held = holds(load);
    bench.say(
      `    ${rate.toFixed(0)} requests/s: p99 ${load.latencyMs.p99.toFixed(0)} ms${held ? '' : ' - too much'}`,
    );
    return held;
  });
}
