import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ErrorCode,
  type GatewayMetrics,
  type Logger,
  MillraceError,
  type ModelDescription,
  type RedisClock,
  type Settings,
} from '@millrace/shared';
import type { Files } from '../files/files.js';
import type { FileStore } from '../files/store.js';
import { toMillraceError } from '../http/errors.js';
import type { Infer } from '../inference/infer.js';
import { LineGroups } from '../lines/line-groups.js';
import type { LineReader } from './batch-lines.js';
import { type BatchFault, type BatchRecord, hasEnded, inState, type Segment } from './batch-record.js';
import type { BatchRecords } from './batch-records.js';
import { CheckpointWriter } from './checkpoint-writer.js';
import { BatchInput } from './input.js';
import { LineRun } from './line-run.js';
import { segmentPrefix } from './segments.js';

/** A runner tells how far it is, and looks whether its batch was changed, this often, in ms. */
const TICK_MS = 1000;
/** While Redis can't be asked, a change is tried again this often, in ms. */
const AGAIN_MS = 500;
/** Most items of lines that travel together: few enough that they spread over sessions and workers. */
const MOST_GROUP_ITEMS = 32;
/** What a batch has written is kept so much longer than it may take, in ms, for whoever has to bring it to its end. */
const HELD_MS = 24 * 3600 * 1000;
/** What no waiting mends: the batch has failed. */
const FATAL = new Set<ErrorCode>(['empty_file', 'file_not_found', 'invalid_encoding']);

export interface RunnerParts {
  records: BatchRecords;
  files: Files;
  infer: Infer;
  readLine: LineReader;
  clock: RedisClock;
  metrics: GatewayMetrics;
  logger: Logger;
  /** Most items of a job of bulk work for a model, now. */
  jobItems(model: ModelDescription): number;
  settings: Pick<Settings, 'batchItems' | 'maxJobItems' | 'maxBodyBytes'>;
}

/**
 * How a run came to its end: `over` when nothing is left to do for this runner, `drained` when another gateway is to go
 * on, or what holds the batch up for now.
 */
export type RunEnd = 'over' | 'drained' | BatchFault;

/** What ends a run before the last line. */
type Stop = 'replaced' | 'paused' | 'cancelling' | 'drained';

/** Another runner has taken the batch over. */
class Replaced extends Error {
  override readonly name = 'Replaced';
}

/** Runs one batch, from where it stands to its end or to where it is stopped. */
export class BatchRunner {
  readonly #id: string;
  readonly #parts: RunnerParts;
  #epoch = 0;
  #stop: Stop | undefined;
  /** Whether the input file has a record: then that its bytes are not there is the storage's fault. */
  #found = false;
  #writer: CheckpointWriter | undefined;
  #lines: LineRun | undefined;
  readonly #aborted = new AbortController();

  constructor(id: string, parts: RunnerParts) {
    this.#id = id;
    this.#parts = parts;
  }

  /** Of this runner; 0 before it has taken the batch. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Writes what is done and leaves the rest to another gateway. */
  drain(): void {
    this.#stopFor('drained');
  }

