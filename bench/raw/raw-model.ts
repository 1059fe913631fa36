import { readFileSync } from 'node:fs';
import { createLogger, loadSettings } from '@millrace/shared';
import { prepareModel } from '@millrace/worker';
import { ServedModel } from '#worker/models/served-model.js';
import { CurveStore } from '#worker/planning/curve-store.js';
import { type Plannable, planGroups } from '#worker/planning/planner.js';
import { PreprocessPool } from '#worker/tasks/preprocess-pool.js';
import type { Prepared } from '#worker/tasks/task.js';
import { TextTokenizer } from '#worker/tasks/tokenizing.js';
import type { ToRaw } from './messages.js';

/** Sentences that are planned together. */
const POOL = 64;
/** Batches handed to a session: one that runs and the next. */
const SLOTS = 2;

type Item = Prepared & Plannable;

/** The worker's own model, tokenizer and planner, driven by a plain loop: what a machine can do at most. */
export class RawModel {
  private constructor(
    private readonly model: ServedModel,
    private readonly tokenizer: TextTokenizer,
    private readonly maxTokens: number,
  ) {}

  static async load({
    modelsDir,
    cacheDir,
    dataDir,
    name,
  }: Extract<ToRaw, { type: 'load' }>): Promise<RawModel> {
    const settings = loadSettings(process.env, { modelsDir, cacheDir, dataDir, models: [name] });
    const logger = createLogger('error', { process: 'raw' });
    const prepared = await prepareModel({ modelsDir, cacheDir, name, env: process.env });
    const { manifest } = prepared;
    if (manifest.task !== 'text-embedding') throw new Error(`${name} takes no sentences`);
    const tokenizerFile = prepared.files[manifest.text.tokenizer] ?? '';
    const model = await ServedModel.load(
      prepared,
      settings,
      new PreprocessPool(1),
      new CurveStore(dataDir, logger),
      logger,
    );
    const tokenizer = new TextTokenizer(JSON.parse(readFileSync(tokenizerFile, 'utf8')));
    return new RawModel(model, tokenizer, manifest.text.maxTokens);
  }

  get threads(): number {
    return this.model.sessions.clients.length;
  }

  /** Items a second over `seconds`, after a warm-up. */
  async loop(
    sentences: readonly string[],
    warmUpSeconds: number,
    seconds: number,
  ): Promise<{ itemsPerSecond: number; meanBatch: number }> {
    const beginAt = performance.now() + warmUpSeconds * 1000;
    const endAt = beginAt + seconds * 1000;
    let next = 0;
    let done = 0;
    let runs = 0;
    let groups: Item[][] = [];
    const takeGroup = (): Item[] => {
      if (groups.length === 0) {
        const pool = Array.from({ length: POOL }, (_, i) =>
          this.#prepare(sentences[next++ % sentences.length], i),
        );
        groups = planGroups(pool, this.model.manifest.batching, this.model.curve);
      }
      return groups.shift() ?? [];
    };
    const slot = async (): Promise<void> => {
      while (performance.now() < endAt) {
        const group = takeGroup();
        await this.#run(group);
        const now = performance.now();
        if (now >= beginAt && now < endAt) {
          done += group.length;
          runs++;
        }
      }
    };
    await Promise.all(Array.from({ length: this.threads * SLOTS }, slot));
    return { itemsPerSecond: done / seconds, meanBatch: done / Math.max(1, runs) };
  }

  /** Milliseconds of single sentences, one after the other. */
  async lone(sentences: readonly string[], warmUpSeconds: number, seconds: number): Promise<number[]> {
    const beginAt = performance.now() + warmUpSeconds * 1000;
    const endAt = beginAt + seconds * 1000;
    const times: number[] = [];
    for (let i = 0; performance.now() < endAt; i++) {
      const began = performance.now();
      await this.#run([this.#prepare(sentences[i % sentences.length], 0)]);
      if (began >= beginAt) times.push(performance.now() - began);
    }
    return times;
  }

  async embed(sentences: readonly string[]): Promise<number[][]> {
    const vectors: number[][] = [];
    for (const sentence of sentences) {
      const [output] = await this.#run([this.#prepare(sentence, 0)]);
      const { buffer, byteOffset, byteLength } = Uint8Array.from(output?.[0]?.data ?? []);
      vectors.push([...new Float32Array(buffer, byteOffset, byteLength / 4)]);
    }
    return vectors;
  }

  #prepare(sentence: string | undefined, urgency: number): Item {
    const { ids, truncated } = this.tokenizer.encode(sentence ?? '', this.maxTokens);
    const value = Int32Array.from(ids);
    return { size: ids.length, shapeKey: '', truncated, tokens: ids.length, value, urgency, alone: false };
  }

  async #run(group: readonly Item[]) {
    const { task, sessions, curve } = this.model;
    const largest = group.reduce((most, item) => Math.max(most, item.size), 0);
    const { outputs, runMs } = await sessions.run(task.assemble(group));
    curve.observe(group.length, largest, runMs);
    return task.split(outputs, group.length);
  }
}
