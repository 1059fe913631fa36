import { MINILM } from '#test/support/minilm.js';
import type { Scenario } from '../run/scenario.js';
import { median } from '../run/statistics.js';
import { Tally } from '../run/tally.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { knownRate, LATENCY_LIMIT_MS, openLoad, type Target } from '../serve/sustained.js';

const CONNECTIONS = 5000;
/** Of the rate that can be sustained. */
const SHARE = 0.8;

export const connections: Scenario = {
  name: 'connections',
  summary: `p99 with ${CONNECTIONS} open connections at ${SHARE * 100}% of the rate found by slo (limit / p99)`,
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const target: Target = { url: predictUrl(served, MINILM), pids: served.pids, ...load.requests() };
    const rate = SHARE * (await knownRate(bench, target));
    const tally = new Tally();
    for (let round = 0; round < bench.options.rounds; round++) {
      const measured = await openLoad(bench, target, rate, { seed: round, connections: CONNECTIONS });
      tally.add('served', measured);
      bench.say(`  ${rate.toFixed(0)} requests/s: p99 ${measured.latencyMs.p99.toFixed(0)} ms`);
    }
    const p99 = median(tally.values('served', 'p99Ms'));
    return tally.outcome([{ name: 'limit / p99', ratio: LATENCY_LIMIT_MS / p99, bar: 1 }], {
      connections: CONNECTIONS,
      requestsPerSecond: rate,
    });
  },
};
