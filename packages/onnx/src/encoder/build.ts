import { GraphBuilder } from '../graph/builder.js';
import { readSafetensors } from '../safetensors/read.js';
import { type Pooling, parseEncoderConfig } from './config.js';
import { type EncoderOptions, type LinearKind, type WeightWriter, writeEncoder } from './graph.js';
import { collectWeights, type EncoderWeights, type Linear } from './weights.js';

/** The weights of one matmul. */
export function linearOf(weights: EncoderWeights, index: number, kind: LinearKind): Linear {
  const layer = weights.layers[index];
  if (layer === undefined) throw new RangeError(`no layer ${index}`);
  return layer[kind === 'attention_out' ? 'attentionOut' : kind];
}

/** Writes weights as float32. */
export function floatWriter(weights: EncoderWeights, hidden: number): WeightWriter {
  return {
    words: (graph, ids) =>
      graph.op('Gather', [graph.constant('words', [weights.vocabulary, hidden], weights.words), ids]),
    matmul: (graph, index, kind, x) => {
      const { inputs, outputs, weight } = linearOf(weights, index, kind);
      return graph.op('MatMul', [
        x,
        graph.constant(`layer${index}.${kind}.weight`, [inputs, outputs], weight),
      ]);
    },
  };
}

/** The encoder in float32, as an ONNX file. */
export function buildFloatEncoder(weights: EncoderWeights, options: EncoderOptions): Uint8Array {
  const graph = new GraphBuilder('encoder');
  writeEncoder(graph, weights, options, floatWriter(weights, options.config.hidden));
  return graph.toBytes();
}

export interface EncoderSource {
  /** The checkpoint's file. */
  readonly safetensors: Uint8Array;
  /** The parsed config.json beside it. */
  readonly config: unknown;
  readonly pooling: Pooling;
  /** Scale each embedding to length 1. */
  readonly normalize: boolean;
}

/**
 * Builds a BERT-like encoder as a float32 ONNX file: `input_ids`, `attention_mask` int64 [batch, seq] ->
 * `sentence_embedding` float32 [batch, hidden].
 *
 * @throws SafetensorsError for a damaged checkpoint, UnsupportedModelError for one that the builder can't follow.
 */
export function buildEncoder({ safetensors, config, pooling, normalize }: EncoderSource): Uint8Array {
  const parsed = parseEncoderConfig(config);
  const weights = collectWeights(readSafetensors(safetensors), parsed);
  return buildFloatEncoder(weights, { config: parsed, pooling, normalize });
}
