import { Agent } from 'node:http';
import type { History, Kept, Outcome, RequestRecord } from './history.js';
import { codeOf, JSON_HEADERS, jsonOf, type Received, send } from './http-send.js';
import { PatientCalls } from './patient-calls.js';
import type { Question } from './questions.js';

/** A client waits this much longer than its request may take before it gives up, in ms. */
const PATIENCE_MS = 15_000;
/** Long before a gateway closes an idle connection (75 s): what is sent in that moment is lost on any server. */
const IDLE_MS = 30_000;
/** A result is waited for at a gateway so long at a time, in s. */
const COLLECT_WAIT_S = 5;

interface Answer {
  outputs?: unknown[];
  errors?: { index: number; code: string }[];
}

/** How a request is sent. */
export interface Asking {
  /** How long it may take, in ms. */
  waitMs: number;
  /** Ends the request from the client's side. */
  leave?: AbortSignal;
  /** `respond-async`, with or without a wait: then its work may take `waitMs`, and its result is collected. */
  prefer?: string;
}

/** The address of a result that is promised, or what became of the request. */
type Attempted = Outcome | { is: 'promised'; address: string };

/** Sends requests as a careful client does, and records all of it. */
export class RecordingClient {
  readonly calls: PatientCalls;
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
    this.calls = new PatientCalls(now, gateways, this.#agent);
  }

  /**
   * Asks once; where the gateway died (its connection refused or broken), once more at the other one with the
   * same idempotency key. Both are one request. A result that is promised is collected, from whatever gateway has it.
   */
  async ask(question: Question, { waitMs, leave, prefer }: Asking): Promise<RequestRecord> {
    const number = this.#count++;
    const kept: Kept = { failedCalls: [] };
    const record: RequestRecord = {
      id: `${this.#runId}-${number}`,
      kind: question.kind,
      asked: question.asked,
      sentAt: this.#now(),
      waitMs,
      ...(prefer === undefined ? {} : { kept }),
      outcome: { is: 'nothing' },
    };
    this.#history.requests.push(record);
    const patience = AbortSignal.timeout(waitMs + PATIENCE_MS);
    const signal = leave ? AbortSignal.any([leave, patience]) : patience;
    const attempt = (at: number): Promise<Attempted> => this.#attempt(at, record, question, prefer, signal);
    let attempted = await attempt(number);
    if (attempted.is === 'broken') {
      record.retried = { at: this.#now(), why: attempted.why };
      attempted = await attempt(number + 1);
    }
    const outcome =
      attempted.is === 'promised'
        ? await this.#collect(attempted.address, kept, question, signal)
        : attempted;
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
    prefer: string | undefined,
    signal: AbortSignal,
  ): Promise<Attempted> {
    const urls = this.#gateways();
    const { model, inputs, partial } = question;
    const waitMs = prefer === undefined ? { waitMs: record.waitMs } : {};
    const body = JSON.stringify({ inputs, ...waitMs, ...(partial ? { partial } : {}) });
    const headers: Record<string, string> = { ...JSON_HEADERS, 'Idempotency-Key': record.id };
    if (prefer !== undefined) {
      headers.Prefer = prefer;
      headers['Millrace-Keep-Ms'] = String(record.waitMs);
    }
    try {
      const url = `${urls[gateway % urls.length]}/v1/models/${model}/predict`;
      const received = await send(url, { method: 'POST', headers, body }, this.#agent, signal);
      if (received.status !== 202) return outcomeOf(received, question);
      return { is: 'promised', address: String(received.headers.location) };
    } catch (error) {
      if (signal.aborted) return { is: 'nothing' };
      const { code, message } = error as NodeJS.ErrnoException;
      return { is: 'broken', why: code ?? message };
    }
  }

  async #collect(address: string, kept: Kept, question: Question, signal: AbortSignal): Promise<Outcome> {
    kept.acceptedAt = this.#now();
    const path = `${address}/result?wait=${COLLECT_WAIT_S}`;
    for (;;) {
      const call = { method: 'GET', path, waitMs: COLLECT_WAIT_S * 1000 } as const;
      const received = await this.calls.make(call, kept.failedCalls, signal);
      if (!received) return { is: 'nothing' };
      if (received.status === 202) continue;
      try {
        return outcomeOf(received, question);
      } catch (error) {
        return { is: 'broken', why: (error as Error).message };
      }
    }
  }
}

function outcomeOf(received: Received, { recognise }: Question): Outcome {
  const body = jsonOf(received);
  if (received.status !== 200) return { is: 'error', status: received.status, code: codeOf(body) };
  const { outputs = [], errors = [] } = body as Answer;
  const failed = new Map(errors.map((error) => [error.index, error.code]));
  const answered = outputs.map((output, i) => (failed.has(i) ? `error ${failed.get(i)}` : recognise(output)));
  return { is: 'values', answered };
}
