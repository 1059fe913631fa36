import type { Scenario } from '../run/scenario.js';
import { median, pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { prepareMinilm } from '../serve/minilm.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { writeVariants } from '../serve/variants.js';

const CLIENTS = 64;
const FIGURE = 'itemsPerSecond';

/** What a manifest can choose between; padding fills its batch first, as servers that only pad do. */
const PLANNERS = {
  planned: { planner: 'cost' },
  padded: { planner: 'padding', closeEarly: 'never' },
  'one-by-one': { maxItems: 1 },
  'sorted-8': { planner: 'sorted', sortedItems: 8 },
} as const;

export const plannerVsPadding: Scenario = {
  name: 'planner-vs-padding',
  summary: 'the planner against fill-and-pad, one by one and sorted groups of 8; mixed lengths, whole path',
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const variants = Object.fromEntries(
      Object.entries(PLANNERS).map(([name, batching]) => [name, { batching }]),
    );
    const modelsDir = await writeVariants(bench.dataDir, await prepareMinilm(), variants);
    const models = Object.keys(PLANNERS);
    const served = await serve(bench, { models, env: { MILLRACE_MODELS_DIR: modelsDir } });
    const tally = new Tally();
    await interleave(
      bench.options.rounds,
      models.map((model) => async () => {
        const loop = { kind: 'closed', connections: CLIENTS } as const;
        const spec = { url: predictUrl(served, model), loop, ...load.requests() };
        const measured = await bench.load(spec, served.pids);
        tally.add(model, measured);
        bench.say(`  ${model}: ${measured.itemsPerSecond.toFixed(0)} sentences/s`);
      }),
    );
    const rate = (model: string) => tally.values(model, FIGURE);
    const p99 = (model: string) => tally.values(model, 'p99Ms');
    const better = median(rate('one-by-one')) >= median(rate('sorted-8')) ? 'one-by-one' : 'sorted-8';
    return tally.outcome(
      [
        { name: 'against fill-and-pad', ratio: pairedRatio(rate('planned'), rate('padded')), bar: 2 },
        { name: `against ${better}`, ratio: pairedRatio(rate('planned'), rate(better)), bar: 1.1 },
        { name: 'p99 of fill-and-pad / p99', ratio: pairedRatio(p99('padded'), p99('planned')), bar: 1 },
        { name: `p99 of ${better} / p99`, ratio: pairedRatio(p99(better), p99('planned')), bar: 1 },
      ],
      { clients: CLIENTS, sessionThreads: load.raw.threads },
    );
  },
};
