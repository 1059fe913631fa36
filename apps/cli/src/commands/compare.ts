import type { Settings } from '@millrace/shared';
import type { ModelComparison } from '@millrace/worker';
import type { Host } from '../host.js';
import { loadWorker } from '../peers.js';
import { openProgress } from '../progress.js';
import { prepareShowing } from '../tuning/prepare.js';
import { tableLines } from '../tuning/table.js';

/** `millrace models compare NAME`: what quantizing a model costs and brings. */
export async function compareCommand(settings: Settings, host: Host, name: string): Promise<number> {
  const prepared = await prepareShowing(settings, host, name);
  if (!prepared) return 1;
  const { compareModel } = await loadWorker();
  const { asked } = host.stop;
  const progress = openProgress(host);
  try {
    const comparison = await compareModel(prepared, settings.modelsDir, (step, fraction) => {
      asked.throwIfAborted();
      progress.show({ model: name, step, fraction });
    });
    progress.close();
    for (const line of describe(name, comparison)) host.say(line);
    return 0;
  } catch (error) {
    if (asked.aborted) return 1;
    throw error;
  } finally {
    progress.close();
  }
}

function describe(name: string, { texts, mateTrials, fp32, int8 }: ModelComparison): string[] {
  const ratio = (a: number, b: number): string => `${(a / b).toFixed(2)}x`;
  return [
    `${name}, FP32 against INT8 as served, on ${texts} held-out samples`,
    '',
    ...tableLines([
      ['', 'FP32', 'INT8', ''],
      ['bytes', String(fp32.bytes), String(int8.bytes), ratio(int8.bytes, fp32.bytes)],
      ['cosine to FP32, mean', fp32.cosineMean.toFixed(4), int8.cosineMean.toFixed(4)],
      ['cosine to FP32, lowest', fp32.cosineLowest.toFixed(4), int8.cosineLowest.toFixed(4)],
      ['rank correlation of similarities', fp32.rankCorrelation.toFixed(4), int8.rankCorrelation.toFixed(4)],
      ['largest change by batch mates', mates(fp32.mateDifference), mates(int8.mateDifference)],
      [
        'items/s, 32 x 16 tokens, one thread',
        fp32.itemsPerSecond.toFixed(0),
        int8.itemsPerSecond.toFixed(0),
        ratio(int8.itemsPerSecond, fp32.itemsPerSecond),
      ],
    ]),
    '',
    `The change by batch mates is that of any number in a vector, over ${mateTrials} samples alone and among 31 others.`,
  ];
}

const mates = (difference: number): string => difference.toExponential(1);
