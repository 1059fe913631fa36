import { join } from 'node:path';
import { connectRedis, untilReady } from '@millrace/shared';
import { MINILM } from '#test/support/minilm.js';
import { type Graph, writeGraph } from '../run/graph.js';
import {
  afterSeconds,
  growthShare,
  handleCount,
  type Reading,
  residentMb,
  Sampler,
  type Series,
} from '../run/samples.js';
import type { Scenario } from '../run/scenario.js';
import { Tally } from '../run/tally.js';
import { predictUrl, type Served, serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { knownRate, openLoad, type Target } from '../serve/sustained.js';

const MINUTES = 30;
/** Of the rate that can be sustained. */
const SHARE = 0.8;
/** So many samples, whatever the time. */
const SAMPLES = 120;
const LEAST_SAMPLE_MS = 1000;
/** Share of the time in which heaps and the jobs that are kept may still fill up. */
const FILLING_SHARE = 0.2;
/** What a value may grow by over the rest, by the line that fits it best, as a share of its mean. */
const MOST_GROWTH = 0.05;
/** A share of a small count is less than one connection more: growth is a share of this at least. */
const LEAST_COUNT = 200;
/** As far as the graph goes, in percent of where a value began. */
const MOST_PERCENT = 200;

export const soak: Scenario = {
  name: 'soak',
  summary: `memory, handles and Redis keys over ${MINUTES} minutes at ${SHARE * 100}% of the rate found by slo: flat`,
  seconds: MINUTES * 60,
  async run(bench) {
    const sentences = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM] });
    const target: Target = { url: predictUrl(served, MINILM), pids: served.pids, ...sentences.requests() };
    const rate = SHARE * (await knownRate(bench, target));
    const { seconds } = bench.options;
    bench.say(`  ${rate.toFixed(0)} requests/s for ${(seconds / 60).toFixed(1)} minutes...`);
    const read = await readings(served, (release) => bench.own(release));
    let sampler: Sampler | undefined;
    const everyMs = Math.max(LEAST_SAMPLE_MS, (seconds * 1000) / SAMPLES);
    const load = await openLoad(bench, target, rate, {
      seed: 1,
      onMeasuring: () => {
        sampler = new Sampler(everyMs, read);
      },
    });
    const series = (await sampler?.stop()) ?? {};
    const tally = new Tally();
    tally.add('soak', load);
    const parts = Object.entries(series).map(([name, whole]) => {
      const settled = afterSeconds(whole, FILLING_SHARE * seconds);
      const growth = growthShare(settled, isCount(name) ? LEAST_COUNT : 0);
      tally.figure(name, 'first', settled.values[0] ?? Number.NaN);
      tally.figure(name, 'last', settled.values.at(-1) ?? Number.NaN);
      tally.figure(name, 'growthPercent', growth * 100);
      return {
        name: `${1 + MOST_GROWTH} / (1 + growth) of ${name}`,
        ratio: (1 + MOST_GROWTH) / (1 + growth),
        bar: 1,
      };
    });
    const file = join(bench.options.outDir, 'soak.svg');
    await writeGraph(file, graphOf(series, rate));
    bench.say(`Graph: ${file}`);
    return tally.outcome(parts, {
      requestsPerSecond: rate,
      mostGrowth: MOST_GROWTH,
      fillingShare: FILLING_SHARE,
    });
  },
};

const isCount = (name: string): boolean => /handles|keys/.test(name);

/** What is to stay flat: of each process its memory and handles, of Redis its keys and the memory they use. */
async function readings(
  { pids, redisUrl }: Served,
  own: (release: () => Promise<void>) => void,
): Promise<() => Promise<Reading>> {
  const redis = connectRedis(redisUrl, 'subscriber', 'bench-soak');
  own(async () => redis.disconnect());
  await untilReady(redis);
  return async () => {
    const values: Record<string, number> = {};
    for (const [name, pid] of Object.entries(pids)) {
      values[`${name} MB`] = residentMb(pid);
      values[`${name} handles`] = handleCount(pid);
    }
    values['Redis keys'] = await redis.dbsize();
    const used = /^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1];
    values['Redis used MB'] = Number(used) / 2 ** 20;
    return values;
  };
}

/** Every value in percent of what it was at first. */
function graphOf(series: Readonly<Record<string, Series>>, rate: number): Graph {
  const percent = ({ at, values }: Series) =>
    at.map((seconds, i) => ({ x: seconds / 60, y: (100 * (values[i] ?? 0)) / Math.max(1, values[0] ?? 1) }));
  return {
    title: `${MINILM} at ${rate.toFixed(0)} requests/s: what is to stay flat`,
    xLabel: 'minutes',
    yLabel: '% of the first sample',
    series: Object.fromEntries(Object.entries(series).map(([name, each]) => [name, percent(each)])),
    yMost: MOST_PERCENT,
  };
}
