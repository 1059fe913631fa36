import { join } from 'node:path';
import { MINILM } from '#test/support/minilm.js';
import { niceCeiling, writeGraph } from '../run/graph.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { median, type Part, pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { prepareMinilm } from '../serve/minilm.js';
import { sweepPeers } from '../serve/peer-sweep.js';
import { type PeerConfig, Peers } from '../serve/peers.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { CLIENTS, closedPeak } from '../serve/sustained.js';

const TRITON = 'pytriton';
const FIGURE = 'itemsPerSecond';

/** Throughput against latency, a point a side. */
async function drawSides(bench: Bench, tally: Tally, sides: readonly string[]): Promise<void> {
  const file = join(bench.options.outDir, 'peers.svg');
  const points = sides.map((side) => ({
    x: median(tally.values(side, FIGURE)),
    y: median(tally.values(side, 'p99Ms')),
  }));
  await writeGraph(file, {
    title: `${MINILM}, ${CLIENTS} clients, one sentence a request: the lower and further right, the better`,
    xLabel: 'sentences/s',
    yLabel: 'p99, ms',
    series: Object.fromEntries(sides.map((side, i) => [side, points.slice(i, i + 1)])),
    yMost: niceCeiling(Math.max(...points.map(({ y }) => y))),
  });
  bench.say(`Graph: ${file}`);
}

export const peers: Scenario = {
  name: 'peers',
  summary: 'against five other servers with the same file: as documented, and the best of a sweep of each',
  async run(bench) {
    const prepared = await prepareMinilm();
    const load = await SentenceLoad.prepare(bench);
    const there = await Peers.open(bench, prepared, load);
    const sweep = await sweepPeers(bench, there, prepared.modelSha256);
    const [best = '', ...rest] = Object.keys(sweep).sort(
      (a, b) => (sweep[b]?.itemsPerSecond ?? 0) - (sweep[a]?.itemsPerSecond ?? 0),
    );
    const swept = [best, ...(rest.includes(TRITON) ? [TRITON] : [])];

    const served = await serve(bench, { models: [MINILM] });
    const tally = new Tally();
    const measure = async (side: string, name: string, config: PeerConfig): Promise<void> => {
      tally.add(side, await there.use(name, config, (peer) => closedPeak(bench, peer)));
      bench.say(`  ${side}: ${tally.values(side, FIGURE).at(-1)?.toFixed(0)} sentences/s`);
    };
    await interleave(bench.options.rounds, [
      async () => {
        const target = { url: predictUrl(served, MINILM), pids: served.pids, ...load.requests() };
        tally.add('millrace', await closedPeak(bench, target));
        bench.say(`  millrace: ${tally.values('millrace', FIGURE).at(-1)?.toFixed(0)} sentences/s`);
      },
      ...there.names.map((name) => () => measure(name, name, {})),
      ...swept.map((name) => () => measure(`${name} swept`, name, sweep[name]?.config ?? {})),
    ]);

    const faster = (side: string): number =>
      pairedRatio(tally.values('millrace', FIGURE), tally.values(side, FIGURE));
    const sooner = (side: string): number =>
      pairedRatio(tally.values(side, 'p99Ms'), tally.values('millrace', 'p99Ms'));
    const all = [...there.names, ...swept.map((name) => `${name} swept`)];
    const parts: Part[] = [
      ...there.names.map((name) => ({ name: `against ${name}`, ratio: faster(name), bar: 2.75 })),
      { name: `against the best swept (${best})`, ratio: faster(`${best} swept`), bar: 1 },
      ...(swept.includes(TRITON)
        ? [{ name: 'against Triton swept', ratio: faster(`${TRITON} swept`), bar: 1.2 }]
        : []),
      ...all.map((side) => ({ name: `p99 of ${side} / p99`, ratio: sooner(side), bar: 1 })),
    ];
    await drawSides(bench, tally, ['millrace', ...all]);
    return tally.outcome(parts, {
      sweep,
      medianSentencesPerSecond: median(tally.values('millrace', FIGURE)),
    });
  },
};
