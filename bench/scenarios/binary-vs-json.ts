import { setTimeout as sleep } from 'node:timers/promises';
import { forgetPeak, peakMb, residentMb } from '../run/samples.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { type Part, pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { IDENTITY } from '../serve/identity.js';
import { type Served, serve } from '../serve/millrace.js';
import { TensorClient } from '../serve/tensor-client.js';
import {
  binaryRequest,
  givesBack,
  jsonRequests,
  randomFloats,
  type TensorRequest,
} from '../serve/tensors.js';

const TENSOR_BYTES = 20_000_000;
const VALUES = TENSOR_BYTES / Float32Array.BYTES_PER_ELEMENT;
/** A request in JSON may hold 500,000 values, its few others among them. */
const MOST_JSON_VALUES = 499_900;
const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MB = 1e6;
/** The gateway's memory may grow by so many bodies, one at a time. */
const MOST_BODIES = 8;
const FEW = 20;
const MANY = 100;
/** The garbage collector comes when it likes: so much of the highest memory is none of ours. */
const TOLERANCE = 0.95;
/** Together far more than a gateway holds by default. */
const AT_ONCE = 16;
const SETTLE_MS = 1000;
const WARM_UPS = 50;
const FIGURE = 'tensorMbPerSecond';

export const binaryVsJson: Scenario = {
  name: 'binary-vs-json',
  summary: `a ${TENSOR_BYTES / MB} MB float tensor there and back, in bytes against JSON; the gateway's memory meanwhile`,
  async run(bench) {
    const values = randomFloats(VALUES);
    const binary = binaryRequest(values);
    const json = jsonRequests(values, MOST_JSON_VALUES);
    const served = await serve(bench, {
      models: [IDENTITY.name],
      env: { MILLRACE_MAX_BODY_BYTES: String(MAX_BODY_BYTES) },
    });
    const client = new TensorClient(`${served.url}/v2/models/${IDENTITY.name}/infer`);
    bench.own(async () => client.close());
    const tally = new Tally();
    const memory = await measureMemory(bench, tally, served, client, binary);
    const crowd = await measureCrowd(bench, tally, served, client, binary);
    await interleave(bench.options.rounds, [
      () => measureRate(bench, tally, client, 'binary', [binary]),
      () =>
        measureRate(bench, tally, client, 'binary, 2 MB', [binaryRequest(values.slice(0, MOST_JSON_VALUES))]),
      () => measureRate(bench, tally, client, 'json', json),
    ]);
    tally.note(
      `JSON takes at most 500,000 values a request: there the tensor travels in ${json.length} requests, one after the other`,
    );
    const rate = (side: string) => tally.values(side, FIGURE);
    return tally.outcome(
      [
        {
          name: 'tensor bytes a second, in bytes against JSON',
          ratio: pairedRatio(rate('binary'), rate('json')),
          bar: 5,
        },
        ...memory.parts,
        ...crowd.parts,
      ],
      {
        tensorBytes: TENSOR_BYTES,
        jsonBytes: json.reduce((sum, { body }) => sum + body.byteLength, 0),
        ofEqualSize: pairedRatio(rate('binary, 2 MB'), rate('json')),
        ...memory.facts,
        ...crowd.facts,
      },
    );
  },
};

/** One request at a time: what the gateway's memory grows by, and whether it goes on growing. */
async function measureMemory(
  bench: Bench,
  tally: Tally,
  served: Served,
  client: TensorClient,
  request: TensorRequest,
): Promise<{ parts: Part[]; facts: Record<string, unknown> }> {
  const pid = served.pids.gateway ?? 0;
  const small = binaryRequest(randomFloats(2));
  for (let i = 0; i < WARM_UPS; i++) await ask(tally, client, 'warm-up', small);
  await sleep(SETTLE_MS);
  const idle = residentMb(pid);
  const peaks: number[] = [];
  for (let i = 0; i < MANY; i++) {
    forgetPeak(pid);
    await ask(tally, client, 'memory', request);
    peaks.push(peakMb(pid));
  }
  const highest = (from: number, to: number) => Math.max(...peaks.slice(from, to));
  const [early, late] = [highest(0, FEW), highest(MANY - FEW, MANY)];
  const grown = ((Math.max(...peaks) - idle) * 1024 * 1024) / request.body.byteLength;
  bench.say(
    `  memory: ${idle.toFixed(0)} MB idle, ${early.toFixed(0)} MB at most in ${FEW} requests, ${late.toFixed(0)} MB in the last ${FEW} of ${MANY}`,
  );
  return {
    parts: [
      {
        name: `${MOST_BODIES} bodies / growth of the gateway's memory, one at a time`,
        ratio: MOST_BODIES / grown,
        bar: 1,
      },
      {
        name: `highest memory in the first ${FEW} / in the last ${FEW} of ${MANY}`,
        ratio: early / late,
        bar: TOLERANCE,
      },
    ],
    facts: { idleMb: idle, grownBodies: grown, firstPeakMb: early, lastPeakMb: late },
  };
}

/** Many at once: what is beyond the gateway's bound is refused, the rest is answered. */
async function measureCrowd(
  bench: Bench,
  tally: Tally,
  served: Served,
  client: TensorClient,
  request: TensorRequest,
): Promise<{ parts: Part[]; facts: Record<string, unknown> }> {
  const pid = served.pids.gateway ?? 0;
  const before = residentMb(pid);
  forgetPeak(pid);
  const answers = await Promise.all(
    Array.from({ length: AT_ONCE }, () => client.infer(request.body, request.jsonLength)),
  );
  let [answered, refused] = [0, 0];
  for (const answer of answers) {
    if (answer.status === 429) refused += 1;
    else if (answer.status === 200 && givesBack(request, answer)) answered += 1;
    else tally.fault(`crowd: a wrong answer, status ${answer.status}`);
  }
  const grownMb = peakMb(pid) - before;
  bench.say(`  ${AT_ONCE} at once: ${answered} answered, ${refused} refused, ${grownMb.toFixed(0)} MB more`);
  return {
    parts: [
      {
        name: `${AT_ONCE} at once: some are answered, those beyond the bound refused with 429`,
        ratio: Math.min(answered, refused),
        bar: 1,
      },
    ],
    facts: { atOnce: AT_ONCE, answered, refused, crowdGrownMb: grownMb },
  };
}

/** The requests again and again, one at a time. */
async function measureRate(
  bench: Bench,
  tally: Tally,
  client: TensorClient,
  side: string,
  requests: readonly TensorRequest[],
): Promise<void> {
  const { result: bytes, othersShare } = await bench.watch(async () => {
    let done = 0;
    const began = performance.now();
    const end = began + bench.options.seconds * 1000;
    for (let i = 0; performance.now() < end; i++) {
      const request = requests[i % requests.length];
      if (!request) break;
      // Comparing numbers that came as JSON takes longer than the request: the first of each round.
      await ask(tally, client, side, request, i === 0 || side !== 'json');
      done += request.values.byteLength;
    }
    return done / ((performance.now() - began) / 1000);
  });
  tally.watched(othersShare);
  tally.figure(side, FIGURE, bytes / MB);
  bench.say(`  ${side}: ${(bytes / MB).toFixed(1)} MB of tensor a second`);
}

async function ask(
  tally: Tally,
  client: TensorClient,
  side: string,
  request: TensorRequest,
  compare = true,
): Promise<void> {
  const answer = await client.infer(request.body, request.jsonLength);
  if (answer.status !== 200) tally.fault(`${side}: answered with ${answer.status}`);
  else if (compare && !givesBack(request, answer)) tally.fault(`${side}: a wrong answer`);
}
