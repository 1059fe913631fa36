import type { NodeShare } from './node-profile.js';

/** Optimizers of onnxruntime (1.30) that make nodes of some kinds. Those that do each other's work go together. */
interface Fusion {
  readonly optimizers: readonly string[];
  readonly makes: readonly string[];
}

const FUSIONS: readonly Fusion[] = [
  {
    optimizers: ['SkipLayerNormFusion'],
    makes: ['SkipLayerNormalization', 'SkipSimplifiedLayerNormalization'],
  },
  { optimizers: ['BiasSkipLayerNormFusion'], makes: ['SkipLayerNormalization'] },
  { optimizers: ['LayerNormFusionL1', 'LayerNormFusionL2'], makes: ['LayerNormalization'] },
  { optimizers: ['SimplifiedLayerNormFusion'], makes: ['SimplifiedLayerNormalization'] },
  { optimizers: ['EmbedLayerNormFusion'], makes: ['EmbedLayerNormalization'] },
  { optimizers: ['AttentionFusion'], makes: ['Attention'] },
  { optimizers: ['GroupQueryAttentionFusion'], makes: ['GroupQueryAttention'] },
  { optimizers: ['GeluFusionL1', 'GeluFusionL2'], makes: ['Gelu', 'BiasGelu'] },
  { optimizers: ['BiasGeluFusion'], makes: ['BiasGelu'] },
  { optimizers: ['FastGeluFusion'], makes: ['FastGelu'] },
  { optimizers: ['QuickGeluFusion'], makes: ['QuickGelu'] },
  { optimizers: ['BiasSoftmaxFusion'], makes: ['BiasSoftmax'] },
  { optimizers: ['MatmulTransposeFusion'], makes: ['FusedMatMul'] },
  { optimizers: ['MatMulScaleFusion'], makes: ['FusedMatMul'] },
  { optimizers: ['MatMulActivationFusion'], makes: ['FusedMatMul'] },
  { optimizers: ['MatMulAddFusion'], makes: ['Gemm', 'FusedGemm'] },
  { optimizers: ['GemmActivationFusion'], makes: ['FusedGemm'] },
  { optimizers: ['ConvActivationFusion', 'ConvAddActivationFusion'], makes: ['FusedConv'] },
  { optimizers: ['NchwcTransformer'], makes: ['ReorderInput', 'ReorderOutput'] },
  { optimizers: ['DynamicQuantizeMatMulFusion'], makes: ['DynamicQuantizeMatMul'] },
  { optimizers: ['MatMulIntegerToFloatFusion'], makes: ['MatMulIntegerToFloat'] },
  {
    optimizers: ['QDQSelectorActionTransformer'],
    makes: ['MatMulIntegerToFloat', 'QLinearMatMul', 'QLinearConv', 'QLinearAdd', 'QGemm'],
  },
  { optimizers: ['TransposeOptimizer'], makes: ['Transpose'] },
];

/** The fusions that can be at work in a profiled graph, those that make the costliest nodes first. */
export function fusionsAtWork(profile: readonly NodeShare[]): (readonly string[])[] {
  const shares = new Map(profile.map(({ kind, share }) => [kind, share]));
  return FUSIONS.map(({ optimizers, makes }) => ({
    optimizers,
    share: makes.reduce((sum, kind) => sum + (shares.get(kind) ?? 0), 0),
  }))
    .filter(({ share }) => share > 0)
    .sort((a, b) => b.share - a.share)
    .map(({ optimizers }) => optimizers);
}
