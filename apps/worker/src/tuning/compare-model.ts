import { readFile } from 'node:fs/promises';
import { buildEncoder, compareEncoders, type EncoderFigures, tokenize } from '@millrace/onnx';
import { StartupError } from '@millrace/shared';
import type { PreparedModel } from '../models/prepare.js';
import { evaluationTexts } from './sample-items.js';

export interface ModelComparison {
  /** Held-out samples that were compared. */
  texts: number;
  /** How many of them were also tried among random mates. */
  mateTrials: number;
  fp32: EncoderFigures;
  int8: EncoderFigures;
}

/** In FP32 each costs half a second on a busy machine. */
const MATE_TRIALS = 48;

/**
 * Compares a quantized encoder as served with the FP32 one built from the same weights, on the model's
 * held-out samples. `onProgress` may throw to end it.
 * @throws StartupError when the model is not a quantized encoder or has no samples.
 */
export async function compareModel(
  prepared: PreparedModel,
  modelsDir: string,
  onProgress: (step: string, fraction: number) => void,
): Promise<ModelComparison> {
  const { manifest, files, modelFile } = prepared;
  const { name, build } = manifest;
  if (manifest.task !== 'text-embedding' || build.from !== 'bert' || build.precision !== 'int8') {
    throw new StartupError(
      `The model ${name} is not quantized from weights of its own: there is nothing to compare.`,
      'Choose a model with `build: { from: bert, precision: int8 }`.',
    );
  }
  const samples = await evaluationTexts(modelsDir, name);
  if (!samples) {
    throw new StartupError(
      `The model ${name} has no samples to be judged by.`,
      `Put natural sentences, one a line, into ${modelsDir}/${name}/samples/evaluation.txt.`,
    );
  }
  onProgress('building FP32', 0);
  const reference = buildEncoder({
    safetensors: await readFile(files[build.weights] ?? ''),
    config: build.config,
    pooling: build.pooling,
    normalize: build.normalize,
  });
  const tokenizer = JSON.parse(await readFile(files[manifest.text.tokenizer] ?? '', 'utf8')) as object;
  const texts = tokenize(tokenizer, samples, manifest.text.maxTokens);
  const mateTrials = Math.min(MATE_TRIALS, texts.length);
  const { reference: fp32, candidate: int8 } = await compareEncoders({
    reference,
    candidate: await readFile(modelFile),
    texts,
    maxTokens: manifest.text.maxTokens,
    mateTrials,
    onProgress: (stage, fraction) => onProgress(STAGES[stage] ?? stage, fraction),
  });
  return { texts: texts.length, mateTrials, fp32, int8 };
}

const STAGES: Record<string, string> = {
  reference: 'FP32, each sample alone',
  candidate: 'INT8, each sample alone',
  'reference among mates': 'FP32, samples among mates',
  'candidate among mates': 'INT8, samples among mates',
};
