import { readFile } from 'node:fs/promises';
import { TextTokenizer } from '#worker/tasks/tokenizing.js';
import { makeTexts, vocabularyOf } from '../load/sentences.js';
import type { Scenario } from '../run/scenario.js';
import { median, pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { tinyEncoder } from '../serve/made-models.js';
import { predictUrl, serve } from '../serve/millrace.js';
import { MODEL_CACHE, prepareMinilm } from '../serve/minilm.js';
import { writeVariants } from '../serve/variants.js';

const BATCH = 32;
const TOKENS = 1500;
/** Requests of a whole batch each: one runs, one is prepared, and others wait. */
const CLIENTS = 6;
const REQUESTS = 8;
/** The tokenizer is warm after so many batches, and timed over as many more. */
const TIMED = 7;
/** A mean over other tokens differs by far more, relative to ids of five digits. */
const TOLERANCE = 0.01;

const SIDES = { on: true, off: false };

export const prefetch: Scenario = {
  name: 'prefetch',
  summary:
    'preparing the next batch while one runs, on against off: long texts, simulated device as slow as they',
  async run(bench) {
    const prepared = await prepareMinilm();
    const tokenizerFile = prepared.files['tokenizer.json'] ?? '';
    const texts = makeTexts(await vocabularyOf(tokenizerFile), BATCH * REQUESTS, TOKENS);
    const tokenizer = new TextTokenizer(JSON.parse(await readFile(tokenizerFile, 'utf8')));
    const prepareMs = timeOf(tokenizer, texts.slice(0, BATCH));
    const simulate = { runMs: Math.round(prepareMs * 10) / 10, itemMs: 0 };
    bench.say(`Preparing ${BATCH} texts of ${TOKENS} tokens takes ${prepareMs.toFixed(1)} ms; a run of the`);
    bench.say(`SIMULATED device takes as long: ${JSON.stringify(simulate)}`);
    const modelsDir = await writeVariants(
      bench.dataDir,
      { ...prepared, modelFile: await tinyEncoder(bench) },
      Object.fromEntries(
        Object.entries(SIDES).map(([side, on]) => [
          `prefetch-${side}`,
          {
            simulate,
            text: { tokenizer: 'tokenizer.json', maxTokens: 2 * TOKENS },
            embedding: { dimensions: 1 },
            session: { threads: 1 },
            batching: { maxItems: BATCH, maxCost: BATCH * 2 * TOKENS, prefetch: on },
          },
        ]),
      ),
    );
    const models = Object.keys(SIDES).map((side) => `prefetch-${side}`);
    const env = {
      MILLRACE_MODELS_DIR: modelsDir,
      MILLRACE_CACHE_DIR: MODEL_CACHE,
      MILLRACE_ALLOW_SIMULATED: 'true',
    };
    const served = await serve(bench, { models, env });
    const expected = Object.fromEntries(
      Array.from({ length: REQUESTS }, (_, i) => [
        i,
        batchOf(texts, i).map((text) => [meanId(tokenizer, text)]),
      ]),
    );
    const requests = {
      bodies: Array.from({ length: REQUESTS }, (_, i) => JSON.stringify({ inputs: batchOf(texts, i) })),
      itemsPerRequest: BATCH,
      check: { path: ['outputs'], expected, tolerance: TOLERANCE },
    };
    const tally = new Tally();
    tally.note(`both sides ran on a simulated device: ${JSON.stringify(simulate)}`);
    await interleave(
      bench.options.rounds,
      models.map((model) => async () => {
        const loop = { kind: 'closed', connections: CLIENTS } as const;
        const spec = { url: predictUrl(served, model), loop, ...requests };
        const measured = await bench.load(spec, served.pids);
        tally.add(model, measured);
        bench.say(`  ${model}: ${measured.itemsPerSecond.toFixed(0)} texts/s`);
      }),
    );
    const [on, off] = models.map((model) => tally.values(model, 'itemsPerSecond'));
    // (P + R) / max(P, R) with P equal to R.
    const ideal = (prepareMs + simulate.runMs) / Math.max(prepareMs, simulate.runMs);
    const ratio = pairedRatio(on ?? [], off ?? []) / ideal;
    return tally.outcome(
      [{ name: `of the ${ideal.toFixed(2)} that overlapping can give`, ratio, bar: 0.8 }],
      { simulate, prepareMs },
    );
  },
};

const batchOf = (texts: readonly string[], i: number): string[] => texts.slice(i * BATCH, (i + 1) * BATCH);

/** Milliseconds that the worker's tokenizer takes for a batch, when warm. */
function timeOf(tokenizer: TextTokenizer, texts: readonly string[]): number {
  const times: number[] = [];
  for (let i = 0; i < 2 * TIMED; i++) {
    const began = performance.now();
    for (const text of texts) tokenizer.encode(text, 2 * TOKENS);
    times.push(performance.now() - began);
  }
  return median(times.slice(TIMED));
}

/** What the tiny encoder answers to a text that is as long as all others of its batch. */
function meanId(tokenizer: TextTokenizer, text: string): number {
  const { ids } = tokenizer.encode(text, 2 * TOKENS);
  return ids.reduce((sum, id) => sum + id, 0) / ids.length;
}
