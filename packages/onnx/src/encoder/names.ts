import type { EncoderConfig } from './config.js';

/** Where a family keeps the tensors of one layer; each name has a `.weight` and a `.bias`. */
export interface LayerNames {
  readonly query: string;
  readonly key: string;
  readonly value: string;
  readonly attentionOut: string;
  readonly attentionNorm: string;
  readonly up: string;
  readonly down: string;
  readonly outputNorm: string;
}

/** RoBERTa's tensors are named as BERT's are. */
export function layerNames(family: EncoderConfig['family'], layer: number): LayerNames {
  if (family === 'distilbert') {
    const prefix = `transformer.layer.${layer}`;
    return {
      query: `${prefix}.attention.q_lin`,
      key: `${prefix}.attention.k_lin`,
      value: `${prefix}.attention.v_lin`,
      attentionOut: `${prefix}.attention.out_lin`,
      attentionNorm: `${prefix}.sa_layer_norm`,
      up: `${prefix}.ffn.lin1`,
      down: `${prefix}.ffn.lin2`,
      outputNorm: `${prefix}.output_layer_norm`,
    };
  }
  const prefix = `encoder.layer.${layer}`;
  return {
    query: `${prefix}.attention.self.query`,
    key: `${prefix}.attention.self.key`,
    value: `${prefix}.attention.self.value`,
    attentionOut: `${prefix}.attention.output.dense`,
    attentionNorm: `${prefix}.attention.output.LayerNorm`,
    up: `${prefix}.intermediate.dense`,
    down: `${prefix}.output.dense`,
    outputNorm: `${prefix}.output.LayerNorm`,
  };
}
