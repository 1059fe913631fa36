import { MINILM } from '#test/support/minilm.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { BINARY, type DoorLoads, GRPC, NATIVE, sentenceDoors, tensorDoors } from '../serve/door-loads.js';
import { IDENTITY } from '../serve/identity.js';
import { serve } from '../serve/millrace.js';
import { SentenceLoad } from '../serve/sentence-load.js';
import { CLIENTS, closedPeak } from '../serve/sustained.js';

const FIGURE = 'requestsPerSecond';
/** Binary protocols must not cost more than the native one, but for noise. */
const LEAST_BESIDE_NATIVE = 0.9;

/** Loads every door in turn, round by round; each beside the native door of the same round. */
async function compare(
  bench: Bench,
  tally: Tally,
  what: string,
  doors: DoorLoads,
): Promise<(door: string) => number> {
  const side = (door: string): string => `${door}, ${what}`;
  bench.say(`${what}, ${CLIENTS} clients:`);
  await interleave(
    bench.options.rounds,
    Object.entries(doors).map(([door, target]) => async () => {
      const measured = await closedPeak(bench, target);
      tally.add(side(door), measured);
      tally.figure(side(door), FIGURE, measured.requestsPerSecond);
      tally.figure(side(door), 'generatorShare', measured.cpuShare);
      bench.say(
        `  ${door}: ${measured.requestsPerSecond.toFixed(0)} requests/s, ` +
          `${(measured.cpuShare * 100).toFixed(1)}% of the machine for the generator`,
      );
    }),
  );
  const besideNative = (door: string): number =>
    pairedRatio(tally.values(side(door), FIGURE), tally.values(side(NATIVE), FIGURE));
  for (const door of Object.keys(doors)) {
    if (door !== NATIVE) bench.say(`  ${door} beside ${NATIVE}: ${besideNative(door).toFixed(3)}`);
  }
  return besideNative;
}

export const doors: Scenario = {
  name: 'doors',
  summary: 'the same sentences over each door beside the native one; and a tensor to the no-op model',
  async run(bench) {
    const load = await SentenceLoad.prepare(bench);
    const served = await serve(bench, { models: [MINILM, IDENTITY.name] });
    const tally = new Tally();
    const sentences = sentenceDoors(served, load);
    const ofSentences = await compare(bench, tally, 'a sentence', sentences);
    const tensors = tensorDoors(served);
    const ofTensors = await compare(bench, tally, 'a tensor', tensors);
    const all = (loads: DoorLoads, ratio: (door: string) => number) =>
      Object.fromEntries(Object.keys(loads).map((door) => [door, ratio(door)]));
    return tally.outcome(
      [BINARY, GRPC].map((door) => ({
        name: `${door} beside ${NATIVE}`,
        ratio: ofSentences(door),
        bar: LEAST_BESIDE_NATIVE,
      })),
      {
        clients: CLIENTS,
        besideNative: { sentence: all(sentences, ofSentences), tensor: all(tensors, ofTensors) },
      },
    );
  },
};
