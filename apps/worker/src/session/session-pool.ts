import { createRequire } from 'node:module';
import type { SessionThreadOptions, WireTensor } from './messages.js';
import { type RunLimits, type RunResult, SessionClient } from './session-client.js';

/** Of the library that runs the sessions. Read from its package: loading it here would start its threads. */
export const ONNXRUNTIME_VERSION: string = createRequire(import.meta.url)(
  'onnxruntime-node/package.json',
).version;

/** Running one and holding the next: the thread never waits for the main thread between two runs. */
const SLOTS = 2;

/** A batch handed to a session. */
export interface RunHandle {
  readonly client: SessionClient;
  readonly id: number;
  readonly result: Promise<RunResult>;
}

/** The session threads of one model. */
export class SessionPool {
  readonly clients: readonly SessionClient[];
  /** Resolves with the first thread's death. */
  readonly died: Promise<Error>;
  #reserved: SessionClient | undefined;

  private constructor(clients: SessionClient[]) {
    this.clients = clients;
    this.died = Promise.race(clients.map((client) => client.died));
  }

  static async open(threads: number, options: SessionThreadOptions): Promise<SessionPool> {
    // One after the other: loading at once would hold as many copies of the file in memory.
    const clients: SessionClient[] = [];
    for (let i = 0; i < threads; i++) clients.push(await SessionClient.open(options));
    return new SessionPool(clients);
  }

  get busy(): number {
    return this.clients.filter((client) => client.inFlight > 0).length;
  }

  get hasIdle(): boolean {
    return this.clients.some((client) => client.inFlight === 0 && this.#open(client));
  }

  /**
   * How long from now until a thread runs what is handed over next, in ms: 0 while one is idle. Undefined where every
   * thread holds a batch behind the one that it runs.
   */
  get nextInMs(): number | undefined {
    const next = this.#next;
    return next && this.#hasSlot(next) ? next.leftMs : undefined;
  }

  /** Runs on the thread that gets to it first. */
  run(inputs: WireTensor[]): Promise<RunResult> {
    return this.start(inputs).result;
  }

  /** As {@link run}; tells where it runs at once. */
  start(inputs: WireTensor[], limits?: RunLimits): RunHandle {
    const client = this.#next;
    if (!client) throw new Error('a pool without sessions');
    return { client, ...client.start(inputs, limits) };
  }

  /** Keeps an idle thread for {@link startReserved}: nothing else gets there first. */
  reserve(): void {
    this.#reserved = this.clients.find((client) => client.inFlight === 0 && !client.dead);
  }

  unreserve(): void {
    this.#reserved = undefined;
  }

  /** Starts at once, on the thread that was kept for it. */
  startReserved(inputs: WireTensor[], limits?: RunLimits): RunHandle {
    const client = this.#reserved;
    if (!client) throw new Error('no session was reserved');
    this.#reserved = undefined;
    return { client, ...client.start(inputs, limits) };
  }

  #open(client: SessionClient): boolean {
    return !client.dead && client !== this.#reserved;
  }

  #hasSlot(client: SessionClient): boolean {
    return client.inFlight < SLOTS && this.#open(client);
  }

  /** The thread that gets to another batch first; of dead ones, if there is nothing else. */
  get #next(): SessionClient | undefined {
    let next: SessionClient | undefined;
    for (const client of this.clients) if (!next || this.#isBefore(client, next)) next = client;
    return next;
  }

  #isBefore(client: SessionClient, other: SessionClient): boolean {
    if (this.#hasSlot(client) !== this.#hasSlot(other)) return this.#hasSlot(client);
    if (client.inFlight !== other.inFlight) return client.inFlight < other.inFlight;
    return client.leftMs < other.leftMs;
  }

  async release(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.release()));
  }
}
