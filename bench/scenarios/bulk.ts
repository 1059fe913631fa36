import { cancelBatch, createBatch, readFileOf, untilBatchEnded, uploadLines } from '#test/support/batches.js';
import { MINILM } from '#test/support/minilm.js';
import { fifthsOf, residentMb, Sampler } from '../run/samples.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { mean, type Part, pairedRatio } from '../run/statistics.js';
import { Tally } from '../run/tally.js';
import { BULK_ENDPOINT, bulkFile, checkOutput } from '../serve/bulk-lines.js';
import { countLines, followBatch, outputOf, rateOver } from '../serve/bulk-rate.js';
import { rememberedRate } from '../serve/found-rate.js';
import { predictUrl, type Served, serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { LATENCY_LIMIT_MS, openLoad, type Target } from '../serve/sustained.js';

const LINES = 100_000;
/** The raw loop before and after a batch, in seconds each. */
const RAW_SECONDS = 10;
/** A batch before the first: hot code is optimized, heaps have filled. */
const WARM_UP_LINES = 10_000;
/** Of each load of interactive requests. */
const WARM_UP_SECONDS = 10;
/** Interactive requests beside a batch: a share of the rate that `slo` found. */
const INTERACTIVE_SHARE = 0.3;
/** Where `slo` has not been run: what it finds on most machines, of the raw loop's. */
const SUSTAINED_OF_RAW = 0.6;
/** So much later bulk work may let interactive answers come, in ms. */
const MOST_LATER_MS = 40;
/** What the gateway's memory may grow by, as a share of it. */
const MOST_GROWTH = 0.05;
const SAMPLE_MS = 500;
const FIGURE = 'itemsPerSecond';

export const bulk: Scenario = {
  name: 'bulk',
  summary: `lines/s of a batch against the raw loop, memory flat; beside interactive work at ${INTERACTIVE_SHARE * 100}% of slo's rate`,
  seconds: 30,
  rounds: 1,
  async run(bench) {
    const { lines = LINES, rounds } = bench.options;
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const tally = new Tally();
    await runAlone(bench, served, load, Math.min(WARM_UP_LINES, lines), new Tally());
    const memory: Part[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = await raw(bench, load, tally);
      const part = await runAlone(bench, served, load, lines, tally);
      const after = await raw(bench, load, tally);
      tally.figure('raw', FIGURE, mean([before, after]));
      memory.push(part);
      await runBeside(bench, served, load, round, tally);
    }
    const of = (side: string, figure: string) => tally.values(side, figure);
    const alone = of('bulk alone', FIGURE);
    const p99 = of('interactive beside bulk', 'p99Ms');
    const left = alone.map((rate, i) => rate - (of('interactive', FIGURE)[i] ?? Number.NaN));
    return tally.outcome(
      [
        { name: 'lines/s alone, of the raw loop', ratio: pairedRatio(alone, of('raw', FIGURE)), bar: 0.9 },
        ...memory,
        {
          name: `${LATENCY_LIMIT_MS} ms / p99 of interactive requests beside bulk`,
          ratio: pairedRatio(
            p99.map(() => LATENCY_LIMIT_MS),
            p99,
          ),
          bar: 1,
        },
        {
          name: `(p99 without bulk + ${MOST_LATER_MS} ms) / p99 beside bulk`,
          ratio: pairedRatio(
            of('interactive', 'p99Ms').map((ms) => ms + MOST_LATER_MS),
            p99,
          ),
          bar: 1,
        },
        {
          name: 'lines/s beside interactive requests, of the capacity left',
          ratio: pairedRatio(of('bulk beside', FIGURE), left),
          bar: 0.5,
        },
      ],
      { lines, endpoint: BULK_ENDPOINT, sessionThreads: load.raw.threads },
    );
  },
};

async function raw(bench: Bench, load: SentenceLoad, tally: Tally): Promise<number> {
  const { result: rate, othersShare } = await bench.watch(() => load.raw.loop(load.sentences, RAW_SECONDS));
  tally.watched(othersShare);
  bench.say(`  raw: ${rate.toFixed(0)} sentences/s`);
  return rate;
}

/** A batch with nothing beside it. @returns whether memory was flat meanwhile. */
async function runAlone(
  bench: Bench,
  { url, pids }: Served,
  { sentences, vectors }: SentenceLoad,
  count: number,
  tally: Tally,
): Promise<Part> {
  const [fileId, uploadSeconds] = await timed(() => uploadLines(url, bulkFile(sentences, count)));
  const { lines: before } = await countLines(url);
  const sampler = new Sampler(SAMPLE_MS, () => ({ gateway: residentMb(pids.gateway ?? 0) }));
  const { result: rate, othersShare } = await bench.watch(async () => {
    const { id } = await createBatch(url, fileId, BULK_ENDPOINT);
    const perSecond = await followBatch(url, id, before, count);
    return { perSecond, id };
  });
  const { gateway } = await sampler.stop();
  tally.watched(othersShare);
  const outputId = await outputOf(url, rate.id);
  const [output, downloadSeconds] = await timed(async () =>
    checkOutput(await readFileOf(url, outputId), sentences, vectors),
  );
  bench.say(`  ${count} lines alone: ${rate.perSecond.toFixed(0)} lines/s`);
  tally.figure('bulk alone', FIGURE, rate.perSecond);
  tally.figure('bulk alone', 'uploadSeconds', uploadSeconds);
  tally.figure('bulk alone', 'downloadSeconds', downloadSeconds);
  tally.figure('bulk alone', 'outputMb', output.bytes / 2 ** 20);
  tally.figure('bulk alone', 'linesCompared', output.compared);
  if (output.lines !== count) tally.fault(`bulk alone: ${output.lines} of ${count} lines are in the output`);
  if (output.wrong > 0) tally.fault(`bulk alone: ${output.wrong} of ${output.lines} lines are wrong`);
  if (output.compared === 0) tally.fault('bulk alone: no values were compared');
  const { first, last } = fifthsOf(gateway ?? { at: [], values: [] });
  tally.figure('bulk alone', 'gatewayFirstMb', first);
  tally.figure('bulk alone', 'gatewayLastMb', last);
  return {
    name: `${1 + MOST_GROWTH} x most memory of the gateway in the first fifth / in the last`,
    ratio: ((1 + MOST_GROWTH) * first) / last,
    bar: 1,
  };
}

/** Interactive requests alone, then the same beside a batch that outlasts them. */
async function runBeside(
  bench: Bench,
  served: Served,
  load: SentenceLoad,
  seed: number,
  tally: Tally,
): Promise<void> {
  const { url, pids } = served;
  const { seconds } = bench.options;
  const known = await rememberedRate(bench);
  if (known === undefined) tally.note('slo has not been run here: its rate is taken from the raw loop');
  const sustained = known ?? SUSTAINED_OF_RAW * (tally.values('raw', FIGURE).at(-1) ?? 0);
  const rate = INTERACTIVE_SHARE * sustained;
  const target: Target = { url: predictUrl(served, MINILM), pids, ...load.requests() };
  const alone = await openLoad(bench, target, rate, { seed, warmUpSeconds: WARM_UP_SECONDS });
  tally.add('interactive', alone);
  bench.say(`  ${rate.toFixed(0)} requests/s without bulk: p99 ${alone.latencyMs.p99.toFixed(1)} ms`);
  // Enough for the load and its warm-up, if nothing else were there.
  const capacity = tally.values('bulk alone', FIGURE).at(-1) ?? 0;
  const fileId = await uploadLines(
    url,
    bulkFile(load.sentences, Math.ceil(capacity * (seconds + 2 * WARM_UP_SECONDS))),
  );
  const { id } = await createBatch(url, fileId, BULK_ENDPOINT);
  let bulkRate = Promise.resolve(Number.NaN);
  const beside = await openLoad(bench, target, rate, {
    seed,
    warmUpSeconds: WARM_UP_SECONDS,
    onMeasuring: () => {
      bulkRate = rateOver(url, seconds);
    },
  });
  tally.add('interactive beside bulk', beside);
  const linesPerSecond = await bulkRate;
  tally.figure('bulk beside', FIGURE, linesPerSecond);
  bench.say(
    `  beside bulk: p99 ${beside.latencyMs.p99.toFixed(1)} ms, and ${linesPerSecond.toFixed(0)} lines/s`,
  );
  const ended = await cancelBatch(url, id).catch((error: Error) => error);
  if (ended instanceof Error) tally.fault(`the batch ended before the load beside it: ${ended.message}`);
  else await untilBatchEnded(url, id);
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const began = performance.now();
  const result = await work();
  return [result, (performance.now() - began) / 1000];
}
