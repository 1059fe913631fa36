import { bytesTensor, MillraceError, type ModelDescription, type Tensor } from '@millrace/shared';
import { requireText } from './elements.js';

/**
 * The one input of a text model, from what a client sent as texts.
 * @param fieldOf names the text of an index as the client wrote it.
 * @throws MillraceError `invalid_input` naming the first index that is not a text, or empty.
 */
export function readTexts(
  model: ModelDescription,
  values: readonly unknown[],
  fieldOf: (index: number) => string,
): Tensor {
  const texts: string[] = new Array(values.length);
  for (let index = 0; index < values.length; index++) {
    const text = requireText(values[index], () => fieldOf(index), index);
    if (text === '') {
      const field = fieldOf(index);
      throw new MillraceError('invalid_input', `${field} must not be empty.`, { field, index });
    }
    texts[index] = text;
  }
  return bytesTensor(model.inputs[0]?.name ?? 'text', texts);
}
