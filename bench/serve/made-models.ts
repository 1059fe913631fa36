import { access, mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataType, GraphBuilder } from '@millrace/onnx';
import { seeded } from '#test/support/random.js';
import type { Bench } from '../run/scenario.js';

/** Inputs and outputs of the wide network. */
export const MLP_WIDTH = 64;
/** Its hidden layers: 340 MB of weights, more than any cache holds. */
const HIDDEN = 9216;
/** So many different weights, repeated: what they are doesn't matter, that they are read does. */
const DIFFERENT_WEIGHTS = 65_537;

/** A network whose weights have to come from memory for every run: a batch reads them once. @returns its file. */
export function wideMlp(bench: Bench): Promise<string> {
  return made(bench, `wide-mlp-${HIDDEN}.onnx`, () => {
    const graph = new GraphBuilder('wide-mlp');
    let value = graph.input('x', DataType.FLOAT, ['batch', MLP_WIDTH]);
    const widths = [MLP_WIDTH, HIDDEN, HIDDEN, MLP_WIDTH];
    for (let layer = 1; layer < widths.length; layer++) {
      const [rows = 0, columns = 0] = widths.slice(layer - 1);
      const matrix = graph.constant(`weights_${layer}`, [rows, columns], weights(rows, columns));
      const last = layer === widths.length - 1;
      const product = graph.op('MatMul', [value, matrix], {}, last ? 'y' : undefined);
      value = last ? product : graph.op('Relu', [product]);
    }
    graph.output('y', DataType.FLOAT, ['batch', MLP_WIDTH]);
    return graph.toBytes();
  });
}

/** Values keep their size from layer to layer. */
function weights(rows: number, columns: number): Float32Array {
  const random = seeded(rows);
  const scale = Math.sqrt(6 / rows);
  const different = Float32Array.from({ length: DIFFERENT_WEIGHTS }, () => (random() * 2 - 1) * scale);
  const all = new Float32Array(rows * columns);
  for (let at = 0; at < all.length; at += different.length) {
    all.set(different.subarray(0, Math.min(different.length, all.length - at)), at);
  }
  return all;
}

/** An encoder that costs next to nothing: a text's vector is the mean of its token ids. @returns its file. */
export function tinyEncoder(bench: Bench): Promise<string> {
  return made(bench, 'tiny-encoder.onnx', () => {
    const graph = new GraphBuilder('tiny-encoder');
    const ids = graph.input('input_ids', DataType.INT64, ['batch', 'length']);
    graph.input('attention_mask', DataType.INT64, ['batch', 'length']);
    const floats = graph.op('Cast', [ids], { to: DataType.FLOAT });
    graph.op('ReduceMean', [floats], { axes: [1], keepdims: 1 }, 'sentence_embedding');
    graph.output('sentence_embedding', DataType.FLOAT, ['batch', 1]);
    return graph.toBytes();
  });
}

async function made(bench: Bench, name: string, make: () => Uint8Array): Promise<string> {
  const folder = join(bench.options.cacheDir, 'made');
  const file = join(folder, name);
  const there = await access(file).then(
    () => true,
    () => false,
  );
  if (there) return file;
  bench.say(`Making ${name}...`);
  await mkdir(folder, { recursive: true });
  await writeFile(`${file}.part`, make());
  await rename(`${file}.part`, file);
  return file;
}
