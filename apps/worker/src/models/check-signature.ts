import { type Manifest, StartupError, type TensorSpec } from '@millrace/shared';
import type { Signature } from '../session/messages.js';

/** An encoder's own tensors, whatever its doors take and give. */
const ENCODER_INPUTS: readonly TensorSpec[] = [
  { name: 'input_ids', datatype: 'INT64', shape: [-1, -1] },
  { name: 'attention_mask', datatype: 'INT64', shape: [-1, -1] },
];

/**
 * Compares what the manifest says with what the ONNX file takes and gives: a door that announces other
 * tensors than the model has would lie to every client.
 * @throws StartupError naming the tensor, what the manifest says of it and what the file has.
 */
export function checkSignature(manifest: Manifest, file: Signature): void {
  const check = (kind: 'input' | 'output', said: readonly TensorSpec[], has: readonly TensorSpec[]): void => {
    for (const spec of said) {
      const found = has.find(({ name }) => name === spec.name);
      if (!found || !agree(spec, found)) throw differs(manifest, kind, spec, found, has);
    }
    const extra = has.find(({ name }) => !said.some((spec) => spec.name === name));
    if (kind === 'input' && extra) throw differs(manifest, kind, undefined, extra, has);
  };
  if (manifest.task === 'tensor') {
    check('input', manifest.inputs, file.inputs);
    check('output', manifest.outputs, file.outputs);
    return;
  }
  check('input', ENCODER_INPUTS, file.inputs);
  const [output, ...others] = file.outputs;
  const { dimensions } = manifest.embedding;
  if (
    !output ||
    others.length > 0 ||
    !agree({ ...output, datatype: 'FP32', shape: [-1, dimensions] }, output)
  ) {
    throw new StartupError(
      `The model ${manifest.name} gives ${list(file.outputs)}, not one FP32 [-1,${dimensions}].`,
      'Correct embedding.dimensions in its model.yaml, or serve a file that gives one embedding.',
    );
  }
}

/** Whether a manifest's tensor can be the file's: -1 on either side is any size; the item axis is free. */
function agree(said: TensorSpec, has: TensorSpec): boolean {
  if (said.datatype !== has.datatype) return false;
  // The file may leave its rank open too, which it writes as no shape at all.
  if (has.shape.length === 0) return true;
  return (
    said.shape.length === has.shape.length &&
    said.shape.every((size, axis) => size === -1 || has.shape[axis] === -1 || size === has.shape[axis])
  );
}

function differs(
  { name }: Manifest,
  kind: string,
  said: TensorSpec | undefined,
  found: TensorSpec | undefined,
  has: readonly TensorSpec[],
): StartupError {
  const what = said
    ? `The manifest of ${name} says ${kind} ${text(said)}, but its file has ${found ? text(found) : list(has)}.`
    : `The file of ${name} also takes the input ${found ? text(found) : ''}, which its manifest does not list.`;
  return new StartupError(what, `Correct ${kind}s in its model.yaml.`);
}

function text({ name, datatype, shape }: TensorSpec): string {
  return `${name} ${datatype} [${shape}]`;
}

function list(specs: readonly TensorSpec[]): string {
  return specs.map(text).join(', ') || 'none';
}
