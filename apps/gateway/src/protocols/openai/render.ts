import { MillraceError } from '@millrace/shared';
import type { InferResult } from '../../inference/request.js';
import type { AnswerWriter } from '../answer-writer.js';
import { floatsOf } from '../elements.js';
import { JsonWriter } from '../json-writer.js';
import { shortVector } from '../short-vectors.js';
import type { AskedEmbeddings } from './parse.js';

/** Enough for the same float32 to be read back. */
const EXACT_DIGITS = 9;

/** Writes the vectors of a request whose items all have answers, from the bytes of the replies. */
export const writeEmbeddings: AnswerWriter<AskedEmbeddings> = (result, _timings, asked) => ({
  contentType: 'application/json',
  body: renderEmbeddings(result, asked),
});

function renderEmbeddings(result: InferResult, { format, dimensions }: AskedEmbeddings): string | Buffer {
  const { model, tokens, truncated } = result;
  const digits = model.jsonDigits ?? EXACT_DIGITS;
  const writer = new JsonWriter();
  writer.raw('{"object":"list","data":[');
  for (let index = 0; index < result.items.length; index++) {
    const vector = vectorOf(result, index, dimensions);
    writer.raw(`${index > 0 ? ',' : ''}{"object":"embedding","index":${index},"embedding":`);
    if (format === 'base64') writer.raw('"').base64(vector).raw('"}');
    else writer.raw('[').roundedList(floatsOf(vector), digits).raw(']}');
  }
  writer.raw('],"model":').string(model.name);
  // No field of OpenAI's, which its clients pass on all the same: there, a text that is too long is refused.
  if (truncated.length > 0) writer.raw(`,"truncated":[${truncated}]`);
  return writer.raw(`,"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`).end();
}

/** The bytes of an item's vector, FP32. */
function vectorOf({ outputs }: InferResult, index: number, dimensions: number | undefined): Uint8Array {
  const [column] = outputs;
  const vector = column?.items[index];
  if (column?.datatype !== 'FP32' || !vector) {
    throw new MillraceError('internal', undefined, {}, { cause: new Error(`Item ${index} has no vector.`) });
  }
  return dimensions === undefined ? vector : shortVector(vector, dimensions);
}
