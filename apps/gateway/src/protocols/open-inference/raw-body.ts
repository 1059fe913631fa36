import {
  bytesTensor,
  elementBytes,
  MillraceError,
  type ModelDescription,
  type Tensor,
} from '@millrace/shared';
import { matchInputs, tensorOfBytes } from '../model-tensors.js';

/**
 * A body without JSON: the bytes of one item of the model's one input. A dimension of any size takes what the
 * length of the body says; a BYTES input has one element, the body itself, without a length in front.
 * @throws MillraceError `invalid_input` when the model's inputs or the body's length don't allow it.
 */
export function readRaw(model: ModelDescription, body: Buffer): Tensor {
  const [spec, ...others] = model.inputs;
  if (!spec || others.length > 0) {
    throw invalid(
      `must have JSON in front: model ${model.name} has ${model.inputs.length} inputs, and only a model with one can be sent bytes alone`,
    );
  }
  const inner = spec.shape.slice(1);
  const open = inner.filter((size) => size < 0).length;
  if (spec.datatype === 'BYTES') {
    const shape = [1, ...inner.map((size) => Math.abs(size))];
    if (shape.some((size) => size !== 1))
      throw invalid(`must have JSON in front: an item of ${spec.name} has several elements`);
    return tensorOf(shape, bytesTensor(spec.name, [body]).data);
  }
  if (open > 1) {
    throw invalid(
      `must have JSON in front: ${spec.name} has ${open} dimensions of any size, whose sizes the length of the body does not tell`,
    );
  }
  const fixed = inner.reduce(
    (product, size) => (size < 0 ? product : product * size),
    elementBytes(spec.datatype),
  );
  const rest = fixed === 0 ? 0 : Math.floor(body.byteLength / fixed);
  return tensorOf([1, ...inner.map((size) => (size < 0 ? rest : size))], body);

  function tensorOf(shape: number[], data: Uint8Array): Tensor {
    const declared = { name: spec?.name ?? '', datatype: spec?.datatype ?? '', shape };
    const [input] = matchInputs(model, [declared], () => 'body');
    if (!input) throw invalid('is no input');
    return tensorOfBytes(model, input, data);
  }
}

function invalid(fault: string): MillraceError {
  return new MillraceError('invalid_input', `body ${fault}.`, { field: 'body' });
}
