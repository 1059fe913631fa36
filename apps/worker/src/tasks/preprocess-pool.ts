import { Piscina } from 'piscina';
import type { TokenizeTask } from './tokenize-task.js';

/** The process's piscina threads, shared by its models. */
export class PreprocessPool {
  readonly #piscina: Piscina<TokenizeTask, Int32Array>;
  #inFlight = 0;
  #idle: (() => void) | undefined;

  constructor(threads: number) {
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
