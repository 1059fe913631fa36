import {
  bytesElements,
  type Datatype,
  elementBytes,
  elementCount,
  joinItems,
  type ModelDescription,
  type TensorManifest,
  type TensorSpec,
} from '@millrace/shared';
import type { WireTensor } from '../session/messages.js';
import { splitOutputs } from './split-outputs.js';
import {
  type ItemFault,
  type ItemOutput,
  type Prepared,
  platformOf,
  type RawInput,
  type RawItem,
  type Task,
} from './task.js';

/** Widths of dimensions of any size at which a model is measured. */
const SAMPLE_WIDTHS = [1, 32, 256];

/** Any ONNX model as plain tensors: inputs and outputs are the model's own, items on the first axis. */
export class TensorTask implements Task {
  readonly description: ModelDescription;
  readonly #inputs: readonly TensorSpec[];
  readonly #anyOptional: boolean;

  constructor(manifest: TensorManifest) {
    this.#inputs = manifest.inputs;
    this.#anyOptional = manifest.inputs.some((input) => input.optional);
    this.description = {
      name: manifest.name,
      version: manifest.version,
      task: manifest.task,
      platform: platformOf(manifest),
      inputs: manifest.inputs,
      outputs: manifest.outputs,
      limits: { maxRequestItems: manifest.limits.maxRequestItems },
    };
  }

  async warm(): Promise<void> {}

  async prepare(items: readonly RawItem[]): Promise<(Prepared | ItemFault)[]> {
    return items.map((item) => this.#prepare(item));
  }

  #prepare(item: RawItem): Prepared | ItemFault {
    const value: RawInput[] = [];
    let size = 0;
    for (const spec of this.#inputs) {
      const input = item.inputs.get(spec.name) ?? absent(spec);
      if (!input) return { code: 'invalid_input', message: `The input "${spec.name}" is missing.` };
      const fault = mismatch(spec, input) ?? textFault(spec, input);
      if (fault) return { code: 'invalid_input', message: fault };
      size += elementCount(input.shape);
      value.push(input);
    }
    const shapeKey = value.map((input) => input.shape.join('x')).join(',');
    return { size: Math.max(size, 1), shapeKey, truncated: false, value };
  }

  assemble(group: readonly Prepared[]): WireTensor[] {
    return this.#inputs.map((spec, i) => {
      const rows = group.map((item) => (item.value as RawInput[])[i]);
      const shape = rows[0]?.shape ?? [];
      const tensor = joinItems(
        spec.name,
        spec.datatype,
        shape,
        rows.map((row) => row?.data ?? new Uint8Array(0)),
      );
      return { ...tensor, data: tensor.data as Uint8Array<ArrayBuffer> };
    });
  }

  split(outputs: readonly WireTensor[], count: number): ItemOutput[][] {
    // An output of no elements where inputs may be left out is the echo of one that was.
    const present = this.#anyOptional ? outputs.filter((output) => !output.shape.includes(0)) : outputs;
    return splitOutputs(present, count);
  }

  get sampleSizes(): readonly number[] {
    const sizes = SAMPLE_WIDTHS.map((width) => this.#sample(width).size);
    return [...new Set(sizes)];
  }

  sample(size: number): Prepared {
    const widths = SAMPLE_WIDTHS.map((width) => this.#sample(width));
    return widths.find((item) => item.size >= size) ?? this.#sample(1);
  }

  /** Zeros, with every dimension of any size set to `width`. */
  #sample(width: number): Prepared {
    const value = this.#inputs.map(({ datatype, shape }) =>
      zeros(
        datatype,
        shape.slice(1).map((n) => (n === -1 ? width : n)),
      ),
    );
    const size = value.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    return { size: Math.max(size, 1), shapeKey: '', truncated: false, value };
  }
}

function zeros(datatype: Datatype, shape: number[]): RawInput {
  // A BYTES element of no bytes is its length alone: four zeros.
  return { datatype, shape, data: new Uint8Array(elementCount(shape) * (elementBytes(datatype) || 4)) };
}

/** What a left-out optional input is fed with: zero elements, which needs a dimension of any size. */
function absent(spec: TensorSpec): RawInput | undefined {
  const inner = spec.shape.slice(1);
  if (!spec.optional || !inner.includes(-1)) return undefined;
  return { datatype: spec.datatype, shape: inner.map((n) => Math.max(n, 0)), data: new Uint8Array(0) };
}

function mismatch(spec: TensorSpec, input: RawInput): string | undefined {
  if (input.datatype !== spec.datatype) {
    return `The input "${spec.name}" is ${input.datatype}, but the model takes ${spec.datatype}.`;
  }
  const wanted = spec.shape.slice(1);
  const fits =
    wanted.length === input.shape.length && wanted.every((n, i) => n === -1 || n === input.shape[i]);
  if (fits) return undefined;
  return `An item of the input "${spec.name}" has shape [${input.shape}], but the model takes [${wanted}].`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * onnxruntime-node hands strings over as C strings of UTF-8: it would cut an element at its first NUL and
 * replace bytes that are not UTF-8, without a word.
 */
function textFault(spec: TensorSpec, input: RawInput): string | undefined {
  if (spec.datatype !== 'BYTES') return undefined;
  for (const element of bytesElements({ ...input, name: spec.name, shape: [...input.shape] })) {
    if (element.includes(0)) return `The input "${spec.name}" holds a NUL, which the model's strings cannot.`;
    try {
      utf8.decode(element);
    } catch {
      return `The input "${spec.name}" is not valid UTF-8, as the model's strings must be.`;
    }
  }
  return undefined;
}
