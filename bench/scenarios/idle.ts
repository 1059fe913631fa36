import { setTimeout as sleep } from 'node:timers/promises';
import { MINILM } from '#test/support/minilm.js';
import type { Bench, Measured, Scenario } from '../run/scenario.js';
import { median } from '../run/statistics.js';
import { Tally } from '../run/tally.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { closedPeak, openLoad, type Target } from '../serve/sustained.js';
import { workerMetrics } from '../serve/worker-metrics.js';

const STARVED = 'millrace_worker_session_starved_seconds_total';
const IDLE = 'millrace_worker_session_idle_seconds_total';
const SESSIONS = 'millrace_worker_sessions';
const OVERLOAD = 1.2;
/** More clients answer more, until there is nothing more to gain: that is the capacity. */
const CLIENTS = 256;
/** Sessions that idle more than this with nothing to do were not overloaded. */
const NO_OVERLOAD_SHARE = 0.1;
const MOST_SHARE = 0.02;
/** The backlog of an overload lies in the server, not in the generator. */
const CONNECTIONS = 4096;
/** What an overload may do to requests: refuse them, or leave them unanswered when it ends. */
const OVERLOADED = /^(429|504|unanswered|never sent)$/;

/** An open loop that lasts a little longer than what is measured in it. */
function overload(
  bench: Bench,
  target: Target,
  rate: number,
  seed: number,
): { measuring: Promise<void>; load: Promise<Measured> } {
  let onMeasuring = (): void => undefined;
  const measuring = new Promise<void>((resolve) => {
    onMeasuring = resolve;
  });
  const seconds = bench.options.seconds + 1;
  return {
    measuring,
    load: openLoad(bench, target, rate, { seed, connections: CONNECTIONS, seconds, onMeasuring }),
  };
}

export const idle: Scenario = {
  name: 'idle',
  summary: `share of time that a session had no batch while work was queued, at ${OVERLOAD}x capacity (2% / share)`,
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const target: Target = { url: predictUrl(served, MINILM), pids: served.pids, ...load.requests() };
    const tally = new Tally();
    const read = () => workerMetrics(served.workerUrl, MINILM, [STARVED, IDLE, SESSIONS]);
    for (let round = 0; round < bench.options.rounds; round++) {
      const peak = await closedPeak(bench, target, { clients: CLIENTS });
      tally.add('closed loop', peak);
      const loading = overload(bench, target, OVERLOAD * peak.requestsPerSecond, round);
      await Promise.race([loading.measuring, loading.load]);
      const before = await read();
      const began = performance.now();
      await sleep(bench.options.seconds * 1000);
      const after = await read();
      const sessionSeconds = ((performance.now() - began) / 1000) * (after[SESSIONS] ?? Number.NaN);
      tally.judge('overload', await loading.load, OVERLOADED);
      const share = (name: string) => ((after[name] ?? Number.NaN) - (before[name] ?? 0)) / sessionSeconds;
      tally.figure('overload', 'starvedShare', share(STARVED));
      tally.figure('overload', 'idleShare', share(IDLE));
      bench.say(`  starved ${(share(STARVED) * 100).toFixed(2)}% of the time`);
    }
    if (median(tally.values('overload', 'idleShare')) > NO_OVERLOAD_SHARE) {
      tally.fault('overload: there was too little work to tell: sessions idled because nothing waited');
    }
    const share = Math.max(1e-6, median(tally.values('overload', 'starvedShare')));
    return tally.outcome([{ name: `${MOST_SHARE} / share`, ratio: MOST_SHARE / share, bar: 1 }]);
  },
};