  async run(): Promise<RunEnd> {
    const batch = await this.#parts.records.update(this.#id, (before) => {
      if (hasEnded(before) || before.state === 'paused') return undefined;
      const { heldUp: _, ...record } = before;
      return { ...record, epoch: before.epoch + 1 };
    });
    if (hasEnded(batch) || batch.state === 'paused') return 'over';
    this.#epoch = batch.epoch;
    const watch = this.#watch(batch);
    try {
      const ready = await this.#runLines(batch);
      return ready ? await this.#end() : 'over';
    } catch (thrown) {
      return await this.#endFor(thrown);
    } finally {
      clearInterval(watch);
    }
  }

  /** @returns whether the batch is to be brought to its end. */
  async #runLines(batch: BatchRecord): Promise<boolean> {
    if (batch.state !== 'validating' && batch.state !== 'in_progress') return true;
    const { files, clock, metrics, infer, readLine, settings } = this.#parts;
    const file = await files.get(batch.inputFileId, batch.owner);
    this.#found = true;
    const input = await BatchInput.open((start) => files.open(file, start));
    const begun = await this.#begin(batch, input);
    // Paused or taken back while its lines were counted.
    if (begun.state !== 'in_progress') return begun.state === 'cancelling';
    // What it writes has no record until it has ended.
    const heldUntil = begun.expiresAt + HELD_MS;
    await Promise.all(filesOf(begun).map((id) => files.hold(id, heldUntil)));
    const groupItems = Math.min(MOST_GROUP_ITEMS, settings.maxJobItems);
    const tenant = batch.owner;
    const groups = new LineGroups({
      infer,
      clock,
      tenant,
      priority: 'bulk',
      mostItems: (model) => Math.min(groupItems, this.#parts.jobItems(model)),
    });
    const writer = new CheckpointWriter(begun, {
      store: files.store,
      commit: async (advance) => {
        await this.#update((before) => ({ ...before, checkpoint: advance(before.checkpoint) }));
      },
    });
    const lines = new LineRun(begun, {
      input,
      readLine,
      groups,
      writer,
      clock,
      metrics,
      mostItems: settings.batchItems,
      groupItems,
      mostLineBytes: settings.maxBodyBytes,
    });
    this.#writer = writer;
    this.#lines = lines;
    if (this.#stop) lines.stop();
    await lines.run();
    await writer.finish();
    if (this.#stop === 'drained' || this.#stop === 'replaced') throw new Replaced();
    if (this.#stop === 'paused') return false;
    if (this.#stop !== 'cancelling') {
      const outcome = lines.expired ? 'expired' : 'completed';
      await this.#update((before) =>
        before.state === 'in_progress'
          ? inState({ ...before, outcome }, 'finalizing', this.#parts.clock.now())
          : undefined,
      );
    }
    return true;
  }

  /** Counts the lines, once. @throws MillraceError `empty_file`, `invalid_encoding`. */
  async #begin(batch: BatchRecord, input: BatchInput): Promise<BatchRecord> {
    if (batch.state === 'in_progress') return batch;
    const total = await input.countLines(this.#aborted.signal);
    if (total === 0) throw new MillraceError('empty_file');
    return this.#update((before) =>
      before.state === 'validating'
        ? inState({ ...before, total }, 'in_progress', this.#parts.clock.now())
        : { ...before, total },
    );
  }

  /** Makes files of what was written and says that the batch has ended. */
  async #end(): Promise<RunEnd> {
    const { clock, files } = this.#parts;
    const batch = await this.#update(() => undefined);
    if (batch.state !== 'finalizing' && batch.state !== 'cancelling') return 'over';
    const { outputFileId, errorFileId, checkpoint } = batch;
    await this.#publish(batch, outputFileId, 'output', checkpoint.output);
    await this.#publish(batch, errorFileId, 'error', checkpoint.errors);
    const ended = batch.state === 'cancelling' ? 'cancelled' : (batch.outcome ?? 'completed');
    await this.#update((before) => inState(before, ended, clock.now()));
    this.#parts.logger.info({ batch: this.#id, ended }, 'a batch has ended');
    await Promise.all([
      removeOthers(files.store, outputFileId, checkpoint.output),
      removeOthers(files.store, errorFileId, checkpoint.errors),
    ]).catch((err: unknown) =>
      this.#parts.logger.warn({ err }, 'what a batch left behind could not be removed'),
    );
    // What is left all the same is swept.
    await files.letGo(filesOf(batch)).catch(() => undefined);
    return 'over';
  }

  async #publish(
    { id, owner, outputKeepMs }: BatchRecord,
    fileId: string,
    kind: string,
    segments: Segment[],
  ): Promise<void> {
    if (segments.length === 0) return;
    const createdAt = this.#parts.clock.now();
    await this.#parts.files.adopt({
      v: 1,
      id: fileId,
      owner,
      filename: `${id}_${kind}.jsonl`,
      purpose: 'batch_output',
      createdAt,
      expiresAt: createdAt + outputKeepMs,
      bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
      segments,
    });
  }

  /** What a run comes to that did not get to its last line. */
  async #endFor(thrown: unknown): Promise<RunEnd> {
    const { logger, clock } = this.#parts;
    if (this.#stop === 'drained') return 'drained';
    if (thrown instanceof Replaced || this.#stop === 'replaced') return 'over';
    if (this.#stop === 'paused') return 'over';
    const error = toMillraceError(thrown);
    const { code, message } = error;
    if (code === 'batch_not_found') return 'over';
    if (this.#stop === 'cancelling') return this.#end();
    if (FATAL.has(code) && !(this.#found && code === 'file_not_found')) {
      await this.#update((before) =>
        before.state === 'validating' || before.state === 'in_progress'
          ? inState({ ...before, outcome: 'failed', faults: [{ code, message }] }, 'finalizing', clock.now())
          : undefined,
      );
      return this.#end();
    }
    logger.error({ err: error, batch: this.#id }, 'a batch is held up');
    await this.#update((before) => ({ ...before, heldUp: { code, message } }));
    return { code, message };
  }

  /** @throws Replaced where another runner has taken over. Waits for a Redis that is away. */
  async #update(change: (before: BatchRecord) => BatchRecord | undefined): Promise<BatchRecord> {
    for (;;) {
      try {
        return await this.#parts.records.update(this.#id, (before) => {
          if (before.epoch !== this.#epoch) throw new Replaced();
          return change(before);
        });
      } catch (error) {
        if (error instanceof Replaced || error instanceof MillraceError) throw error;
        if (this.#stop === 'drained') throw error;
        await sleep(AGAIN_MS);
      }
    }
  }

  #watch(batch: BatchRecord): NodeJS.Timeout {
    let seen: string | undefined;
    let busy = false;
    const look = async (): Promise<void> => {
      this.#writer?.tick();
      const counts = this.#writer?.counts ?? batch.checkpoint;
      const revision = await this.#parts.records.tell({ id: this.#id, epoch: this.#epoch }, counts);
      if (revision === seen) return;
      seen = revision;
      const record = (await this.#parts.records.find(this.#id))?.record;
      if (record?.epoch !== this.#epoch) this.#stopFor('replaced');
      else if (record.state === 'paused' || record.state === 'cancelling') this.#stopFor(record.state);
    };
    return setInterval(() => {
      if (busy) return;
      busy = true;
      look()
        .catch(() => undefined)
        .finally(() => {
          busy = false;
        });
    }, TICK_MS);
  }

  #stopFor(stop: Stop): void {
    if (this.#stop) return;
    this.#stop = stop;
    this.#aborted.abort();
    this.#lines?.stop();
  }
}

function filesOf({ outputFileId, errorFileId }: BatchRecord): string[] {
  return [outputFileId, errorFileId];
}

/** What runners wrote that others had taken over from. */
async function removeOthers(store: FileStore, fileId: string, segments: readonly Segment[]): Promise<void> {
  const kept = new Set(segments.map(({ key }) => key));
  const others: string[] = [];
  for await (const { key } of store.list(segmentPrefix(fileId))) if (!kept.has(key)) others.push(key);
  await store.remove(others);
}
