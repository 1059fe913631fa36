import { Piscina } from 'piscina';
import { type TokenizeTask, tokenizeTexts } from './tokenize-task.js';

/**
 * Texts of up to this many bytes together are tokenized in place, in about 0.1 ms: a lone request would wait
 * for two thread switches, half a millisecond, for so little. At saturation either way costs the same CPU.
 */
const IN_PLACE_BYTES = 512;

/** The process's piscina threads, shared by its models. */
export class PreprocessPool {
  readonly #piscina: Piscina<TokenizeTask, Int32Array>;
  readonly #threads: number;
  #inFlight = 0;
  #idle: (() => void) | undefined;

  constructor(threads: number) {
    this.#threads = threads;
    this.#piscina = new Piscina({
      filename: new URL('./tokenize-task.js', import.meta.url).href,
      minThreads: threads,
      maxThreads: threads,
      // Blocking on Atomics between tasks would freeze the threads' event loops for nothing.
      atomics: 'disabled',
      maxQueue: 4096,
    });
  }

  async tokenize(task: TokenizeTask): Promise<Int32Array> {
    if (task.bytes.byteLength <= IN_PLACE_BYTES) return tokenizeTexts(task);
    return await this.#inThread(task);
  }

  /** Loads a tokenizer wherever it will be used, so that no request waits for that. */
  async warm(tokenizerFile: string): Promise<void> {
    const nothing = () => ({
      tokenizerFile,
      maxTokens: 8,
      bytes: new Uint8Array(0),
      ends: new Uint32Array(1),
    });
    await Promise.all([
      this.tokenize(nothing()),
      ...Array.from({ length: this.#threads }, () => this.#inThread(nothing())),
    ]);
  }

  async #inThread(task: TokenizeTask): Promise<Int32Array> {
    this.#inFlight++;
    try {
      return await this.#piscina.run(task, { transferList: [task.bytes.buffer, task.ends.buffer] });
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#idle?.();
    }
  }

  /** Waits for tasks in flight first: piscina's own close may end a long one. */
  async close(): Promise<void> {
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.#piscina.close();
  }
}
