import { Piscina } from 'piscina';
import { type OperateTask, operate } from './operate-task.js';
import type { ItemFault } from './task.js';
import { type TokenizeTask, tokenizeTexts } from './tokenize-task.js';

/**
 * Texts of up to this many bytes together are tokenized in place, in about 0.1 ms: a lone request would wait
 * for two thread switches, half a millisecond, for so little. At saturation either way costs the same CPU.
 */
const IN_PLACE_BYTES = 512;
const TICK_MS = 1000;
const TOKENIZE_FILE = new URL('./tokenize-task.js', import.meta.url).href;
const OPERATE_FILE = new URL('./operate-task.js', import.meta.url).href;

/**
 * The process's piscina threads, shared by its models. A thread that dies is replaced; piscina stops that for
 * good once a new one fails to start, and knows no thread that hangs: then the pool has failed.
 */
export class PreprocessPool {
  /** Resolves when this pool can't prepare anything any more. */
  readonly failed: Promise<Error>;
  readonly threads: number;
  #fail: (error: Error) => void = () => undefined;
  #closing = false;
  #warming = 0;
  readonly #ticking: NodeJS.Timeout;
  #finished = 0;
  readonly #piscina: Piscina;
  #inFlight = 0;
  #idle: (() => void) | undefined;

  /** `maxTaskMs`: threads that finish nothing for so long although they have work hang. */
  constructor(threads: number, maxTaskMs = Number.POSITIVE_INFINITY) {
    this.threads = threads;
    this.#piscina = new Piscina({
      filename: TOKENIZE_FILE,
      minThreads: threads,
      maxThreads: threads,
      // Blocking on Atomics between tasks would freeze the threads' event loops for nothing.
      atomics: 'disabled',
      maxQueue: 4096,
    });
    this.failed = new Promise((resolve) => {
      this.#fail = (error) => {
        resolve(error);
        // What hangs is JavaScript: unlike a session, it can be ended. Its tasks are rejected.
        void this.#piscina.destroy();
      };
    });
    // The death of a thread that has no task; what it means is seen by its being replaced or not.
    this.#piscina.on('error', () => undefined);
    this.#piscina.on('workerDestroy', () => setImmediate(() => this.#checkThreads()));
    let finished = 0;
    let ms = 0;
    this.#ticking = setInterval(() => {
      // Threads that start and load a tokenizer may take long on a busy machine; what they do is known to end.
      const stands = this.#inFlight > 0 && this.#warming === 0 && finished === this.#finished;
      ms = stands ? ms + TICK_MS : 0;
      finished = this.#finished;
      if (ms > maxTaskMs) this.#fail(new Error(`preparing inputs has not gone on for ${ms} ms`));
    }, TICK_MS);
  }

  #checkThreads(): void {
    if (this.#closing || this.#piscina.threads.length >= this.threads) return;
    this.#fail(new Error('a thread that prepares inputs died and a new one does not start'));
  }

  async tokenize(task: TokenizeTask): Promise<Int32Array> {
    if (task.bytes.byteLength <= IN_PLACE_BYTES) return tokenizeTexts(task);
    return await this.#inThread(task);
  }

  /** One item of an operation that runs no model; its input's buffer is moved away. */
  async operate(task: OperateTask): Promise<Uint8Array | ItemFault> {
    if (task.input.byteLength <= IN_PLACE_BYTES) return operate(task);
    return await this.#counted(() =>
      this.#piscina.run(task, { filename: OPERATE_FILE, transferList: [task.input.buffer] }),
    );
  }

  /**
   * Loads a tokenizer wherever it will be used, so that no request waits for that.
   * @throws Error when it can't be loaded; then the pool has failed.
   */
  async warm(tokenizerFile: string): Promise<void> {
    this.#warming++;
    try {
      await this.#warm(tokenizerFile);
    } catch (error) {
      this.#fail(error as Error);
      throw error;
    } finally {
      this.#warming--;
    }
  }

  async #warm(tokenizerFile: string): Promise<void> {
    const nothing = () => ({
      tokenizerFile,
      maxTokens: 8,
      bytes: new Uint8Array(0),
      ends: new Uint32Array(1),
    });
    await Promise.all([
      this.tokenize(nothing()),
      ...Array.from({ length: this.threads }, () => this.#inThread(nothing())),
    ]);
  }

  #inThread(task: TokenizeTask): Promise<Int32Array> {
    return this.#counted(() =>
      this.#piscina.run(task, { transferList: [task.bytes.buffer, task.ends.buffer] }),
    );
  }

  async #counted<Result>(run: () => Promise<Result>): Promise<Result> {
    this.#inFlight++;
    try {
      return await run();
    } finally {
      this.#inFlight--;
      this.#finished++;
      if (this.#inFlight === 0) this.#idle?.();
    }
  }

  /** Waits for tasks in flight first: piscina's own close may end a long one. */
  async close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#ticking);
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.#piscina.close();
  }
}
