import { join } from 'node:path';
import { prepareModel } from '@millrace/worker';
import { RawSide } from '../raw/raw-side.js';
import type { Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { MODEL_CACHE, prepareMinilm, sentencesFor } from '../serve/minilm.js';
import { writeFp32 } from '../serve/variants.js';

const FIGURE = 'itemsPerSecond';

export const int8VsFp32: Scenario = {
  name: 'int8-vs-fp32',
  summary: 'the served INT8 model against the same in FP32, each in a planned raw loop on the same threads',
  async run(bench) {
    const int8 = await prepareMinilm();
    const sentences = await sentencesFor(int8);
    const modelsDir = join(bench.dataDir, 'models');
    const name = await writeFp32(modelsDir, int8);
    await prepareModel({ modelsDir, cacheDir: MODEL_CACHE, name, env: process.env });
    const sides = {
      int8: await RawSide.start(bench),
      fp32: await RawSide.start(bench, { modelsDir, name }),
    };
    const tally = new Tally();
    await interleave(
      bench.options.rounds,
      Object.entries(sides).map(([side, raw]) => async () => {
        const { result: rate, othersShare } = await bench.watch(() =>
          raw.loop(sentences, bench.options.seconds),
        );
        tally.watched(othersShare);
        tally.figure(side, FIGURE, rate);
        bench.say(`  ${side}: ${rate.toFixed(0)} sentences/s`);
      }),
    );
    const ratio = pairedRatio(tally.values('int8', FIGURE), tally.values('fp32', FIGURE));
    return tally.outcome([{ name: 'INT8 against FP32', ratio, bar: 2 }], {
      sessionThreads: sides.int8.threads,
    });
  },
};
