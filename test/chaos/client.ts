import { Agent } from 'node:http';
import type { History, Outcome, RequestRecord } from './history.js';
import { postJson } from './http-post.js';
import type { Question } from './questions.js';

/** A client waits this much longer than its request may take before it gives up, in ms. */
const PATIENCE_MS = 15_000;
/** Long before a gateway closes an idle connection (75 s): what is sent in that moment is lost on any server. */
const IDLE_MS = 30_000;

interface Answer {
  outputs?: unknown[];
  errors?: { index: number; code: string }[];
  code?: string;
}

/** Sends requests as a careful client does, and records all of it. */
export class RecordingClient {
  readonly #history: History;
  readonly #now: () => number;
  readonly #gateways: () => readonly string[];
  readonly #runId: string;
  readonly #agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  #count = 0;

  /** `gateways`: their base URLs now; `runId` makes the idempotency keys of this run its own. */
  constructor(history: History, now: () => number, gateways: () => readonly string[], runId: string) {
    this.#history = history;
    this.#now = now;
    this.#gateways = gateways;
    this.#runId = runId;
  }

  /**
   * Asks once; where the gateway died (its connection refused or broken), once more at the other one with the
   * same idempotency key. Both are one request.
   * @param leave ends the request from the client's side.
   */
  async ask(question: Question, waitMs: number, leave?: AbortSignal): Promise<RequestRecord> {
    const number = this.#count++;
    const record: RequestRecord = {
      id: `${this.#runId}-${number}`,
      kind: question.kind,
      asked: question.asked,
      sentAt: this.#now(),
      waitMs,
      outcome: { is: 'nothing' },
    };
    this.#history.requests.push(record);
    const patience = AbortSignal.timeout(waitMs + PATIENCE_MS);
    const signal = leave ? AbortSignal.any([leave, patience]) : patience;
    const attempt = (at: number): Promise<Outcome> => this.#attempt(at, record, question, signal);
    let outcome = await attempt(number);
    if (outcome.is === 'broken') {
      record.retried = { at: this.#now(), why: outcome.why };
      outcome = await attempt(number + 1);
    }
    record.outcome = leave?.aborted ? { is: 'vanished' } : outcome;
    record.endedAt = this.#now();
    return record;
  }

  /** Closes its idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #attempt(
    gateway: number,
    record: RequestRecord,
    question: Question,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const urls = this.#gateways();
    const { model, inputs, partial, recognise } = question;
    const body = { inputs, waitMs: record.waitMs, ...(partial ? { partial } : {}) };
    try {
      const url = `${urls[gateway % urls.length]}/v1/models/${model}/predict`;
      const answer = await postJson(url, body, { 'Idempotency-Key': record.id }, this.#agent, signal);
      const { outputs = [], errors = [], code = '' } = answer.body as Answer;
      if (answer.status !== 200) return { is: 'error', status: answer.status, code };
      const failed = new Map(errors.map((error) => [error.index, error.code]));
      const answered = outputs.map((output, i) =>
        failed.has(i) ? `error ${failed.get(i)}` : recognise(output),
      );
      return { is: 'values', answered };
    } catch (error) {
      if (signal.aborted) return { is: 'nothing' };
      const { code, message } = error as NodeJS.ErrnoException;
      return { is: 'broken', why: code ?? message };
    }
  }
}
