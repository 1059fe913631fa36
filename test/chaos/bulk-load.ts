import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findingsOf } from './batch-findings.js';
import { BULK_ENDPOINT, type BulkLine, type BulkLines } from './bulk-lines.js';
import type { BatchRun } from './history.js';
import { JSON_HEADERS, jsonOf, type Received } from './http-send.js';
import type { Call, PatientCalls } from './patient-calls.js';

const POLL_MS = 500;
const BOUNDARY = 'chaos-bulk-form';
const ENDED = new Set(['completed', 'failed', 'expired', 'cancelled']);

export interface BulkPlan {
  /** Lines of a batch. */
  lines: number;
  /** Where the files of a batch go that are not as they must be. */
  folder: string;
  /** Makes the idempotency keys of this run its own. */
  runId: string;
}

/** A batch as it is answered. */
interface Batch {
  id: string;
  status: string;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: { total: number; completed: number; failed: number };
}

/** One batch after the other, each judged by its files. */
export class BulkLoad {
  readonly #calls: PatientCalls;
  readonly #draw: BulkLines;
  readonly #batches: BatchRun[];
  readonly #plan: BulkPlan;
  readonly #now: () => number;
  readonly #givenUp = new AbortController();
  readonly #running: Promise<void>;
  #stopped = false;

  /** @param batches gets a record of each. */
  constructor(calls: PatientCalls, draw: BulkLines, batches: BatchRun[], plan: BulkPlan, now: () => number) {
    this.#calls = calls;
    this.#draw = draw;
    this.#batches = batches;
    this.#plan = plan;
    this.#now = now;
    this.#running = this.#run();
  }

  /** Begins no more, and resolves when the last batch has ended, or after so many ms. */
  async stop(mostMs: number): Promise<void> {
    this.#stopped = true;
    const timer = setTimeout(() => this.#givenUp.abort(), mostMs);
    await this.#running;
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const run: BatchRun = {
        id: `${this.#plan.runId}-batch-${this.#batches.length + 1}`,
        lines: this.#plan.lines,
        from: this.#now(),
        end: 'nothing',
        failedCalls: [],
      };
      this.#batches.push(run);
      try {
        await this.#one(run, this.#draw.draw(run.lines));
      } catch (error) {
        // The verdict tells of it, and the next batch is tried.
        run.end = (error as Error).message;
      }
      run.to = this.#now();
    }
  }

  async #one(run: BatchRun, lines: readonly BulkLine[]): Promise<void> {
    const text = `${lines.map((line) => line.text).join('\n')}\n`;
    const { id: fileId } = (await this.#json(run, uploadOf(run.id, text))) as { id: string };
    const asked = { input_file_id: fileId, endpoint: BULK_ENDPOINT, completion_window: '24h' };
    const headers = { ...JSON_HEADERS, 'Idempotency-Key': run.id };
    const body = JSON.stringify(asked);
    let batch = (await this.#json(run, { method: 'POST', path: '/v1/batches', headers, body })) as Batch;
    while (!ENDED.has(batch.status)) {
      run.end = batch.status;
      await sleep(POLL_MS);
      batch = (await this.#json(run, { method: 'GET', path: `/v1/batches/${batch.id}` })) as Batch;
    }
    run.end = batch.status;
    const { output_file_id: outputId, error_file_id: errorId } = batch;
    const files = { output: await this.#text(run, outputId), errors: await this.#text(run, errorId) };
    run.found = findingsOf(lines, files);
    const { total, completed, failed } = batch.request_counts;
    const written = { completed: linesOf(files.output), failed: linesOf(files.errors) };
    if (total !== lines.length || completed !== written.completed || failed !== written.failed) {
      run.found.told.push(
        `it counts ${JSON.stringify(batch.request_counts)}, and wrote ${JSON.stringify(written)}`,
      );
    }
    if (run.found.told.length > 0) {
      await writeFile(join(this.#plan.folder, `${run.id}.json`), JSON.stringify({ batch, text, ...files }));
    }
    for (const id of [fileId, outputId, errorId]) {
      if (id !== null) await this.#make(run, { method: 'DELETE', path: `/v1/files/${id}` });
    }
  }

  async #text(run: BatchRun, fileId: string | null): Promise<string> {
    if (fileId === null) return '';
    return (await this.#ok(run, { method: 'GET', path: `/v1/files/${fileId}/content` })).body.toString();
  }

  async #json(run: BatchRun, call: Call): Promise<unknown> {
    return jsonOf(await this.#ok(run, call));
  }

  async #ok(run: BatchRun, call: Call): Promise<Received> {
    const received = await this.#make(run, call);
    if (received.status === 200) return received;
    throw new Error(
      `${call.method} ${call.path}: ${received.status} ${received.body.toString().slice(0, 200)}`,
    );
  }

  async #make(run: BatchRun, call: Call): Promise<Received> {
    const received = await this.#calls.make(call, run.failedCalls, this.#givenUp.signal);
    if (!received) throw new Error(`${call.method} ${call.path}: given up, it was ${run.end}`);
    return received;
  }
}

/** The same text under the same name is the same file, however often it is sent. */
function uploadOf(name: string, text: string): Call {
  const part = (head: string, value: string): string =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
  const body = `${part('name="purpose"', 'batch')}${part('name="file"; filename="lines.jsonl"', text)}--${BOUNDARY}--\r\n`;
  const headers = {
    'Content-Type': `multipart/form-data; boundary=${BOUNDARY}`,
    'Idempotency-Key': name,
  };
  return { method: 'POST', path: '/v1/files', headers, body: Buffer.from(body) };
}

function linesOf(text: string): number {
  return text.split('\n').length - 1;
}
