import { formatRecipe } from '@millrace/onnx';
import { specOf } from './model-folder.js';

/** config.json's numbers of an encoder just large enough to be one. */
export const TINY_CONFIG = {
  hidden_size: 4,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  intermediate_size: 8,
  hidden_act: 'gelu',
  layer_norm_eps: 1e-12,
  max_position_embeddings: 6,
  vocab_size: 10,
  type_vocab_size: 2,
};

/** Its weights as a safetensors file. */
export function tinyEncoder(): Buffer {
  const { hidden_size: hidden, intermediate_size: intermediate } = TINY_CONFIG;
  const layer = 'encoder.layer.0';
  return safetensorsOf({
    'embeddings.word_embeddings.weight': [10, hidden],
    'embeddings.position_embeddings.weight': [6, hidden],
    'embeddings.token_type_embeddings.weight': [2, hidden],
    ...pair('embeddings.LayerNorm', [hidden]),
    ...pair(`${layer}.attention.self.query`, [hidden, hidden]),
    ...pair(`${layer}.attention.self.key`, [hidden, hidden]),
    ...pair(`${layer}.attention.self.value`, [hidden, hidden]),
    ...pair(`${layer}.attention.output.dense`, [hidden, hidden]),
    ...pair(`${layer}.attention.output.LayerNorm`, [hidden]),
    ...pair(`${layer}.intermediate.dense`, [intermediate, hidden]),
    ...pair(`${layer}.output.dense`, [hidden, intermediate]),
    ...pair(`${layer}.output.LayerNorm`, [hidden]),
  });
}

/** A recipe to quantize these weights by; the same activation scale everywhere. */
export function tinyRecipe(weights: Buffer, scale: number): string {
  const { hidden_size: hidden, intermediate_size: intermediate } = TINY_CONFIG;
  const inputs = { qkv: hidden, attention_out: hidden, up: hidden, down: intermediate };
  const matmuls = Object.entries(inputs).map(([kind, channels]) => [
    `layer0.${kind}`,
    { alpha: 0.5, clip: 1, scale, zeroPoint: 128, channelMaxima: new Uint8Array(channels).fill(100) },
  ]);
  return formatRecipe({ weightsSha256: specOf(weights).sha256, matmuls: Object.fromEntries(matmuls) });
}

function pair(name: string, shape: number[]): Record<string, number[]> {
  return { [`${name}.weight`]: shape, [`${name}.bias`]: shape.slice(0, 1) };
}

function safetensorsOf(shapes: Record<string, number[]>): Buffer {
  const header: Record<string, unknown> = {};
  let count = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const size = shape.reduce((product, dimension) => product * dimension, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [count * 4, (count + size) * 4] };
    count += size;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const values = Float32Array.from({ length: count }, (_, i) => Math.sin(i + 1));
  return Buffer.concat([length, text, Buffer.from(values.buffer)]);
}
