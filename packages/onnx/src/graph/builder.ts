import { writeModel } from '../proto/codec.js';
import { makeTensor } from '../proto/tensors.js';
import {
  type AttributeProto,
  AttributeType,
  type DataType,
  type GraphProto,
  type NodeProto,
  type TensorProto,
  type ValueInfoProto,
} from '../proto/types.js';

/**
 * A node's attribute: a number or a list of numbers is an integer, `{float}` is a float, a builder is a
 * subgraph (the body of a Loop).
 */
export type Attribute = number | readonly number[] | { float: number } | GraphBuilder;

/** A dimension: a size, or the name of one that is known only when the model runs. */
export type Dimension = number | string;

const IR_VERSION = 8;
const OPSET = 17;

/**
 * Collects nodes and initializers in the order in which they are asked for, and gives values names, so that a
 * network can be written down as nested calls. Equal input gives byte-identical files.
 */
export class GraphBuilder {
  private readonly nodes: NodeProto[] = [];
  private readonly initializers = new Map<string, TensorProto>();
  private readonly inputs: ValueInfoProto[] = [];
  private readonly outputs: ValueInfoProto[] = [];
  private readonly metadata: { key: string; value: string }[] = [];

  constructor(private readonly name: string) {}

  input(name: string, type: DataType, shape: readonly Dimension[]): string {
    this.inputs.push(valueInfo(name, type, shape));
    return name;
  }

  output(name: string, type: DataType, shape: readonly Dimension[]): void {
    this.outputs.push(valueInfo(name, type, shape));
  }

  /** Adds an initializer, once per name. */
  constant(name: string, dims: readonly number[], data: Parameters<typeof makeTensor>[2]): string {
    if (!this.initializers.has(name)) this.initializers.set(name, makeTensor(name, dims, data));
    return name;
  }

  /** A float scalar, named after its value. */
  scalar(value: number): string {
    return this.constant(`scalar_${value}`, [], new Float32Array([value]));
  }

  /** A list of integers (shapes, axes), named after its values. */
  ints(...values: number[]): string {
    return this.constant(`ints_${values.join('_')}`, [values.length], BigInt64Array.from(values, BigInt));
  }

  /** An integer scalar. */
  int(value: number): string {
    return this.constant(`int_${value}`, [], BigInt64Array.of(BigInt(value)));
  }

  /** Adds a node with one output and returns that output's name: `output` if given. */
  op(
    type: string,
    inputs: readonly string[],
    attributes: Record<string, Attribute> = {},
    output?: string,
  ): string {
    const [value] = this.multi(type, inputs, 1, attributes, output) as [string];
    return value;
  }

  /** Adds a node with several outputs. */
  multi(
    type: string,
    inputs: readonly string[],
    outputs: number,
    attributes: Record<string, Attribute> = {},
    name = `${type}_${this.nodes.length}`,
  ): string[] {
    const values = outputs === 1 ? [name] : Array.from({ length: outputs }, (_, i) => `${name}_${i}`);
    this.nodes.push({
      op_type: type,
      name: `${name}_node`,
      input: [...inputs],
      output: values,
      attribute: Object.entries(attributes).map(([key, value]) => attribute(key, value)),
    });
    return values;
  }

  /** A line of the file's metadata. */
  describe(key: string, value: string): void {
    this.metadata.push({ key, value });
  }

  /** The ONNX file. */
  toBytes(): Uint8Array {
    return writeModel({
      ir_version: IR_VERSION,
      producer_name: 'millrace',
      opset_import: [{ domain: '', version: OPSET }],
      graph: this.toGraph(),
      metadata_props: this.metadata,
    });
  }

  /** The graph alone, as the body of another graph's node. */
  toGraph(): GraphProto {
    return {
      name: this.name,
      node: this.nodes,
      initializer: [...this.initializers.values()],
      input: this.inputs,
      output: this.outputs,
    };
  }
}

function attribute(name: string, value: Attribute): AttributeProto {
  if (typeof value === 'number') return { name, type: AttributeType.INT, i: value };
  if (value instanceof GraphBuilder) return { name, type: AttributeType.GRAPH, g: value.toGraph() };
  if ('float' in value) return { name, type: AttributeType.FLOAT, f: value.float };
  return { name, type: AttributeType.INTS, ints: [...value] };
}

function valueInfo(name: string, type: DataType, shape: readonly Dimension[]): ValueInfoProto {
  const dim = shape.map((size) => (typeof size === 'number' ? { dim_value: size } : { dim_param: size }));
  return { name, type: { tensor_type: { elem_type: type, shape: { dim } } } };
}
