import type ort from 'onnxruntime-node';
import { floatWriter } from '../encoder/build.js';
import { type EncoderOptions, writeEncoder } from '../encoder/graph.js';
import {
  type EncoderWeights,
  LINEAR_KINDS,
  type LinearKind,
  linearOf,
  matmulName,
} from '../encoder/weights.js';
import { GraphBuilder } from '../graph/builder.js';
import { DataType } from '../proto/types.js';
import { batchesByLength, longest, padBatch, type Tokens } from '../runtime/batch.js';
import { floats, openSession } from '../runtime/session.js';

/** What reaches one matmul: row-major [rows, inputs]. */
export interface Activations {
  readonly rows: number;
  readonly data: Float32Array;
}

const BATCH = 16;

/** Runs an encoder in float32 and records what reaches its matmuls, padding left out. */
export class Calibration {
  private constructor(
    private readonly session: ort.InferenceSession,
    private readonly taps: ReadonlyMap<string, string>,
    private readonly batches: readonly Tokens[][],
  ) {}

  static async open(
    weights: EncoderWeights,
    options: EncoderOptions,
    texts: readonly Tokens[],
  ): Promise<Calibration> {
    const graph = new GraphBuilder('calibration');
    const taps = new Map<string, string>();
    const plain = floatWriter(weights, options.config.hidden);
    writeEncoder(graph, weights, options, {
      words: plain.words,
      matmul: (into, layer, kind, x) => {
        into.output(x, DataType.FLOAT, ['batch', 'seq', linearOf(weights, layer, kind).inputs]);
        taps.set(matmulName(layer, kind), x);
        return plain.matmul(into, layer, kind, x);
      },
    });
    return new Calibration(await openSession(graph.toBytes()), taps, batchesByLength(texts, BATCH));
  }

  /**
   * The inputs of one layer's matmuls, at most `maxRows` of them, evenly spread over the texts. One layer at a
   * time, as all of them together would fill the memory.
   */
  async layer(layer: number, maxRows: number): Promise<Record<LinearKind, Activations>> {
    const tokens = this.batches.flat(2).length;
    const rows = Math.min(tokens, maxRows);
    const isKept = (token: number): boolean =>
      Math.floor(((token + 1) * rows) / tokens) > Math.floor((token * rows) / tokens);
    const collectors = LINEAR_KINDS.map((kind) => [this.tap(layer, kind), new RowCollector(rows)] as const);
    const names = collectors.map(([name]) => name);
    let token = 0;
    for (const batch of this.batches) {
      const outputs = await this.session.run(padBatch(batch), names);
      const length = longest(batch);
      const kept = batch
        .flatMap((text, item) => text.map((_, place) => item * length + place))
        .filter(() => isKept(token++));
      for (const [name, collector] of collectors) {
        collector.take(floats(outputs, name), batch.length * length, kept);
      }
    }
    const [qkv, attentionOut, up, down] = collectors.map(([, collector]) => collector.activations);
    if (!qkv || !attentionOut || !up || !down) throw new Error('unreachable: a collector for each kind');
    return { qkv, attention_out: attentionOut, up, down };
  }

  close(): Promise<void> {
    return this.session.release();
  }

  private tap(layer: number, kind: LinearKind): string {
    const name = this.taps.get(matmulName(layer, kind));
    if (name === undefined) throw new RangeError(`no layer ${layer}`);
    return name;
  }
}

/** Gathers chosen rows of many matrices of one width into one. */
class RowCollector {
  private data = new Float32Array(0);
  private filled = 0;

  constructor(private readonly rows: number) {}

  take(matrix: Float32Array, matrixRows: number, chosen: readonly number[]): void {
    const width = matrix.length / matrixRows;
    if (this.data.length === 0) this.data = new Float32Array(this.rows * width);
    for (const row of chosen) {
      this.data.set(matrix.subarray(row * width, (row + 1) * width), this.filled * width);
      this.filled++;
    }
  }

  get activations(): Activations {
    return { rows: this.rows, data: this.data };
  }
}
