import { Readable } from 'node:stream';
import { MillraceError } from '@millrace/shared';
import type { FileStore } from '../files/store.js';
import type { LineAnswer } from './batch-lines.js';
import type { BatchRecord, Checkpoint, Segment } from './batch-record.js';
import { SegmentBuffer } from './segments.js';

/** Lines are written when they are so many bytes, or when the last writing is so long ago, in ms. */
const SEGMENT_BYTES = 8 * 1024 * 1024;
const CHECKPOINT_MS = 10_000;
/** While so much waits to be written, no more is read. */
const MOST_UNWRITTEN_BYTES = 2 * SEGMENT_BYTES;

/** A line with its answer, in the order of the input. */
export interface WrittenLine {
  number: number;
  /** Offset behind it in the input. */
  end: number;
  answer: LineAnswer;
}

export interface CheckpointParts {
  store: FileStore;
  /**
   * Makes a checkpoint the batch's; rejects where another runner has taken over. `advance` may be asked again, with what it
   * said itself before.
   */
  commit(advance: (before: Checkpoint) => Checkpoint): Promise<void>;
}

/**
 * Writes the lines of a batch to its two files, and after them how far it has got. Objects are written first and named
 * by the checkpoint afterwards, in one step, so that each line is in one of the files once, whatever ends in between.
 */
export class CheckpointWriter {
  readonly #parts: CheckpointParts;
  readonly #output: SegmentBuffer;
  readonly #errors: SegmentBuffer;
  #place: Pick<Checkpoint, 'line' | 'end' | 'completed' | 'failed'>;
  #saving: Promise<void> | undefined;
  #savedAt = performance.now();
  #savedLine: number;
  #failure: { error: unknown } | undefined;

  constructor({ checkpoint, outputFileId, errorFileId, epoch }: BatchRecord, parts: CheckpointParts) {
    this.#parts = parts;
    const { line, end, completed, failed, output, errors } = checkpoint;
    this.#place = { line, end, completed, failed };
    this.#savedLine = line;
    this.#output = new SegmentBuffer(outputFileId, output.length, epoch);
    this.#errors = new SegmentBuffer(errorFileId, errors.length, epoch);
  }

  /** Lines that were added, those of earlier runners included. */
  get counts(): { completed: number; failed: number } {
    const { completed, failed } = this.#place;
    return { completed, failed };
  }

  add({ number, end, answer }: WrittenLine): void {
    const { completed, failed } = this.#place;
    this.#place = answer.succeeded
      ? { line: number, end, completed: completed + 1, failed }
      : { line: number, end, completed, failed: failed + 1 };
    (answer.succeeded ? this.#output : this.#errors).add(answer.text);
    if (this.#unwritten >= SEGMENT_BYTES) this.#begin();
  }

  /** Writes what has waited long. */
  tick(): void {
    if (performance.now() - this.#savedAt >= CHECKPOINT_MS) this.#begin();
  }

  /**
   * Resolves when there is room for more.
   * @throws what the writing failed with.
   */
  async room(): Promise<void> {
    if (this.#unwritten >= MOST_UNWRITTEN_BYTES) await this.#saving;
    if (this.#failure) throw this.#failure.error;
  }

  /**
   * Writes all that was added.
   * @throws what the writing failed with.
   */
  async finish(): Promise<void> {
    await this.#saving;
    this.#begin();
    await this.#saving;
    if (this.#failure) throw this.#failure.error;
  }

  get #unwritten(): number {
    return this.#output.bytes + this.#errors.bytes;
  }

  #begin(): void {
    if (this.#saving || this.#failure || this.#place.line === this.#savedLine) return;
    this.#saving = this.#save()
      .catch((error: unknown) => {
        this.#failure = { error };
      })
      .finally(() => {
        this.#saving = undefined;
        this.#savedAt = performance.now();
      });
  }

  async #save(): Promise<void> {
    const place = this.#place;
    const [output, errors] = await Promise.all([this.#put(this.#output), this.#put(this.#errors)]);
    await this.#parts.commit((before) =>
      // Done already, where only the answer to that was lost.
      before.line === place.line
        ? before
        : {
            ...place,
            output: [...before.output, ...output],
            errors: [...before.errors, ...errors],
          },
    );
    this.#savedLine = place.line;
  }

  async #put(buffer: SegmentBuffer): Promise<Segment[]> {
    const taken = buffer.take();
    if (!taken) return [];
    const { segment, pieces } = taken;
    const written = await this.#parts.store.put(segment.key, Readable.from(pieces));
    if (written !== segment.bytes) {
      throw new MillraceError('internal', undefined, {}, { cause: new Error(`${segment.key} is cut short`) });
    }
    return [segment];
  }
}
