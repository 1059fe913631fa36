import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createLogger, loadSettings, type SessionOptions } from '@millrace/shared';
import { type PreparedModel, prepareModel, storeTuning, tuneModel } from '@millrace/worker';
import { RawSide } from '../raw/raw-side.js';
import type { Bench, Scenario } from '../run/scenario.js';
import { pairedRatio } from '../run/statistics.js';
import { interleave, Tally } from '../run/tally.js';
import { MODEL_CACHE, MODELS_DIR, prepareMinilm, sentencesFor } from '../serve/minilm.js';
import { writeFp32 } from '../serve/variants.js';

const FIGURE = 'itemsPerSecond';
/** Of which the search for one session's options takes about half. */
const TUNE_SECONDS = 40;

/** The tuner's choice for one session, stored where the raw side finds it; one session a core for both. */
async function tune(bench: Bench, prepared: PreparedModel, modelsDir: string): Promise<SessionOptions> {
  bench.say(`Tuning ${prepared.manifest.name}...`);
  const { dataDir } = bench;
  const settings = loadSettings({}, { dataDir, modelsDir, logLevel: 'error' });
  const logger = createLogger('error', { process: 'bench' });
  const { best } = await tuneModel({ prepared, settings, logger, seconds: TUNE_SECONDS });
  const choice = { ...best, threads: availableParallelism() };
  await storeTuning(dataDir, logger, prepared, settings, choice);
  return choice;
}

export const int8VsFp32: Scenario = {
  name: 'int8-vs-fp32',
  summary: 'the served INT8 model against the same in FP32, each in a planned raw loop on the same threads',
  async run(bench) {
    const int8 = await prepareMinilm();
    const sentences = await sentencesFor(int8);
    const modelsDir = join(bench.dataDir, 'models');
    const name = await writeFp32(modelsDir, int8);
    const fp32 = await prepareModel({ modelsDir, cacheDir: MODEL_CACHE, name, env: process.env });
    const options = {
      int8: await tune(bench, int8, MODELS_DIR),
      fp32: await tune(bench, fp32, modelsDir),
    };
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
      options,
    });
  },
};
