import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DataType, GraphBuilder } from '@millrace/onnx';

const SHIPPED_MODELS = fileURLToPath(new URL('../../../models', import.meta.url));

const TYPES = {
  BOOL: DataType.BOOL,
  UINT8: DataType.UINT8,
  UINT16: DataType.UINT16,
  UINT32: DataType.UINT32,
  UINT64: DataType.UINT64,
  INT8: DataType.INT8,
  INT16: DataType.INT16,
  INT32: DataType.INT32,
  INT64: DataType.INT64,
  FP16: DataType.FLOAT16,
  FP32: DataType.FLOAT,
  FP64: DataType.DOUBLE,
  BYTES: DataType.STRING,
} as const;

export const DATATYPES_MODEL = 'datatypes';

/**
 * A models folder with a model that returns tensors of every datatype as they came, `int8` as `int8_out`, each of
 * which may be left out.
 * @param beside shipped models to put into the folder too.
 */
export async function datatypesModels(
  beside: readonly string[],
): Promise<{ modelsDir: string; remove(): Promise<void> }> {
  const modelsDir = await mkdtemp(join(tmpdir(), 'millrace-models-'));
  const graph = new GraphBuilder(DATATYPES_MODEL);
  const names = Object.entries(TYPES).map(([datatype, type]) => {
    const name = datatype.toLowerCase();
    const shape = ['batch', `n_${name}`];
    graph.input(name, type, shape);
    graph.op('Identity', [name], {}, `${name}_out`);
    graph.output(`${name}_out`, type, shape);
    return { name, datatype, shape: [-1, -1] };
  });
  const folder = join(modelsDir, DATATYPES_MODEL);
  await mkdir(folder);
  await writeFile(join(folder, 'model.onnx'), graph.toBytes());
  const manifest = {
    name: DATATYPES_MODEL,
    version: 1,
    task: 'tensor',
    build: { from: 'onnx', file: 'model.onnx' },
    inputs: names.map((spec) => ({ ...spec, optional: true })),
    outputs: names.map((spec) => ({ ...spec, name: `${spec.name}_out` })),
    session: { threads: 1 },
  };
  // JSON is YAML.
  await writeFile(join(folder, 'model.yaml'), JSON.stringify(manifest));
  for (const shipped of beside) {
    await cp(join(SHIPPED_MODELS, shipped), join(modelsDir, shipped), { recursive: true });
  }
  return { modelsDir, remove: () => rm(modelsDir, { recursive: true }) };
}
