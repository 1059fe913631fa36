import { Worker } from 'node:worker_threads';
import { MillraceError } from '@millrace/shared';
import type { FromSession, SessionThreadOptions, Signature, ToSession, WireTensor } from './messages.js';

export interface RunResult {
  outputs: WireTensor[];
  /** Milliseconds inside onnxruntime. */
  runMs: number;
}

export interface RunLimits {
  /** By `monotonicMs()`: a run whose turn comes later is not started. */
  startBy?: number;
  /** A run that takes longer is taken for hung, ms. */
  limitMs?: number;
  /** What it should take, ms. */
  predictedMs?: number;
}

/** A run was not started: its turn came too late, or it was called off. */
export class RunNotStarted extends Error {}

/** The thread of a run ended. */
export class SessionDeath extends Error {
  constructor(
    message: string,
    /** Whether this run was the one that the thread was in. */
    readonly started: boolean,
  ) {
    super(message);
  }
}

interface PendingRun {
  limitMs: number;
  predictedMs: number;
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
  readonly #skip: Int32Array;
  readonly #pending = new Map<number, PendingRun>();
  #nextId = 1;
  /** When the run that the thread is in began, by `performance.now()`. */
  #headSince = 0;
  #releasing = false;
  #dead = false;
  readonly #exited: Promise<void>;

  private constructor(
    thread: Worker,
    skip: SharedArrayBuffer,
    loaded: Extract<FromSession, { type: 'loaded' }>,
  ) {
    this.#thread = thread;
    this.#skip = new Int32Array(skip);
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
        this.#dead = true;
        if (this.#releasing) return;
        const text = `session thread ended with code ${code}${cause ? `: ${cause.message}` : ''}`;
        const head = this.head?.id;
        for (const [id, pending] of this.#pending) pending.reject(new SessionDeath(text, id === head));
        this.#pending.clear();
        resolve(new Error(text));
      });
    });
  }

  /** Starts a thread and loads the model in it. @throws Error when onnxruntime can't load it. */
  static async open(options: SessionThreadOptions): Promise<SessionClient> {
    const skip = new SharedArrayBuffer(4);
    const workerData: SessionThreadOptions = { ...options, skip };
    const thread = new Worker(new URL('./session-thread.js', import.meta.url), { workerData });
    const first = await firstMessage(thread);
    if (first.type !== 'loaded') {
      throw new Error(first.type === 'load-failed' ? first.message : 'session thread spoke out of turn');
    }
    return new SessionClient(thread, skip, first);
  }

  /** Runs handed to the thread and not yet answered: 1 is running, 2 is one more waiting in its slot. */
  get inFlight(): number {
    return this.#pending.size;
  }

  /** How long the runs handed to it will take from now, by their predictions, in ms; 0 for an idle one. */
  get leftMs(): number {
    let ms = 0;
    for (const { predictedMs } of this.#pending.values()) ms += predictedMs;
    return ms === 0 ? 0 : Math.max(0, ms - (performance.now() - this.#headSince));
  }

  /** Whether its thread has ended. */
  get dead(): boolean {
    return this.#dead;
  }

  /** The run that the thread is in; those behind it have not been started. */
  get head(): { id: number; limitMs: number } | undefined {
    for (const [id, { limitMs }] of this.#pending) return { id, limitMs };
    return undefined;
  }

  /**
   * Runs the model once. The inputs' buffers are moved to the thread.
   * @throws MillraceError `inference_failed` when the model fails on them; RunNotStarted; SessionDeath.
   */
  run(inputs: WireTensor[]): Promise<RunResult> {
    return this.start(inputs).result;
  }

  /** As {@link run}; tells the run's id at once. */
  start(
    inputs: WireTensor[],
    { startBy, limitMs = Number.POSITIVE_INFINITY, predictedMs = 0 }: RunLimits = {},
  ): { id: number; result: Promise<RunResult> } {
    const id = this.#nextId++;
    if (this.#dead) return { id, result: Promise.reject(new SessionDeath('session thread ended', false)) };
    if (this.#pending.size === 0) this.#headSince = performance.now();
    const result = new Promise<RunResult>((resolve, reject) => {
      this.#pending.set(id, { limitMs, predictedMs, resolve, reject });
      this.#send(
        { type: 'run', id, inputs, startBy },
        inputs.map((tensor) => tensor.data.buffer),
      );
    });
    return { id, result };
  }

  /** Calls a run off that waits behind another. One that has been started goes on. */
  skip(id: number): void {
    Atomics.store(this.#skip, 0, id);
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
    if (message.type !== 'ran' && message.type !== 'run-failed' && message.type !== 'not-run') return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    this.#headSince = performance.now();
    if (message.type === 'ran') pending?.resolve({ outputs: message.outputs, runMs: message.runMs });
    else if (message.type === 'not-run') pending?.reject(new RunNotStarted('the run was not started'));
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
