import type ort from 'onnxruntime-node';
import { longest, padBatch, type Tokens } from '../runtime/batch.js';
import type { Progress } from '../runtime/progress.js';
import { seededRandom } from '../runtime/random.js';
import { floats, openSession } from '../runtime/session.js';
import { cosine, pairwiseCosines, rankCorrelation } from './similarity.js';

/** One row of the table that says what an encoder is worth. */
export interface EncoderFigures {
  /** Size of the ONNX file. */
  readonly bytes: number;
  /** Cosine of each text's embedding to the reference's. */
  readonly cosineMean: number;
  readonly cosineLowest: number;
  /** Spearman's rank correlation with the reference over the similarities of all pairs of texts. */
  readonly rankCorrelation: number;
  /** Largest absolute difference of an embedding computed alone and among 31 random mates, randomly padded. */
  readonly mateDifference: number;
  /** Texts a second in batches of 32 x 16 tokens on one thread. */
  readonly itemsPerSecond: number;
}

export interface Comparison {
  /** The encoder that is taken to be right, an ONNX file. */
  readonly reference: Uint8Array;
  readonly candidate: Uint8Array;
  /** Natural sentences as token ids, other than those of the calibration; at least 3. */
  readonly texts: readonly Tokens[];
  /** Those with which the models are served. */
  readonly session?: ort.InferenceSession.SessionOptions;
  /** Most tokens of a batch, padding included. */
  readonly maxTokens?: number;
  /** How many of the texts are tried among mates; all of them unless told. */
  readonly mateTrials?: number;
  readonly seed?: number;
  /** How long to measure the speed of each, in ms. */
  readonly measureMs?: number;
  readonly onProgress?: Progress;
}

const BATCH = 32;
const LENGTH = 16;
/** Ids below this are in every vocabulary. */
const TOKENS = 50;
/** Up to so many columns of padding are added to a batch beyond its longest text. */
const EXTRA_PADDING = 40;

/** Compares two encoders with the inputs and the output of `buildEncoder`. */
export async function compareEncoders(
  comparison: Comparison,
): Promise<{ reference: EncoderFigures; candidate: EncoderFigures }> {
  const { texts, reference, candidate, session: options = {} } = comparison;
  if (texts.length < 3) throw new RangeError('a comparison needs at least 3 texts');
  const baseline = await openSession(reference, options);
  const contender = await openSession(candidate, options);
  try {
    const right = await alone(baseline, texts, 'reference', comparison.onProgress);
    const other = await alone(contender, texts, 'candidate', comparison.onProgress);
    return {
      reference: {
        bytes: reference.length,
        ...(await figures(baseline, right, right, comparison, 'reference')),
      },
      candidate: {
        bytes: candidate.length,
        ...(await figures(contender, other, right, comparison, 'candidate')),
      },
    };
  } finally {
    await baseline.release();
    await contender.release();
  }
}

async function figures(
  session: ort.InferenceSession,
  embeddings: readonly Float32Array[],
  right: readonly Float32Array[],
  comparison: Comparison,
  stage: string,
): Promise<Omit<EncoderFigures, 'bytes'>> {
  const { seed = 1, measureMs = 3000 } = comparison;
  const cosines = embeddings.map((embedding, i) => cosine(embedding, right[i] ?? embedding));
  return {
    cosineMean: cosines.reduce((sum, value) => sum + value, 0) / cosines.length,
    cosineLowest: Math.min(...cosines),
    rankCorrelation: rankCorrelation(pairwiseCosines(embeddings), pairwiseCosines(right)),
    mateDifference: await mateDifference(session, embeddings, comparison, `${stage} among mates`),
    itemsPerSecond: await speed(session, seed, measureMs),
  };
}

/** Each text's embedding, computed in a batch of its own. */
async function alone(
  session: ort.InferenceSession,
  texts: readonly Tokens[],
  stage: string,
  onProgress: Progress = () => {},
): Promise<Float32Array[]> {
  const embeddings: Float32Array[] = [];
  for (const text of texts) {
    embeddings.push(...(await embed(session, [text])));
    onProgress(stage, embeddings.length / texts.length);
  }
  return embeddings;
}

async function embed(
  session: ort.InferenceSession,
  batch: readonly Tokens[],
  length?: number,
): Promise<Float32Array[]> {
  const all = floats(await session.run(padBatch(batch, length)), 'sentence_embedding');
  const width = all.length / batch.length;
  return batch.map((_, item) => all.subarray(item * width, (item + 1) * width));
}

async function mateDifference(
  session: ort.InferenceSession,
  lone: readonly Float32Array[],
  { texts, seed = 1, maxTokens = 256, mateTrials = texts.length, onProgress = () => {} }: Comparison,
  stage: string,
): Promise<number> {
  const random = seededRandom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  let largest = 0;
  for (let trial = 0; trial < mateTrials; trial++) {
    const index = mateTrials < texts.length ? below(texts.length) : trial % texts.length;
    const batch = Array.from({ length: BATCH }, () => texts[below(texts.length)] ?? []);
    const place = below(BATCH);
    batch[place] = texts[index] ?? [];
    const length = Math.min(maxTokens, longest(batch) + below(EXTRA_PADDING));
    const [mixed, single] = [(await embed(session, batch, length))[place], lone[index]];
    mixed?.forEach((value, i) => {
      largest = Math.max(largest, Math.abs(value - (single?.[i] ?? Number.NaN)));
    });
    onProgress(stage, (trial + 1) / mateTrials);
  }
  return largest;
}

/** Which tokens they are makes no difference to the time. */
async function speed(session: ort.InferenceSession, seed: number, measureMs: number): Promise<number> {
  const random = seededRandom(seed);
  const batch = Array.from({ length: BATCH }, () =>
    Array.from({ length: LENGTH }, () => Math.floor(random() * TOKENS)),
  );
  const feeds = padBatch(batch);
  for (let warmUp = 0; warmUp < 3; warmUp++) await session.run(feeds);
  const start = performance.now();
  let runs = 0;
  let elapsed = 0;
  while (elapsed < measureMs) {
    await session.run(feeds);
    runs++;
    elapsed = performance.now() - start;
  }
  return (runs * BATCH * 1000) / elapsed;
}
