import { MINILM } from '#test/support/minilm.js';
import type { Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';

/** The whole path may take so many times what tokenizer and run take in process. */
const MOST_TIMES = 3;

export const lone: Scenario = {
  name: 'lone',
  summary: 'p50 of one client over the whole path against tokenizer and run in process (3 / times as long)',
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const tally = new Tally();
    await interleave(bench.options.rounds, [
      async () => {
        const { result, othersShare } = await bench.watch(() =>
          load.raw.lone(load.sentences, bench.options.seconds),
        );
        tally.watched(othersShare);
        const { p50Ms, p99Ms } = result;
        tally.figure('raw', 'p50Ms', p50Ms);
        tally.figure('raw', 'p99Ms', p99Ms);
        bench.say(`  raw: p50 ${p50Ms.toFixed(2)} ms`);
      },
      async () => {
        const loop = { kind: 'closed', connections: 1 } as const;
        const spec = { url: predictUrl(served, MINILM), loop, ...load.requests() };
        const measured = await bench.load(spec, served.pids);
        tally.add('served', measured);
        bench.say(`  served: p50 ${measured.latencyMs.p50.toFixed(2)} ms`);
      },
    ]);
    const times = pairedRatio(tally.values('served', 'p50Ms'), tally.values('raw', 'p50Ms'));
    return tally.outcome([{ name: `${MOST_TIMES} / times`, ratio: MOST_TIMES / times, bar: 1 }], { times });
  },
};
