import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { BATCHES_QUEUE, BULL_PREFIX, MillraceError } from '@millrace/shared';
import { DelayedError, type Job, Queue, WaitingError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { newFileId } from '../files/file-record.js';
import { type BatchRecord, batchJobId, hasEnded, inState } from './batch-record.js';
import { BatchRecords, type BatchView } from './batch-records.js';
import { BatchRunner, type RunnerParts } from './batch-runner.js';

/** Batches that one gateway runs at once; the others wait, the oldest first. */
const AT_ONCE = 4;
/** Most of one API key that have not ended. */
const MOST_OPEN = 100;
/** A gateway that dies holds its batches for about this long, in ms. */
const LOCK_MS = 10_000;
const STALLED_MS = 5000;
/** What is held up goes on after this, in ms. */
const HELD_UP_MS = 15_000;
/** How long a checkpoint may take when the gateway stops, and then the closing of connections, in ms. */
const DRAIN_MS = 5000;
const CLOSE_MS = 1000;
/** What a runner has left is looked at again after this, in ms. */
const AGAIN_MS = 100;
/** A batch that should run and that no gateway has is found within this, in ms. */
const SWEEP_MS = 30_000;
/** A job that stands so runs, or will. */
const LIVE = new Set(['active', 'waiting', 'prioritized', 'delayed', 'waiting-children']);

interface BatchJob {
  id: string;
  run: number;
}

/** What whoever makes a batch says of it. */
export interface BatchRequest {
  inputFileId: string;
  endpoint: string;
  completionWindow: string;
  /** The same in ms. */
  windowMs: number;
  outputKeepMs: number;
  metadata?: Record<string, string>;
}

export interface BatchesParts extends Omit<RunnerParts, 'records'> {
  /** Adds jobs; fails at once while Redis is away. */
  redis: Redis;
  /** Fetches them; waits while Redis is away. */
  fetching: Redis;
}

/**
 * Batches: files of requests that are run behind all other work. A BullMQ queue that all gateways share says who runs
 * which; a gateway that dies loses its job's lock, and another goes on behind the last checkpoint.
 */
export class Batches {
  readonly records: BatchRecords;
  readonly #parts: BatchesParts;
  readonly #queue: Queue<BatchJob>;
  #worker: Worker<BatchJob> | undefined;
  readonly #runners = new Set<BatchRunner>();
  readonly #runs = new Set<Promise<void>>();
  #sweeping: NodeJS.Timeout | undefined;
  #draining = false;

  constructor(parts: BatchesParts) {
    this.#parts = parts;
    this.records = new BatchRecords(parts.redis);
    this.#queue = new Queue(BATCHES_QUEUE, {
      connection: parts.redis,
      prefix: BULL_PREFIX,
      skipVersionCheck: true,
      skipWaitingForReady: true,
    });
    this.#queue.on('error', () => undefined);
  }

  start(): void {
    const { fetching, logger } = this.#parts;
    this.#worker = new Worker<BatchJob>(BATCHES_QUEUE, (job, token) => this.#track(this.#run(job, token)), {
      connection: fetching,
      prefix: BULL_PREFIX,
      concurrency: AT_ONCE,
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_MS,
      // Gateways that die are no fault of a batch's.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
    });
    this.#worker.on('error', (err) => logger.debug({ err }, 'batches can not be fetched'));
    this.#worker.on('failed', (job, err) =>
      logger.error({ err, batch: job?.data.id }, 'a batch could not be run'),
    );
    this.#sweeping = setInterval(() => void this.#sweep(), SWEEP_MS);
  }

  /** What runs writes its checkpoint; other gateways go on. A Redis or a storage that is away is not waited for. */
  async stop(): Promise<void> {
    this.#draining = true;
    clearInterval(this.#sweeping);
    // Fetches nothing more; does not wait for what runs.
    await this.#worker?.pause(true);
    for (const runner of this.#runners) runner.drain();
    await within(DRAIN_MS, [...this.#runs]);
    await within(CLOSE_MS, [this.#worker?.close(true), this.#queue.close()]);
  }

  /**
   * Takes a batch over: when it resolves, its record is acknowledged by Redis.
   * @param key the client's name for its asking, so that asked again it gets the same batch.
   * @throws MillraceError `file_not_found`, `invalid_input`, `job_limit`, `idempotency_key_reused`.
   */
  async create(owner: string, request: BatchRequest, key: string | undefined): Promise<BatchView> {
    const { files, clock } = this.#parts;
    const record = newBatch(owner, request, key, clock.now());
    const made = key === undefined ? undefined : await this.records.find(record.id);
    if (made) return sameBatch(made, record);
    const field = 'input_file_id';
    const file = await files.get(request.inputFileId, owner, field);
    if (file.purpose !== 'batch') {
      throw new MillraceError('invalid_input', `${field} must be a file with the purpose "batch".`, {
        field,
      });
    }
    if (await this.records.create(record, MOST_OPEN)) {
      // One that can't be added now is found without a job later.
      await this.#enqueue(record).catch(() => undefined);
      return { record, counts: { completed: 0, failed: 0 } };
    }
    return sameBatch(await this.records.read(record.id, owner), record);
  }

  /** @throws MillraceError `batch_not_found`, `batch_ended`. */
  async cancel(id: string, owner: string): Promise<BatchView> {
    const view = await this.#turn(id, owner, 'cancelled', (before, now) =>
      before.state === 'cancelling' ? undefined : inState(before, 'cancelling', now),
    );
    if (view.record.state === 'cancelling' && !this.#draining) {
      // What fails here is done by the job, in its turn.
      this.#track(this.#endWaiting(view.record)).catch(() => undefined);
    }
    return view;
  }

  /** What is written so far stays; nothing more is run until it is resumed. @throws as {@link cancel}. */
  async pause(id: string, owner: string): Promise<BatchView> {
    return this.#turn(id, owner, 'paused', (before, now) =>
      before.state === 'paused' ? undefined : inState(before, 'paused', now),
    );
  }

  /** Goes on with a batch that is paused, or at once with one that is held up. @throws as {@link cancel}. */
  async resume(id: string, owner: string): Promise<BatchView> {
    return this.#turn(id, owner, 'resumed', (before, now) => {
      if (before.state !== 'paused') return undefined;
      return inState(before, before.total === undefined ? 'validating' : 'in_progress', now);
    });
  }

  async #turn(
    id: string,
    owner: string,
    turned: string,
    change: (before: BatchRecord, now: number) => BatchRecord | undefined,
  ): Promise<BatchView> {
    await this.records.read(id, owner);
    const now = this.#parts.clock.now();
    const record = await this.records.update(id, (before) => {
      if (hasEnded(before) || before.state === 'finalizing') {
        throw new MillraceError('batch_ended', `The batch is ${before.state}; it can't be ${turned}.`);
      }
      if (before.state === 'cancelling') return undefined;
      return change(before, now);
    });
    if (record.state !== 'paused') await this.#wake(record).catch(() => undefined);
    return this.records.read(id, owner);
  }

  /** Sees to it that a runner has the batch, or will soon: the one that runs it sees by itself what has changed. */
  async #wake(record: BatchRecord): Promise<void> {
    const state = await this.#queue.getJobState(batchJobId(record));
    if (state === 'active' || state === 'waiting' || state === 'prioritized') return;
    await this.#enqueue(
      await this.records.update(record.id, (before) =>
        before.run === record.run ? { ...before, run: before.run + 1 } : undefined,
      ),
    );
  }

  /** Ends a batch that was taken back and that nobody runs: its turn may be hours away. */
  async #endWaiting(record: BatchRecord): Promise<void> {
    if ((await this.#queue.getJobState(batchJobId(record))) === 'active') return;
    await new BatchRunner(record.id, { ...this.#parts, records: this.records }).run();
  }

  async #enqueue({ id, run }: BatchRecord): Promise<void> {
    await this.#queue.add(
      'batch',
      { id, run },
      { jobId: batchJobId({ id, run }), removeOnComplete: { count: 100 }, removeOnFail: { count: 100 } },
    );
  }

  async #run(job: Job<BatchJob>, token: string | undefined): Promise<void> {
    const { id, run } = job.data;
    const found = await this.records.find(id);
    // Another job has taken this one's place.
    if (found?.record.run !== run) return;
    const runner = new BatchRunner(id, { ...this.#parts, records: this.records });
    this.#runners.add(runner);
    this.#parts.metrics.batchesRunning.inc();
    try {
      if (this.#draining) runner.drain();
      const end = await runner.run();
      if (end === 'over') {
        if (await this.#isLeft(runner, id)) await this.#again(job, token, AGAIN_MS);
        return;
      }
      if (end === 'drained') {
        await job.moveToWait(token);
        throw new WaitingError();
      }
      await this.#again(job, token, HELD_UP_MS);
    } finally {
      this.#runners.delete(runner);
      this.#parts.metrics.batchesRunning.dec();
    }
  }

  /** Whether a batch was resumed or cancelled just after its runner had left it. */
  async #isLeft({ epoch }: BatchRunner, id: string): Promise<boolean> {
    const found = await this.records.find(id);
    return found?.record.epoch === epoch && isToRun(found.record);
  }

  /** @throws DelayedError, by which BullMQ leaves the job where it was put. */
  async #again(job: Job<BatchJob>, token: string | undefined, afterMs: number): Promise<never> {
    await job.moveToDelayed(Date.now() + afterMs, token);
    throw new DelayedError();
  }

  async #track(run: Promise<void>): Promise<void> {
    this.#runs.add(run);
    try {
      await run;
    } finally {
      this.#runs.delete(run);
    }
  }

  /** Finds what should run and has no job: Redis may have forgotten it, or its adding may have failed. */
  async #sweep(): Promise<void> {
    try {
      for (const id of await this.records.open()) {
        const found = await this.records.find(id);
        if (!found) await this.records.forget(id);
        else if (isToRun(found.record)) await this.#restore(found.record);
        // Its lines are told that their time is over.
        else if (found.record.expiresAt <= this.#parts.clock.now()) await this.resume(id, found.record.owner);
      }
    } catch (err) {
      this.#parts.logger.debug({ err }, 'batches could not be looked after');
    }
  }

  async #restore(record: BatchRecord): Promise<void> {
    const state = await this.#queue.getJobState(batchJobId(record));
    if (LIVE.has(state)) return;
    await this.#wake(record);
  }
}

