import { GraphBuilder } from '../graph/builder.js';
import { readSafetensors } from '../safetensors/read.js';
import { type Pooling, parseEncoderConfig } from './config.js';
import { type EncoderOptions, type WeightWriter, writeEncoder } from './graph.js';
import { collectWeights, type EncoderWeights, linearOf, matmulName } from './weights.js';

/** Writes weights as float32. */
export function floatWriter(weights: EncoderWeights, hidden: number): WeightWriter {
  return {
    words: (graph, ids) =>
      graph.op('Gather', [graph.constant('words', [weights.vocabulary, hidden], weights.words), ids]),
    matmul: (graph, index, kind, x) => {
      const { inputs, outputs, weight } = linearOf(weights, index, kind);
      return graph.op('MatMul', [
        x,
        graph.constant(`${matmulName(index, kind)}.weight`, [inputs, outputs], weight),
      ]);
    },
  };
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

/** @throws SafetensorsError for a damaged checkpoint, UnsupportedModelError for one that can't be followed. */
export function loadEncoder(source: EncoderSource): { weights: EncoderWeights; options: EncoderOptions } {
  const config = parseEncoderConfig(source.config);
  const weights = collectWeights(readSafetensors(source.safetensors), config);
  return { weights, options: { config, pooling: source.pooling, normalize: source.normalize } };
}

/**
 * Builds a BERT-like encoder as a float32 ONNX file: `input_ids`, `attention_mask` int64 [batch, seq] ->
 * `sentence_embedding` float32 [batch, hidden].
 *
 * @throws SafetensorsError for a damaged checkpoint, UnsupportedModelError for one that can't be followed.
 */
export function buildEncoder(source: EncoderSource): Uint8Array {
  const { weights, options } = loadEncoder(source);
  const graph = new GraphBuilder('encoder');
  writeEncoder(graph, weights, options, floatWriter(weights, options.config.hidden));
  return graph.toBytes();
}
