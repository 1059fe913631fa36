import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataType, GraphBuilder } from '@millrace/onnx';
import type { Tensor } from '@millrace/shared';
import { uniqueName } from './redis.js';

const TABLE = [10, 20, 30, 40];

/** A model whose run throws for the whole group when one index is out of range. */
function lookupModel(): Uint8Array {
  const graph = new GraphBuilder('lookup');
  graph.input('index', DataType.INT64, ['batch', 1]);
  const table = graph.constant('table', [TABLE.length], Float32Array.from(TABLE));
  graph.op('Gather', [table, 'index'], {}, 'value');
  graph.output('value', DataType.FLOAT, ['batch', 1]);
  return graph.toBytes();
}

export interface TestModels {
  modelsDir: string;
  cacheDir: string;
  name: string;
  remove(): Promise<void>;
}

/** A models folder with one lookup model of a name of its own. */
export async function lookupModels(batching: object = {}): Promise<TestModels> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-models-'));
  const name = uniqueName('lookup');
  const modelsDir = join(folder, 'models');
  await mkdir(join(modelsDir, name), { recursive: true });
  await writeFile(join(modelsDir, name, 'lookup.onnx'), lookupModel());
  const manifest = {
    name,
    version: 1,
    task: 'tensor',
    build: { from: 'onnx', file: 'lookup.onnx' },
    inputs: [{ name: 'index', datatype: 'INT64', shape: [-1, 1] }],
    outputs: [{ name: 'value', datatype: 'FP32', shape: [-1, 1] }],
    batching,
    session: { threads: 1 },
  };
  // JSON is YAML.
  await writeFile(join(modelsDir, name, 'model.yaml'), JSON.stringify(manifest));
  return { modelsDir, cacheDir: join(folder, 'cache'), name, remove: () => rm(folder, { recursive: true }) };
}

export function indices(...values: number[]): Tensor[] {
  const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
  return [{ name: 'index', datatype: 'INT64', shape: [values.length, 1], data }];
}

/** The FP32 values of a reply's only output. */
export function values(outputs: readonly Tensor[]): number[] {
  const [output] = outputs;
  return output ? [...new Float32Array(Uint8Array.from(output.data).buffer)] : [];
}
