import { MINILM } from '#test/support/minilm.js';
import { residentMb, Sampler, thirdsOf } from '../run/samples.js';
import type { Bench, Scenario } from '../run/scenario.js';
import type { Part } from '../run/statistics.js';
import { Tally } from '../run/tally.js';
import { IDENTITY_REQUESTS } from '../serve/identity.js';
import { predictUrl, type Served, serve } from '../serve/millrace.js';
import { MODEL_CACHE } from '../serve/minilm.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { closedPeak, openLoad, type Target } from '../serve/sustained.js';
import { writeDevice } from '../serve/variants.js';

const TIMES = 3;
/** What a request allows for its answer, in ms; long enough for a queue to build up. */
const WAIT_MS = 2000;
/** An answer may come so much later than that to a client, in ms. */
const GRACE_MS = 1000;
const REFUSAL_MS = 10;
/** As many requests wait for their answers as the longest queue holds. */
const CONNECTIONS = 6000;
/** More clients answer more, until there is nothing more to gain: that is the capacity. */
const CLIENTS = 256;
const PEAK_SECONDS = 10;
/** By then the queue is as long as it gets, and what serves it has the memory that this takes. */
const WARM_UP_SECONDS = 10;
/** A generator that sent less than this of what it should was the limit itself. */
const LEAST_SENT = 0.95;
/** What memory may grow by from the first third of the load to the last: a share of it, or so many MB. */
const MOST_GROWTH = 0.1;
const LEAST_MB = 8;
const SAMPLE_MS = 1000;
/** A device slow enough that the machine around it is not the limit. */
const SIMULATE = { runMs: 20, itemMs: 1 };
const DEVICE = 'overload-device';
/** Refused at the door, or given up when its time was over. */
const OVERLOADED = /^(429|503|504)$/;

const withWait = (body: string): string => JSON.stringify({ ...JSON.parse(body), waitMs: WAIT_MS });

export const overload: Scenario = {
  name: 'overload',
  summary: `arrivals at ${TIMES}x capacity: answers in time against the peak, refusals within ${REFUSAL_MS} ms, memory flat`,
  seconds: 60,
  async run(bench) {
    const tally = new Tally();
    const sentences = await SentenceLoad.prepare(bench);
    const device = await measure(bench, tally, 'device', 0.95, await serveDevice(bench));
    const minilm = await measure(bench, tally, 'minilm', 0.7, await serveMinilm(bench, sentences));
    tally.note(`device is a simulated device: ${JSON.stringify(SIMULATE)}`);
    tally.note('each side was loaded once, for as long as --seconds says');
    const parts = [...device.parts, ...minilm.parts];
    return tally.outcome(parts, {
      times: TIMES,
      waitMs: WAIT_MS,
      simulate: SIMULATE,
      outcomes: { device: device.outcomes, minilm: minilm.outcomes },
    });
  },
};

/** One side: its peak, then the overload of it. */
async function measure(
  bench: Bench,
  tally: Tally,
  side: string,
  bar: number,
  target: Target & Pick<Served, 'pids'>,
): Promise<{ parts: Part[]; outcomes: Record<string, number> }> {
  const peak = await closedPeak(bench, target, { clients: CLIENTS, seconds: PEAK_SECONDS });
  tally.add(`${side} peak`, peak);
  bench.say(`  ${side}, ${CLIENTS} clients: ${peak.requestsPerSecond.toFixed(0)} requests/s`);
  const rate = TIMES * peak.requestsPerSecond;
  let sampler: Sampler | undefined;
  const load = await openLoad(
    bench,
    { ...target, bodies: target.bodies.map((body) => withWait(body as string)) },
    rate,
    {
      seed: 1,
      connections: CONNECTIONS,
      warmUpSeconds: WARM_UP_SECONDS,
      onMeasuring: () => {
        sampler = new Sampler(SAMPLE_MS, () =>
          Object.fromEntries(Object.entries(target.pids).map(([name, pid]) => [name, residentMb(pid)])),
        );
      },
    },
  );
  const memory = (await sampler?.stop()) ?? {};
  tally.judge(`${side} overload`, load, OVERLOADED);
  const { failures, refusedMs, answered, pastDeadline, latencyMs } = load;
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0);
  const sentShare = (answered + failed - (failures['never sent'] ?? 0)) / (rate * bench.options.seconds);
  const goodput = (answered - pastDeadline) / bench.options.seconds;
  if (pastDeadline > 0) tally.fault(`${side}: ${pastDeadline} answers came past their deadline`);
  if (sentShare < LEAST_SENT) {
    tally.fault(`${side}: the generator sent only ${(sentShare * TIMES).toFixed(2)} times the capacity`);
  }
  const figures = {
    itemsPerSecond: goodput,
    p50Ms: latencyMs.p50,
    p99Ms: latencyMs.p99,
    sentTimes: sentShare * TIMES,
    refusedP90Ms: refusedMs.p90,
    refusedP99Ms: refusedMs.p99,
    refusedMostMs: refusedMs.max,
    expiredShare: (failures['504'] ?? 0) / (answered + failed),
  };
  for (const [name, value] of Object.entries(figures)) tally.figure(`${side} overload`, name, value);
  bench.say(`  ${side}, ${rate.toFixed(0)} arrivals/s: ${goodput.toFixed(0)} answered in time`);
  const parts = [
    { name: `${side}: answers in time, of the peak`, ratio: goodput / peak.requestsPerSecond, bar },
    { name: `${side}: ${REFUSAL_MS} ms / p99 of refusals`, ratio: REFUSAL_MS / refusedMs.p99, bar: 1 },
    ...Object.entries(memory).map(([name, series]) => {
      const { first, last } = thirdsOf(series);
      const allowed = first + Math.max(MOST_GROWTH * first, LEAST_MB);
      return { name: `${side}: memory of the ${name}, allowed / last third`, ratio: allowed / last, bar: 1 };
    }),
  ];
  return { parts, outcomes: { 200: answered, ...failures } };
}

async function serveDevice(bench: Bench): Promise<Target & Pick<Served, 'pids'>> {
  const modelsDir = `${bench.dataDir}/models`;
  await writeDevice(modelsDir, DEVICE, {}, SIMULATE);
  const served = await serve(bench, {
    models: [DEVICE],
    env: {
      MILLRACE_MODELS_DIR: modelsDir,
      MILLRACE_CACHE_DIR: MODEL_CACHE,
      MILLRACE_ALLOW_SIMULATED: 'true',
    },
  });
  return {
    url: predictUrl(served, DEVICE),
    pids: served.pids,
    ...IDENTITY_REQUESTS,
    deadlineMs: WAIT_MS + GRACE_MS,
  };
}

async function serveMinilm(bench: Bench, sentences: SentenceLoad): Promise<Target & Pick<Served, 'pids'>> {
  const served = await serve(bench, { models: [MINILM] });
  return {
    url: predictUrl(served, MINILM),
    pids: served.pids,
    ...sentences.requests(),
    deadlineMs: WAIT_MS + GRACE_MS,
  };
}
