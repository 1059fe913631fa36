import { MillraceError } from '@millrace/shared';
import { DeadlineWheel } from '../inference/deadline-wheel.js';
import type { InferRequest } from '../inference/request.js';
import type { Claim, IdempotencyRecords } from './records.js';

const POLL_MS = 50;
/** Most records looked at in one round; where more are watched, they take turns. */
const MOST_AT_ONCE = 500;

interface Watcher {
  claim: Claim;
  expiresAt: number;
  wake(): void;
  fail(error: unknown): void;
}

/** Retries that wait for another's answer: one timer looks at all of their records. */
export class RecordWatch {
  readonly #records: IdempotencyRecords;
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #deadlines = new DeadlineWheel<Watcher>((watcher) =>
    watcher.fail(new MillraceError('deadline_exceeded')),
  );
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(records: IdempotencyRecords) {
    this.#records = records;
  }

  /**
   * Waits until the request under this claim's key runs no longer, whatever became of it.
   * @param leftMs how long to wait at most.
   * @throws MillraceError `deadline_exceeded`, `cancelled` (the client went away), `queue_unavailable`.
   */
  async untilSettled(claim: Claim, { client }: InferRequest, leftMs: number): Promise<void> {
    let watcher: Watcher | undefined;
    try {
      await new Promise<void>((wake, fail) => {
        watcher = { claim, expiresAt: performance.now() + leftMs, wake, fail };
        this.#add(watcher);
        client.listen(() => fail(new MillraceError('cancelled')));
      });
    } finally {
      if (watcher) this.#remove(watcher);
    }
  }

  /** Gives up on all that wait. */
  failAll(error: Error): void {
    for (const watchers of this.#watchers.values()) for (const watcher of watchers) watcher.fail(error);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#deadlines.stop();
  }

  #add(watcher: Watcher): void {
    const { key } = watcher.claim;
    const watchers = this.#watchers.get(key);
    if (watchers) watchers.add(watcher);
    else this.#watchers.set(key, new Set([watcher]));
    this.#deadlines.add(watcher, watcher.expiresAt);
    this.#timer ??= setInterval(() => void this.#look(), POLL_MS);
  }

  #remove(watcher: Watcher): void {
    const { key } = watcher.claim;
    const watchers = this.#watchers.get(key);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#watchers.delete(key);
    this.#deadlines.remove(watcher, watcher.expiresAt);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    // A Redis that hangs gets no second round before it has answered the first.
    if (this.#looking) return;
    this.#looking = true;
    const round = [...this.#watchers].slice(0, MOST_AT_ONCE);
    await Promise.all(round.map(([key, watchers]) => this.#lookAt(key, watchers)));
    this.#looking = false;
  }

  async #lookAt(key: string, watchers: Set<Watcher>): Promise<void> {
    const [first] = watchers;
    if (!first) return;
    try {
      if (!(await this.#records.isRunning(first.claim))) for (const { wake } of watchers) wake();
    } catch (cause) {
      const error = new MillraceError('queue_unavailable', undefined, { retryAfterSeconds: 1 }, { cause });
      for (const { fail } of watchers) fail(error);
    }
    // To the end of the line, where it still waits.
    if (this.#watchers.get(key) !== watchers) return;
    this.#watchers.delete(key);
    this.#watchers.set(key, watchers);
  }
}
