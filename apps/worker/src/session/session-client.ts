import { Worker } from 'node:worker_threads';
import { MillraceError } from '@millrace/shared';
import type { FromSession, SessionThreadOptions, Signature, ToSession, WireTensor } from './messages.js';

export interface RunResult {
  outputs: WireTensor[];
  /** Milliseconds inside onnxruntime. */
  runMs: number;
}

interface PendingRun {
  resolve(result: RunResult): void;
  reject(error: Error): void;
}

/** The main thread's side of one session thread. */
export class SessionClient {
  readonly device: 'cpu' | 'cuda';
  readonly warning: string | undefined;
  readonly signature: Signature;
  /** Resolves when the thread has ended without having been asked to; every pending run is rejected then. */
  readonly died: Promise<Error>;
  readonly #thread: Worker;
  readonly #pending = new Map<number, PendingRun>();
  #nextId = 1;
  #releasing = false;
  readonly #exited: Promise<void>;

  private constructor(thread: Worker, loaded: Extract<FromSession, { type: 'loaded' }>) {
    this.#thread = thread;
    this.device = loaded.device;
    this.warning = loaded.warning;
    this.signature = loaded.signature;
    thread.on('message', (message: FromSession) => this.#receive(message));
    this.#exited = new Promise((resolve) => thread.once('exit', () => resolve()));
    this.died = new Promise((resolve) => {
      let cause: Error | undefined;
      thread.on('error', (error: Error) => {
        cause = error;
      });
      thread.once('exit', (code) => {
        if (this.#releasing) return;
        const error = new Error(`session thread ended with code ${code}${cause ? `: ${cause.message}` : ''}`);
        for (const pending of this.#pending.values()) pending.reject(error);
        this.#pending.clear();
        resolve(error);
      });
    });
  }

  /** Starts a thread and loads the model in it. @throws Error when onnxruntime can't load it. */
  static async open(options: SessionThreadOptions): Promise<SessionClient> {
    const thread = new Worker(new URL('./session-thread.js', import.meta.url), { workerData: options });
    const first = await firstMessage(thread);
    if (first.type !== 'loaded') {
      throw new Error(first.type === 'load-failed' ? first.message : 'session thread spoke out of turn');
    }
    return new SessionClient(thread, first);
  }

  /** Runs handed to the thread and not yet answered: 1 is running, 2 is one more waiting in its slot. */
  get inFlight(): number {
    return this.#pending.size;
  }

  /**
   * Runs the model once. The inputs' buffers are moved to the thread.
   * @throws MillraceError `inference_failed` when the model fails on them; Error when the thread died.
   */
  run(inputs: WireTensor[]): Promise<RunResult> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send(
        { type: 'run', id, inputs },
        inputs.map((tensor) => tensor.data.buffer),
      );
    });
  }

  /** Lets the thread finish its runs, release its session and exit. */
  async release(): Promise<void> {
    if (!this.#releasing) {
      this.#releasing = true;
      this.#send({ type: 'release' }, []);
    }
    await this.#exited;
  }

  #send(message: ToSession, moved: ArrayBuffer[]): void {
    this.#thread.postMessage(message, moved);
  }

  #receive(message: FromSession): void {
    if (message.type !== 'ran' && message.type !== 'run-failed') return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.type === 'ran') pending?.resolve({ outputs: message.outputs, runMs: message.runMs });
    else {
      const cause = new Error(message.message);
      pending?.reject(new MillraceError('inference_failed', undefined, {}, { cause }));
    }
  }
}

function firstMessage(thread: Worker): Promise<FromSession> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number): void =>
      reject(new Error(`session thread ended with code ${code} while loading`));
    thread.once('error', reject);
    thread.once('exit', onExit);
    thread.once('message', (message: FromSession) => {
      thread.off('error', reject);
      thread.off('exit', onExit);
      resolve(message);
    });
  });
}
