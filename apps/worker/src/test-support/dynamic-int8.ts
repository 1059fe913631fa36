import { DataType, type ModelProto, readModel, toBigInt, writeModel } from '@millrace/onnx';

type Graph = NonNullable<ModelProto['graph']>;
type Node = NonNullable<Graph['node']>[number];
type Tensor = NonNullable<Graph['initializer']>[number];

/**
 * An FP32 encoder with its weighted MatMuls quantized dynamically, as the usual tools do it:
 * DynamicQuantizeLinear -> MatMulInteger with a scale a column. Shapes are written down, as exporters do:
 * without them onnxruntime doesn't fuse the layer normalizations.
 */
export function quantizeDynamically(model: Uint8Array, hidden: number): Uint8Array {
  const proto = readModel(model);
  const { graph } = proto;
  if (!graph) throw new Error('the model has no graph');
  const weights = new Map((graph.initializer ?? []).map((tensor) => [tensor.name, tensor]));
  const nodes: Node[] = [];
  for (const node of graph.node ?? []) {
    const weight = node.op_type === 'MatMul' ? weights.get(node.input?.[1]) : undefined;
    if (!weight) {
      nodes.push(node);
      continue;
    }
    const { name = '', tensors } = quantized(weight);
    weights.delete(name);
    for (const tensor of tensors) weights.set(tensor.name, tensor);
    nodes.push(...integerMatMul(node.input?.[0] ?? '', name, node.output?.[0] ?? ''));
  }
  // The embeddings' own normalization adds positions, which have no batch axis: it is never fused.
  const [first, ...normalized] = nodes.filter(({ op_type }) => op_type === 'LayerNormalization');
  const sums = normalized.map(({ input }) => nodes.find(({ output }) => output?.[0] === input?.[0]));
  const activations = new Set(
    [first, ...normalized]
      .map((node) => node?.output?.[0] ?? '')
      .concat(sums.flatMap((sum) => sum?.input ?? [])),
  );
  graph.node = nodes;
  graph.initializer = [...weights.values()];
  graph.value_info = [...activations].map((name) => ({
    name,
    type: {
      tensor_type: {
        elem_type: DataType.FLOAT,
        shape: { dim: [{ dim_param: 'batch' }, { dim_param: 'seq' }, { dim_value: hidden }] },
      },
    },
  }));
  return writeModel(proto);
}

function integerMatMul(x: string, weight: string, output: string): Node[] {
  const node = (op_type: string, input: string[], outputs: string[]): Node => ({
    op_type,
    name: `${outputs[0]}_node`,
    input,
    output: outputs,
  });
  const [q, scale, zero] = [`${output}_q`, `${output}_scale`, `${output}_zero`];
  const cast = node('Cast', [`${output}_int`], [`${output}_float`]);
  cast.attribute = [{ name: 'to', type: 2, i: DataType.FLOAT }];
  return [
    node('DynamicQuantizeLinear', [x], [q, scale, zero]),
    node('MatMulInteger', [q, `${weight}.q`, zero, `${weight}.zero`], [`${output}_int`]),
    cast,
    node('Mul', [scale, `${weight}.scale`], [`${output}_scales`]),
    node('Mul', [`${output}_float`, `${output}_scales`], [output]),
  ];
}

function quantized({ name, dims = [], raw_data = new Uint8Array() }: Tensor): {
  name?: string;
  tensors: Tensor[];
} {
  const [rows = 0, columns = 0] = dims.map((dim) => Number(toBigInt(dim)));
  const values = new Float32Array(Uint8Array.from(raw_data).buffer);
  const scales = new Float32Array(columns);
  for (const [i, value] of values.entries()) {
    scales[i % columns] = Math.max(scales[i % columns] ?? 0, Math.abs(value) / 127);
  }
  const int8 = Int8Array.from(values, (value, i) => Math.round(value / (scales[i % columns] || 1)));
  const tensor = (suffix: string, shape: number[], data_type: DataType, data: ArrayBufferView): Tensor => ({
    name: `${name}.${suffix}`,
    dims: shape,
    data_type,
    raw_data: new Uint8Array(data.buffer),
  });
  const tensors = [
    tensor('q', [rows, columns], DataType.INT8, int8),
    tensor('scale', [columns], DataType.FLOAT, scales),
    tensor('zero', [columns], DataType.INT8, new Int8Array(columns)),
  ];
  return name === undefined ? { tensors } : { name, tensors };
}
