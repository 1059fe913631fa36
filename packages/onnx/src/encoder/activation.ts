import type { GraphBuilder } from '../graph/builder.js';
import type { Activation } from './config.js';

/** Writes an activation function in ONNX's basic operators, in the forms that onnxruntime fuses. */
export function activate(graph: GraphBuilder, kind: Activation, x: string): string {
  switch (kind) {
    case 'gelu':
      return gelu(graph, x);
    case 'gelu_tanh':
      return geluTanh(graph, x);
    case 'quick_gelu':
      return graph.op('Mul', [x, graph.op('Sigmoid', [graph.op('Mul', [x, graph.scalar(1.702)])])]);
    case 'relu':
      return graph.op('Relu', [x]);
    case 'silu':
      return graph.op('Mul', [x, graph.op('Sigmoid', [x])]);
  }
}

/** x/2 (1 + erf(x / sqrt 2)) (Hendrycks and Gimpel 2016) */
function gelu(graph: GraphBuilder, x: string): string {
  const erf = graph.op('Erf', [graph.op('Div', [x, graph.scalar(Math.fround(Math.SQRT2))])]);
  const doubled = graph.op('Mul', [x, graph.op('Add', [erf, graph.scalar(1)])]);
  return graph.op('Mul', [doubled, graph.scalar(0.5)]);
}

/** x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the same paper's approximation */
function geluTanh(graph: GraphBuilder, x: string): string {
  const cubed = graph.op('Mul', [graph.op('Mul', [graph.op('Mul', [x, x]), x]), graph.scalar(0.044715)]);
  const inner = graph.op('Mul', [graph.op('Add', [x, cubed]), graph.scalar(Math.sqrt(2 / Math.PI))]);
  const grown = graph.op('Add', [graph.op('Tanh', [inner]), graph.scalar(1)]);
  return graph.op('Mul', [graph.op('Mul', [x, grown]), graph.scalar(0.5)]);
}
