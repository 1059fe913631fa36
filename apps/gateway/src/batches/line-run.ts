import { setMaxListeners } from 'node:events';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { type ErrorCode, type GatewayMetrics, MillraceError, type RedisClock } from '@millrace/shared';
import { toMillraceError } from '../http/errors.js';
import { timingsOf } from '../http/respond.js';
import { failIfAnyFailed } from '../inference/item-errors.js';
import type { LineGroups } from '../lines/line-groups.js';
import { LineWindow } from '../lines/line-window.js';
import { type Line, splitLines } from '../lines/split-lines.js';
import {
  type AddressedLine,
  answeredLine,
  failedLine,
  type LineAnswer,
  LineError,
  type LineReader,
} from './batch-lines.js';
import type { BatchRecord } from './batch-record.js';
import type { CheckpointWriter } from './checkpoint-writer.js';
import type { BatchInput } from './input.js';

/** Lines are read for so long, in ms, before all else has its turn: where they fail at once, nothing else makes room. */
const TURN_MS = 5;
/** Bytes of lines that are under way at once. */
const MOST_BYTES = 32 * 1024 * 1024;
/** How long lines may take from when they are handed to the queue, in ms; then they are handed over again. */
const LONGEST_RUN_MS = 600_000;
/** Longest time between two tries, in ms; the first comes after a twentieth of it. */
const LONGEST_PAUSE_MS = 5000;
const FIRST_PAUSE_MS = 250;
/** What passes by itself: lines wait for it as long as their batch may take. */
const PASSING = new Set<ErrorCode>([
  'overloaded',
  'queue_full',
  'no_worker',
  'queue_unavailable',
  'deadline_exceeded',
  'shutting_down',
]);
/** How often a line is tried that fails with anything else that may pass. */
const MOST_TRIES = 3;

export interface LineRunParts {
  input: BatchInput;
  readLine: LineReader;
  groups: LineGroups;
  writer: CheckpointWriter;
  clock: RedisClock;
  metrics: GatewayMetrics;
  /** Most items under way at once, and of one group. */
  mostItems: number;
  groupItems: number;
  /** Longest line, in bytes. */
  mostLineBytes: number;
}

interface Entry {
  line: Line;
  items: number;
  bytes: number;
  /**
   * Writes its answer, once that is there. Done in the line's turn: as text it is three times as large as the values
   * that it is made of, and while it waited for the lines before it, it would grow old in the heap.
   */
  answer?: () => LineAnswer;
}

/** Runs the lines of a batch behind its checkpoint, and adds their answers to its files in order. */
export class LineRun {
  readonly #batch: BatchRecord;
  readonly #parts: LineRunParts;
  readonly #window: LineWindow;
  /** Lines under way, in order. */
  readonly #entries: Entry[] = [];
  readonly #stopped = new AbortController();
  #expired = false;
  /** What goes on writing answers when all else has had its turn. */
  #writing: NodeJS.Immediate | undefined;

