import { MINILM } from '#test/support/minilm.js';
import type { Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';

const CLIENTS = 64;
const MANY = 16;
const FIGURE = 'itemsPerSecond';

export const servedVsRaw: Scenario = {
  name: 'served-vs-raw',
  summary: 'sentences/s over HTTP (64 clients) against the same model, planner and tokenizer in a plain loop',
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const tally = new Tally();
    const side = async (name: string, size: number): Promise<void> => {
      const loop = { kind: 'closed', connections: CLIENTS } as const;
      const spec = { url: predictUrl(served, MINILM), loop, ...load.requests(size) };
      const measured = await bench.load(spec, served.pids);
      tally.add(name, measured);
      bench.say(`  ${name}: ${measured.itemsPerSecond.toFixed(0)} sentences/s`);
    };
    await interleave(bench.options.rounds, [
      async () => {
        const { result: rate, othersShare } = await bench.watch(() =>
          load.raw.loop(load.sentences, bench.options.seconds),
        );
        tally.watched(othersShare);
        tally.figure('raw', FIGURE, rate);
        bench.say(`  raw: ${rate.toFixed(0)} sentences/s`);
      },
      () => side('served', 1),
      () => side('served-16', MANY),
    ]);
    const ratio = (name: string) => pairedRatio(tally.values(name, FIGURE), tally.values('raw', FIGURE));
    return tally.outcome(
      [
        { name: 'one sentence a request', ratio: ratio('served'), bar: 0.7 },
        { name: `${MANY} sentences a request`, ratio: ratio('served-16'), bar: 0.9 },
      ],
      { clients: CLIENTS, sessionThreads: load.raw.threads },
    );
  },
};
