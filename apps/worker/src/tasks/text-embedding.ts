import type { ModelDescription, TextEmbeddingManifest } from '@millrace/shared';
import type { WireTensor } from '../session/messages.js';
import type { PreprocessPool } from './preprocess-pool.js';
import { splitOutputs } from './split-outputs.js';
import {
  type Answered,
  type ItemFault,
  type ItemOutput,
  type Prepared,
  platformOf,
  type RawItem,
  type Task,
} from './task.js';
import { answerByTokenizer, runsNoModel } from './text-operations.js';
import { prepareTokenIds } from './token-ids.js';
import { TEXT_NOT_UTF8, TEXT_TRUNCATED, tokenizerOf } from './tokenize-task.js';

/** What doors of every text-embedding model take and give. */
const TEXT_INPUT = 'text';
const EMBEDDING_OUTPUT = 'embedding';

/** Parameter of a request, a boolean: whether texts over the model's limit are cut, or refused. */
const TRUNCATE_PARAMETER = 'truncate';

const SAMPLE_TOKENS = [8, 32, 128];

/**
 * BYTES `text` in, FP32 `embedding` [dimensions] out, by an encoder of input_ids and attention_mask. The same
 * of BYTES `token_ids` with the operation `embed-tokens`.
 */
export class TextEmbedding implements Task {
  readonly description: ModelDescription;
  readonly #manifest: TextEmbeddingManifest;
  readonly #tokenizerFile: string;
  readonly #pool: PreprocessPool;

  constructor(manifest: TextEmbeddingManifest, tokenizerFile: string, pool: PreprocessPool) {
    this.#manifest = manifest;
    this.#tokenizerFile = tokenizerFile;
    this.#pool = pool;
    const { minDimensions } = manifest.embedding;
    this.description = {
      name: manifest.name,
      version: manifest.version,
      task: manifest.task,
      platform: platformOf(manifest),
      inputs: [{ name: TEXT_INPUT, datatype: 'BYTES', shape: [-1] }],
      outputs: [{ name: EMBEDDING_OUTPUT, datatype: 'FP32', shape: [-1, manifest.embedding.dimensions] }],
      limits: { maxRequestItems: manifest.limits.maxRequestItems, maxTokens: manifest.text.maxTokens },
      jsonDigits: manifest.embedding.jsonDigits,
      ...(minDimensions === undefined ? {} : { minDimensions }),
      operations: ['embed-tokens', 'tokenize', 'detokenize'],
      text: traitsOf(manifest, pool.threads),
    };
  }

  warm(): Promise<void> {
    return this.#pool.warm(this.#tokenizerFile);
  }

