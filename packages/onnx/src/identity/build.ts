import { GraphBuilder } from '../graph/builder.js';
import { DataType } from '../proto/types.js';

const PAIRS = [
  ['fp32', DataType.FLOAT],
  ['int64', DataType.INT64],
  ['bool', DataType.BOOL],
  ['uint8', DataType.UINT8],
  ['bytes', DataType.STRING],
] as const;

/**
 * The no-op model: every input `x` of shape [batch, n_x] is returned as `x_out`. The second axes are independent,
 * so a caller that has only some of the inputs feeds the others as [batch, 0].
 *
 * @returns an ONNX file of about 1 KB.
 */
export function buildIdentity(): Uint8Array {
  const graph = new GraphBuilder('identity');
  for (const [name, type] of PAIRS) {
    const shape = ['batch', `n_${name}`];
    graph.input(name, type, shape);
    graph.op('Identity', [name], {}, `${name}_out`);
    graph.output(`${name}_out`, type, shape);
  }
  return graph.toBytes();
}
