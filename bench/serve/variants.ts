import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PreparedModel } from '@millrace/worker';
import { parse, stringify } from 'yaml';
import { MODELS_DIR } from './minilm.js';

/** A manifest as it is written. */
export interface WrittenManifest {
  [field: string]: unknown;
  batching?: Record<string, unknown>;
}

/** Writes a model folder with its manifest and links to the files that lie beside it. */
export async function writeModel(
  modelsDir: string,
  manifest: WrittenManifest & { name: string },
  files: Readonly<Record<string, string>>,
): Promise<void> {
  const folder = join(modelsDir, manifest.name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'model.yaml'), stringify(manifest));
  for (const [name, path] of Object.entries(files)) await symlink(path, join(folder, name));
}

/** What every tensor model of the bench says. */
export const TENSORS = { task: 'tensor', version: 1, session: { threads: 1 } };

/** The identity model on a simulated device. */
export async function writeDevice(
  modelsDir: string,
  name: string,
  batching: object,
  simulate: { runMs: number; itemMs: number },
): Promise<void> {
  const shape = [-1, -1];
  const kinds = ['fp32', 'int64', 'bool', 'uint8', 'bytes'];
  const inputs = kinds.map((kind) => ({ name: kind, datatype: kind.toUpperCase(), shape, optional: true }));
  const outputs = inputs.map(({ datatype }, i) => ({ name: `${kinds[i]}_out`, datatype, shape }));
  const build = { from: 'identity' };
  await writeModel(
    modelsDir,
    { ...TENSORS, name, build, inputs, outputs, batching: { ...batching }, simulate },
    {},
  );
}

/**
 * The default model again under other names, each with some fields of its own: the very same files.
 * @returns the folder of model folders.
 */
export async function writeVariants(
  dataDir: string,
  prepared: PreparedModel,
  variants: Readonly<Record<string, Partial<WrittenManifest>>>,
): Promise<string> {
  const modelsDir = join(dataDir, 'models');
  const path = join(MODELS_DIR, prepared.manifest.name, 'model.yaml');
  const { files, sources: _, ...written } = parse(await readFile(path, 'utf8')) as WrittenManifest;
  const tokenizer = 'tokenizer.json';
  const tokenizerFile = prepared.files[tokenizer];
  if (!tokenizerFile) throw new Error(`the model ${prepared.manifest.name} has no ${tokenizer}`);
  for (const [name, fields] of Object.entries(variants)) {
    const manifest = {
      ...written,
      files: { [tokenizer]: (files as Record<string, unknown>)[tokenizer] },
      build: { from: 'onnx', file: 'model.onnx' },
      ...fields,
      name,
      batching: { ...written.batching, ...fields.batching },
    };
    await writeModel(modelsDir, manifest, { [tokenizer]: tokenizerFile, 'model.onnx': prepared.modelFile });
  }
  return modelsDir;
}

/** The default model built in FP32 from the same weights. @returns its name. */
export async function writeFp32(modelsDir: string, prepared: PreparedModel): Promise<string> {
  const path = join(MODELS_DIR, prepared.manifest.name, 'model.yaml');
  const written = parse(await readFile(path, 'utf8')) as WrittenManifest & { build: Record<string, unknown> };
  const { recipe: _, ...build } = written.build;
  const name = `${prepared.manifest.name}-fp32`;
  const samples = join(MODELS_DIR, prepared.manifest.name, 'samples');
  await writeModel(
    modelsDir,
    { ...written, name, build: { ...build, precision: 'fp32' } },
    { ...prepared.files, samples },
  );
  return name;
}
