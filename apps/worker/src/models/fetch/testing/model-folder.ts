import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ModelSource, StartupError } from '@millrace/shared';
import { type PreparedModel, type PrepareOptions, prepareModel } from '../../prepare.js';

const NAME = 'sample';

/** A model folder and a cache of their own in a temporary folder; the official files are random bytes. */
export class ModelFolder {
  readonly files = { 'model.onnx': randomBytes(300_000), 'vocab/words.txt': randomBytes(5_000) };
  private constructor(readonly root: string) {}

  /** @param changes manifest fields that shall differ. */
  static async make(sources: ModelSource[], changes: Record<string, unknown> = {}): Promise<ModelFolder> {
    const folder = new ModelFolder(await mkdtemp(join(tmpdir(), 'millrace-models-')));
    await folder.write(
      folder.beside('model.yaml'),
      JSON.stringify({ ...folder.#manifest(sources), ...changes }),
    );
    return folder;
  }

  /** A file beside the manifest. */
  beside(name: string): string {
    return join(this.root, 'models', NAME, name);
  }

  /** A file where the cache has it. */
  cached(name: string): string {
    return join(this.root, 'cache', NAME, '1', name);
  }

  /** Paths of the unfinished download in the cache and of its etag. */
  async unfinished(): Promise<{ part: string; etag: string }> {
    const names = await readdir(this.cached('.work'));
    const part = names.find((name) => name.endsWith('.part')) ?? 'none';
    return { part: this.cached(`.work/${part}`), etag: this.cached(`.work/${part}.etag`) };
  }

  async write(path: string, content: string | Uint8Array): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }

  prepare(env: NodeJS.ProcessEnv, options: Partial<PrepareOptions> = {}): Promise<PreparedModel> {
    return prepareModel({
      modelsDir: join(this.root, 'models'),
      cacheDir: join(this.root, 'cache'),
      name: NAME,
      // No token of whoever runs the tests.
      env: { HF_HOME: this.root, ...env },
      ...options,
    });
  }

  /** The error with which preparing ends. */
  async refusal(env: NodeJS.ProcessEnv, options: Partial<PrepareOptions> = {}): Promise<StartupError> {
    return this.prepare(env, options).then(
      () => Promise.reject(new Error('it was prepared')),
      (error: StartupError) => error,
    );
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }

  #manifest(sources: ModelSource[]): Record<string, unknown> {
    const tensor = { name: 'x', datatype: 'FP32', shape: [-1, -1] };
    return {
      name: NAME,
      version: 1,
      task: 'tensor',
      files: Object.fromEntries(Object.entries(this.files).map(([name, bytes]) => [name, specOf(bytes)])),
      sources,
      build: { from: 'onnx', file: 'model.onnx' },
      inputs: [tensor],
      outputs: [tensor],
    };
  }
}

/** What a manifest says of a file. */
export function specOf(content: Buffer): { bytes: number; sha256: string } {
  return { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
}
