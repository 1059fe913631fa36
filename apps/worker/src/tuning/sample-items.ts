import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesTensor, elementBytes, elementCount, type Manifest, type TensorSpec } from '@millrace/shared';
import type { RawInput, RawItem } from '../tasks/task.js';

/** An item to measure with: for a session, and as the body of an Open Inference Protocol request. */
export interface SampleItem {
  raw: RawItem;
  body: object;
}

const COUNT = 64;
/** Widths of dimensions of any size, in turn. */
const WIDTHS = [1, 32, 128];
/** Where a model has no samples of its own, its texts are made of these. */
const WORDS = 'the river turns a wheel and every sack of grain waits its turn before noon'.split(' ');

/** Of a model's held-out samples, or made up where there are none: the same ones each time. */
export async function sampleItems(manifest: Manifest, modelsDir: string): Promise<SampleItem[]> {
  if (manifest.task === 'text-embedding') {
    const texts = (await evaluationTexts(modelsDir, manifest.name)) ?? madeUpTexts();
    return texts.slice(0, COUNT).map(textItem);
  }
  const needed = manifest.inputs.filter(({ optional }) => !optional);
  const inputs = needed.length > 0 ? needed : manifest.inputs.slice(0, 1);
  return Array.from({ length: COUNT }, (_, i) => tensorItem(inputs, i));
}

/** Natural sentences that the quantizer has not seen, one a line in the model's folder. */
export async function evaluationTexts(modelsDir: string, name: string): Promise<string[] | undefined> {
  const path = join(modelsDir, name, 'samples', 'evaluation.txt');
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text?.split('\n').filter((line) => line.trim() !== '');
}

/** Of 3 to 60 words, most of them short. */
function madeUpTexts(): string[] {
  return Array.from({ length: COUNT }, (_, i) =>
    Array.from(
      { length: 3 + Math.floor(57 * (i / COUNT) ** 3) },
      (_, j) => WORDS[(i + j) % WORDS.length],
    ).join(' '),
  );
}

function textItem(text: string): SampleItem {
  const { data } = bytesTensor('text', [text], [1]);
  const input: RawInput = { datatype: 'BYTES', shape: [], data };
  return {
    raw: { inputs: new Map([['text', input]]) },
    body: { inputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: [text] }] },
  };
}

/** Floats between -1 and 1; zeros elsewhere, which every table has a row for. */
function tensorItem(specs: readonly TensorSpec[], index: number): SampleItem {
  const inputs = new Map<string, RawInput>();
  const body: object[] = [];
  for (const { name, datatype, shape } of specs) {
    const inner = shape.slice(1).map((n) => (n === -1 ? (WIDTHS[index % WIDTHS.length] ?? 1) : n));
    const count = elementCount(inner);
    const floats =
      datatype === 'FP32' ? Float32Array.from({ length: count }, (_, i) => wave(index, i)) : undefined;
    // A BYTES element of no bytes is its length alone: four zeros.
    const data = floats
      ? new Uint8Array(floats.buffer)
      : new Uint8Array(count * (elementBytes(datatype) || 4));
    inputs.set(name, { datatype, shape: inner, data });
    const filler = datatype === 'BYTES' ? '' : datatype === 'BOOL' ? false : 0;
    const values = floats ? [...floats] : new Array(count).fill(filler);
    body.push({ name, datatype, shape: [1, ...inner], data: values });
  }
  return { raw: { inputs }, body: { inputs: body } };
}

const wave = (item: number, element: number): number => Math.sin(1 + item * 7.3 + element * 1.7);