function newBatch(owner: string, request: BatchRequest, key: string | undefined, now: number): BatchRecord {
  const { windowMs, ...rest } = request;
  return {
    v: 1,
    id: `batch_${key === undefined ? randomUUID().replaceAll('-', '') : hashed(JSON.stringify([owner, key]))}`,
    owner,
    ...rest,
    createdAt: now,
    expiresAt: now + windowMs,
    state: 'validating',
    since: { validating: now },
    checkpoint: { line: 0, end: 0, completed: 0, failed: 0, output: [], errors: [] },
    outputFileId: newFileId(),
    errorFileId: newFileId(),
    epoch: 0,
    run: 0,
  };
}

function hashed(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** @throws MillraceError `idempotency_key_reused`. */
function sameBatch(made: BatchView, record: BatchRecord): BatchView {
  if (identityOf(made.record) === identityOf(record)) return made;
  throw new MillraceError('idempotency_key_reused', undefined, { field: 'Idempotency-Key' });
}

function isToRun(record: BatchRecord): boolean {
  return !hasEnded(record) && record.state !== 'paused';
}

/** Waits for all to settle, but no longer than so many ms. */
async function within(ms: number, all: (Promise<unknown> | undefined)[]): Promise<void> {
  await Promise.race([Promise.allSettled(all), sleep(ms, undefined, { ref: false })]);
}

/** What two askings under one name must have in common. */
function identityOf({
  endpoint,
  inputFileId,
  completionWindow,
  outputKeepMs,
  metadata,
}: BatchRecord): string {
  return JSON.stringify([endpoint, inputFileId, completionWindow, outputKeepMs, metadata]);
}