  async prepare(items: readonly RawItem[]): Promise<(Prepared | Answered | ItemFault)[]> {
    const results: (Prepared | Answered | ItemFault)[] = new Array(items.length);
    const texts: Uint8Array[] = [];
    const positions: number[] = [];
    for (const [i, item] of items.entries()) {
      const { operation } = item;
      if (runsNoModel(operation)) {
        results[i] = await answerByTokenizer(item, operation, this.#tokenizerFile, this.#pool);
        continue;
      }
      if (operation === 'embed-tokens') {
        const { maxTokens } = this.#manifest.text;
        const result = prepareTokenIds(item, tokenizerOf(this.#tokenizerFile), maxTokens);
        results[i] = this.#withinLimit(result, item);
        continue;
      }
      const text = textOf(item);
      if (text instanceof Uint8Array) {
        texts.push(text);
        positions.push(i);
      } else results[i] = text;
    }
    if (texts.length > 0) {
      const tokenized = await this.#tokenize(texts);
      for (const [i, position] of positions.entries()) {
        const result = tokenized[i] ?? { code: 'internal', message: 'The text was not tokenized.' };
        results[position] = this.#withinLimit(result, items[position]);
      }
    }
    return results;
  }

  async #tokenize(texts: readonly Uint8Array[]): Promise<(Prepared | ItemFault)[]> {
    const { maxTokens } = this.#manifest.text;
    const ends = new Uint32Array(texts.length);
    let total = 0;
    for (const [i, text] of texts.entries()) {
      total += text.byteLength;
      ends[i] = total;
    }
    const bytes = new Uint8Array(total);
    for (const [i, text] of texts.entries()) bytes.set(text, (ends[i] ?? 0) - text.byteLength);
    const answer = await this.#pool.tokenize({ tokenizerFile: this.#tokenizerFile, maxTokens, bytes, ends });
    const results: (Prepared | ItemFault)[] = [];
    for (let at = 0; at < answer.length; ) {
      const count = answer[at] ?? 0;
      const became = answer[at + 1];
      const truncated = became === TEXT_TRUNCATED;
      if (became === TEXT_NOT_UTF8) {
        results.push({ code: 'invalid_encoding', message: 'The text is not valid UTF-8.' });
      } else {
        const value = answer.subarray(at + 2, at + 2 + count);
        results.push({ size: count, shapeKey: '', truncated, tokens: count, value });
      }
      at += 2 + count;
    }
    return results;
  }

  /** What is too long is cut or refused: as its request says, or else the manifest. */
  #withinLimit(result: Prepared | ItemFault, item: RawItem | undefined): Prepared | ItemFault {
    if (!('truncated' in result) || !result.truncated) return result;
    const { maxTokens, overflow } = this.#manifest.text;
    const asked = item?.parameters?.[TRUNCATE_PARAMETER];
    const cut = typeof asked === 'boolean' ? asked : overflow === 'truncate';
    return cut ? result : { code: 'text_too_long', message: `The text has more than ${maxTokens} tokens.` };
  }

  assemble(group: readonly Prepared[]): WireTensor[] {
    const longest = group.reduce((most, item) => Math.max(most, item.size), 0);
    const shape = [group.length, longest];
    const ids = new Uint8Array(group.length * longest * 8);
    const mask = new Uint8Array(group.length * longest * 8);
    // int64 written as pairs of int32, the high half left at 0: token ids are never negative, and BigInts
    // would cost more than the padding does.
    const idWords = new Int32Array(ids.buffer);
    const maskWords = new Int32Array(mask.buffer);
    for (const [row, item] of group.entries()) {
      const tokens = item.value as Int32Array;
      let at = row * longest * 2;
      for (const id of tokens) {
        idWords[at] = id;
        maskWords[at] = 1;
        at += 2;
      }
    }
    return [
      { name: 'input_ids', datatype: 'INT64', shape, data: ids },
      { name: 'attention_mask', datatype: 'INT64', shape, data: mask },
    ];
  }

  split(outputs: readonly WireTensor[], count: number): ItemOutput[][] {
    const renamed = outputs.map((output) => ({ ...output, name: EMBEDDING_OUTPUT }));
    return splitOutputs(renamed, count);
  }

  get sampleSizes(): readonly number[] {
    const { maxTokens } = this.#manifest.text;
    return [...SAMPLE_TOKENS.filter((size) => size < maxTokens), maxTokens];
  }

  sample(size: number): Prepared {
    // Token 0 is in every vocabulary, and what a matrix multiplication costs doesn't depend on the row.
    return { size, shapeKey: '', truncated: false, tokens: size, value: new Int32Array(size) };
  }
}

function traitsOf(
  { build, text, batching }: TextEmbeddingManifest,
  tokenizerThreads: number,
): NonNullable<ModelDescription['text']> {
  return {
    overflow: text.overflow,
    ...(build.from === 'bert'
      ? { normalized: build.normalize, pooling: build.pooling, precision: build.precision }
      : {}),
    maxBatchItems: batching.maxItems,
    maxBatchTokens: batching.maxCost,
    tokenizerThreads,
  };
}

function textOf(item: RawItem): Uint8Array | ItemFault {
  const input = item.inputs.get(TEXT_INPUT);
  if (input?.datatype !== 'BYTES') {
    return { code: 'invalid_input', message: `The item has no BYTES input "${TEXT_INPUT}".` };
  }
  if (input.shape.some((size) => size !== 1)) {
    return { code: 'invalid_input', message: `The item has more than one "${TEXT_INPUT}".` };
  }
  return input.data.subarray(4);
}