  constructor(batch: BatchRecord, parts: LineRunParts) {
    this.#batch = batch;
    this.#parts = parts;
    this.#window = new LineWindow(parts.mostItems, MOST_BYTES, parts.groupItems);
    // Every line that waits for another try listens.
    setMaxListeners(0, this.#stopped.signal);
  }

  /** Whether lines were left unrun because the batch's time was over. */
  get expired(): boolean {
    return this.#expired;
  }

  /** Reads no more, and takes back what is under way. */
  stop(): void {
    this.#stopped.abort();
    this.#parts.groups.abandon();
    this.#window.wake();
  }

  /**
   * Resolves when every line has its answer, or it was stopped; in both cases what was added to the files is in order.
   * @throws MillraceError of the reading of the input, or of the writing.
   */
  async run(): Promise<void> {
    const { input, writer, mostLineBytes } = this.#parts;
    const { line: number, end } = this.#batch.checkpoint;
    try {
      let turnEnds = performance.now() + TURN_MS;
      for await (const line of splitLines(input.bytes(end), mostLineBytes, { number, end })) {
        await writer.room();
        const isFull = !this.#window.hasRoom;
        if (isFull) await this.#window.room();
        const isOver = performance.now() >= turnEnds;
        if (isOver) await turn();
        if (isFull || isOver) turnEnds = performance.now() + TURN_MS;
        if (this.#stopped.signal.aborted) return;
        this.#begin(line);
      }
      while (!this.#window.isEmpty && !this.#stopped.signal.aborted) {
        await this.#window.empty();
        await writer.room();
      }
    } finally {
      this.stop();
    }
  }

  #begin(line: Line): void {
    const entry: Entry = { line, items: 1, bytes: line.bytes?.byteLength ?? 0 };
    this.#entries.push(entry);
    const addressed = this.#address(line);
    if (addressed instanceof LineError) {
      const answer = failedLine(this.#named(line, addressed.customId), addressed.error);
      entry.answer = () => answer;
    }
    this.#window.enter(entry.items, entry.bytes);
    if (addressed instanceof LineError) this.#advance();
    else void this.#answer(entry, addressed);
  }

  #address({ bytes }: Line): AddressedLine | LineError {
    const { readLine, mostLineBytes } = this.#parts;
    if (!bytes) {
      return new LineError(
        new MillraceError('body_too_large', `The line is longer than ${mostLineBytes} bytes.`),
        undefined,
      );
    }
    try {
      return readLine(bytes, this.#batch.endpoint);
    } catch (error) {
      return error instanceof LineError ? error : new LineError(toMillraceError(error), undefined);
    }
  }

  /** Gives a line its answer, however long that takes; none if the run is stopped before. */
  async #answer(entry: Entry, addressed: AddressedLine): Promise<void> {
    const { signal } = this.#stopped;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        entry.answer = await this.#try(entry, addressed);
        break;
      } catch (thrown) {
        if (signal.aborted) return;
        const error = toMillraceError(thrown);
        const passes = PASSING.has(error.code) || (error.spec.retryable && tries < MOST_TRIES);
        if (!passes || error.code === 'cancelled') {
          entry.answer = () => this.#refusal(entry, addressed, error);
          break;
        }
        await sleep(Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS), undefined, {
          signal,
        }).catch(() => undefined);
      }
    }
    if (entry.answer) this.#advance();
  }

  /** @throws what the door or the model has against it, or what may pass. */
  async #try(entry: Entry, addressed: AddressedLine): Promise<() => LineAnswer> {
    const { clock, groups } = this.#parts;
    const named = this.#named(entry.line, addressed.customId);
    const leftMs = this.#batch.expiresAt - clock.now();
    if (leftMs <= 0) {
      this.#expired = true;
      return () => failedLine(named, new MillraceError('batch_expired'));
    }
    const { request, partial, write } = addressed.read();
    this.#weigh(entry, request.itemCount);
    // Whole seconds: lines of the same time to run travel together.
    const waitMs = Math.min(LONGEST_RUN_MS, Math.ceil(leftMs / 1000) * 1000);
    const result = await groups.run({ ...request, waitMs });
    if (!partial) failIfAnyFailed(result);
    const { received = 0, replied = received } = result.stamps;
    return () => {
      try {
        const body = write(result, timingsOf(result.stamps, received, replied));
        return answeredLine(named, 200, result.requestId, body);
      } catch (error) {
        return this.#refusal(entry, addressed, toMillraceError(error));
      }
    };
  }

  #refusal({ line }: Entry, addressed: AddressedLine, error: MillraceError): LineAnswer {
    const named = this.#named(line, addressed.customId);
    const requestId = `${this.#batch.id}_${line.number}`;
    const { status, body } = addressed.refuse(error, requestId);
    return answeredLine(named, status, requestId, body);
  }

  /** A line counts with its items, once those are known. */
  #weigh(entry: Entry, items: number): void {
    this.#window.enter(items - entry.items, 0);
    entry.items = items;
  }

  /** Adds the answers that are there to the files, as far as none is missing before them. */
  #advance(): void {
    if (this.#writing) return;
    const { writer, metrics } = this.#parts;
    const turnEnds = performance.now() + TURN_MS;
    for (let entry = this.#entries[0]; entry?.answer; entry = this.#entries[0]) {
      if (performance.now() >= turnEnds) {
        this.#writing = setImmediate(() => {
          this.#writing = undefined;
          // The next runner writes what this one left.
          if (!this.#stopped.signal.aborted) this.#advance();
        });
        return;
      }
      this.#entries.shift();
      const { line, items, bytes } = entry;
      const answer = entry.answer();
      writer.add({ number: line.number, end: line.end, answer });
      metrics.batchLines.inc({ outcome: answer.succeeded ? 'completed' : 'failed' });
      this.#window.leave(items, bytes);
    }
  }

  #named({ number }: Line, customId: string | undefined) {
    return { batchId: this.#batch.id, number, customId };
  }
}
