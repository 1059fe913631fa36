import type ort from 'onnxruntime-node';
import { floatWriter } from '../encoder/build.js';
import { type EncoderOptions, writeEncoder } from '../encoder/graph.js';
import { type EncoderWeights, LINEAR_KINDS, type LinearKind, linearOf } from '../encoder/weights.js';
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
        taps.set(`layer${layer}.${kind}`, x);
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
    const tokens = this.batches.flat().reduce((sum, text) => sum + text.length, 0);
    const rows = Math.min(tokens, maxRows);
    const names = LINEAR_KINDS.map((kind) => this.tap(layer, kind));
    const collected = names.map(() => ({ data: new Float32Array(0) }));
    let seen = 0;
    let row = 0;
    for (const batch of this.batches) {
      const outputs = await this.session.run(padBatch(batch), names);
      const length = longest(batch);
      batch.forEach((text, item) => {
        for (let place = 0; place < text.length; place++, seen++) {
          if (Math.floor(((seen + 1) * rows) / tokens) === row) continue;
          names.forEach((name, i) => {
            const from = floats(outputs, name);
            const width = from.length / (batch.length * length);
            const target = collected[i];
            if (target === undefined) return;
            if (target.data.length === 0) target.data = new Float32Array(rows * width);
            const at = (item * length + place) * width;
            target.data.set(from.subarray(at, at + width), row * width);
          });
          row++;
        }
      });
    }
    const entries = LINEAR_KINDS.map((kind, i) => [
      kind,
      { rows, data: collected[i]?.data ?? new Float32Array(0) },
    ]);
    return Object.fromEntries(entries) as Record<LinearKind, Activations>;
  }

  close(): Promise<void> {
    return this.session.release();
  }

  private tap(layer: number, kind: LinearKind): string {
    const name = this.taps.get(`layer${layer}.${kind}`);
    if (name === undefined) throw new RangeError(`no layer ${layer}`);
    return name;
  }
}
