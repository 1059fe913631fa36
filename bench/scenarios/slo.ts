import { join } from 'node:path';
import { MINILM } from '#test/support/minilm.js';
import { type GraphPoint, writeGraph } from '../run/graph.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { median, pairedRatio } from '../run/statistics.js';
import { Tally } from '../run/tally.js';
import { rememberRate } from '../serve/found-rate.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { prepareMinilm } from '../serve/minilm.js';
import { Peers } from '../serve/peers.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import {
  CLIENTS,
  closedPeak,
  holds,
  LATENCY_LIMIT_MS,
  sustainedRate,
  type Target,
} from '../serve/sustained.js';

/** The same of the peers, once each. */
async function addPeers(
  bench: Bench,
  load: SentenceLoad,
  tally: Tally,
): Promise<Record<string, GraphPoint[]>> {
  const series: Record<string, GraphPoint[]> = {};
  const peers = await Peers.open(bench, await prepareMinilm(), load);
  for (const name of peers.names) {
    await peers.use(name, {}, async (peer) => {
      const peak = await closedPeak(bench, peer);
      tally.add(`${name} peak`, peak);
      const points: GraphPoint[] = [];
      const rate = await sustainedRate(bench, peer, peak.requestsPerSecond, 0, (tried, { latencyMs }) => {
        points.push({ x: tried, y: latencyMs.p99 });
      });
      series[`${name} p99`] = points;
      tally.figure(`${name} sustained`, 'itemsPerSecond', rate);
    });
  }
  return series;
}

export const slo: Scenario = {
  name: 'slo',
  summary: `highest open-loop rate with p99 within ${LATENCY_LIMIT_MS} ms against the closed-loop peak`,
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const target: Target = { url: predictUrl(served, MINILM), pids: served.pids, ...load.requests() };
    const tally = new Tally();
    const p50: GraphPoint[] = [];
    const p99: GraphPoint[] = [];
    for (let round = 0; round < bench.options.rounds; round++) {
      const peak = await closedPeak(bench, target);
      tally.add('peak', peak);
      bench.say(`  closed loop, ${CLIENTS} clients: ${peak.requestsPerSecond.toFixed(0)} requests/s`);
      const rate = await sustainedRate(bench, target, peak.requestsPerSecond, round, (tried, measured) => {
        p50.push({ x: tried, y: measured.latencyMs.p50 });
        p99.push({ x: tried, y: measured.latencyMs.p99 });
        // A rate that is too high may fail requests: that is what the search is for.
        tally.judge('open loop', measured, holds(measured) ? undefined : /./);
      });
      tally.figure('sustained', 'itemsPerSecond', rate);
      bench.say(`  sustained: ${rate.toFixed(0)} requests/s`);
    }
    const peers = bench.options.withPeers ? await addPeers(bench, load, tally) : {};
    if (!bench.options.withPeers) tally.note("--with-peers shows the peers' own beside it");
    const file = join(bench.options.outDir, 'slo.svg');
    await writeGraph(file, {
      title: `Latency at a fixed rate of arrivals, ${MINILM}`,
      xLabel: 'requests/s (Poisson arrivals)',
      yLabel: 'ms from arrival to answer',
      series: { p99, p50, ...peers },
      limit: { y: LATENCY_LIMIT_MS, name: `${LATENCY_LIMIT_MS} ms` },
      yMost: 4 * LATENCY_LIMIT_MS,
    });
    bench.say(`Graph: ${file}`);
    const sustained = tally.values('sustained', 'itemsPerSecond');
    await rememberRate(bench, median(sustained));
    const ratio = pairedRatio(sustained, tally.values('peak', 'itemsPerSecond'));
    return tally.outcome([{ name: 'of the closed-loop peak', ratio, bar: 0.75 }], {
      limitMs: LATENCY_LIMIT_MS,
    });
  },
};
