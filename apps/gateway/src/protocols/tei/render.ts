import { bytesElements, MillraceError } from '@millrace/shared';
import type { InferResult, OutputColumn } from '../../inference/request.js';
import type { AnswerWriter } from '../answer-writer.js';
import { floatsOf } from '../elements.js';
import { JsonWriter } from '../json-writer.js';
import { shortVector } from '../short-vectors.js';
import { writeItem } from '../write-tensor.js';
import type { Shaping } from './options.js';

const COMMA = 0x2c;
const FLOAT_BYTES = 4;
const JSON_TYPE = 'application/json';
/** Significant digits of a similarity: as many as an FP32 has. */
const SIMILARITY_DIGITS = 7;

/** The answer of `/embed`: one list of numbers an input. */
export const writeEmbeddings: AnswerWriter<Shaping> = (result, _timings, asked) => {
  const column = onlyColumn(result);
  const shaped = { ...column, itemShape: [asked.dimensions] };
  const writer = new JsonWriter();
  const { jsonDigits } = result.model;
  writer.raw('[');
  for (const [index, item] of column.items.entries()) {
    if (index > 0) writer.byte(COMMA);
    writeItem(writer, shaped, shapedVector(item ?? new Uint8Array(), asked), jsonDigits);
  }
  return { contentType: JSON_TYPE, body: writer.raw(']').end(), headers: tokenHeader(result) };
};

/** The answer of `/similarity`: the cosine of item 0 and each other. */
export const writeSimilarities: AnswerWriter<undefined> = (result) => {
  const [source, ...sentences] = onlyColumn(result).items.map((item) => floatsOf(item ?? new Uint8Array()));
  const writer = new JsonWriter();
  writer.raw('[');
  for (const [index, sentence] of sentences.entries()) {
    if (index > 0) writer.byte(COMMA);
    writer.rounded(cosine(source ?? new Float32Array(), sentence), SIMILARITY_DIGITS);
  }
  return { contentType: JSON_TYPE, body: writer.raw(']').end(), headers: tokenHeader(result) };
};

/** The answer to what `parseAny` has read. */
export const writeAny: AnswerWriter<Shaping | undefined> = (result, timings, shaping) =>
  shaping ? writeEmbeddings(result, timings, shaping) : writeSimilarities(result, timings, undefined);

/** The answer of `/tokenize`: the worker has written each item's list of tokens as JSON. */
export const writeTokens: AnswerWriter<undefined> = (result) =>
  writeElements(result, (writer, text) => writer.raw(text));

/** The answer of `/decode`: a text for each list of ids. */
export const writeTexts: AnswerWriter<undefined> = (result) =>
  writeElements(result, (writer, text) => writer.string(text));

function writeElements(
  result: InferResult,
  write: (writer: JsonWriter, text: string) => void,
): ReturnType<AnswerWriter<unknown>> {
  const { name, datatype, items } = onlyColumn(result);
  const writer = new JsonWriter();
  writer.raw('[');
  for (const [index, data] of items.entries()) {
    if (index > 0) writer.byte(COMMA);
    const [element] = bytesElements({ name, datatype, shape: [1], data: data ?? new Uint8Array() });
    write(writer, Buffer.from(element ?? []).toString());
  }
  return { contentType: JSON_TYPE, body: writer.raw(']').end() };
}

/** The one output of a request whose items are all answered. */
function onlyColumn({ outputs: [column] }: InferResult): OutputColumn {
  if (column) return column;
  throw new MillraceError('internal', undefined, {}, { cause: new Error('a reply without outputs') });
}

function shapedVector(item: Uint8Array, { dimensions, scale }: Shaping): Uint8Array {
  const whole = dimensions * FLOAT_BYTES >= item.byteLength;
  return whole && !scale ? item : shortVector(item, dimensions, scale);
}

/** 0 where a vector has no direction. */
function cosine(a: Float32Array, b: Float32Array): number {
  const lengths = Math.sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

/** text-embeddings-inference tells in headers what a request took; of these, what is known here. */
function tokenHeader({ tokens }: InferResult): readonly string[] {
  return ['x-compute-tokens', String(tokens)];
}
