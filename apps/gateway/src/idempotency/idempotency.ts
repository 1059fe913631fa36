import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type GatewayMetrics,
  idempotencyRecordKey,
  type Logger,
  MillraceError,
  queueName,
  type RedisClock,
} from '@millrace/shared';
import type { Answer } from '../http/respond.js';
import type { InferRequest } from '../inference/request.js';
import { Leases } from './leases.js';
import { type Claim, type IdempotencyRecord, type IdempotencyRecords, runningRecord } from './records.js';
import { RecordWatch } from './watch.js';

const IDEMPOTENCY_HEADER = 'Idempotency-Key';
const KEY = /^[\x20-\x7e]{1,255}$/;
/** Longest wait for Redis to keep an answer that is there, in ms. */
const KEEP_PATIENCE_MS = 250;

/** What makes two requests the same one. */
export interface RequestIdentity {
  method: string;
  path: string;
  /** Headers that change how the body is read. */
  reading: readonly (string | undefined)[];
  body: Buffer;
}

/** How a request ended that is final: the same request would end so again. */
export interface FinalOutcome {
  answer: Answer;
  error?: MillraceError;
}

/**
 * Requests that their clients named: one of a name runs, and a retry gets its answer. Names belong to an API
 * key and a model version.
 */
export class Idempotency {
  readonly #records: IdempotencyRecords;
  readonly #leases: Leases;
  readonly #watch: RecordWatch;
  readonly #clock: RedisClock;
  readonly #metrics: GatewayMetrics;
  readonly #logger: Logger;

  constructor(records: IdempotencyRecords, clock: RedisClock, metrics: GatewayMetrics, logger: Logger) {
    this.#records = records;
    this.#leases = new Leases(records, logger);
    this.#watch = new RecordWatch(records);
    this.#clock = clock;
    this.#metrics = metrics;
    this.#logger = logger;
  }

  /**
   * Runs a request, or answers with what was answered to it before.
   * @param run throws for an end that is not final: the next retry runs.
   * @returns what `run` returned, or the earlier answer alone.
   * @throws MillraceError `invalid_input` for the key, `idempotency_key_reused`, `queue_unavailable`,
   * `deadline_exceeded`, `cancelled`, and what `run` throws.
   */
  async once(
    key: string,
    identity: RequestIdentity,
    request: InferRequest,
    run: () => Promise<FinalOutcome>,
  ): Promise<FinalOutcome & { replayed: boolean }> {
    const claim = claimOf(key, identity, request);
    for (;;) {
      const held = await this.#claim(claim, request);
      if (!held) return await this.#run(claim, request, run);
      if (held.fingerprint !== claim.fingerprint) {
        throw new MillraceError('idempotency_key_reused', undefined, { field: IDEMPOTENCY_HEADER });
      }
      if (held.kind === 'done') return this.#replay(held.answer, request);
      if (held.kind === 'large') return { ...(await run()), replayed: false };
      await this.#watch.untilSettled(claim, request, request.deadlineAt - this.#clock.now());
    }
  }

  /** Gives up on the retries that wait. */
  failAll(error: Error): void {
    this.#watch.failAll(error);
  }

  stop(): void {
    this.#leases.stop();
    this.#watch.stop();
  }

  async #claim(claim: Claim, request: InferRequest): Promise<IdempotencyRecord | undefined> {
    const leftMs = request.deadlineAt - this.#clock.now();
    const tooLate = new AbortController();
    try {
      return await Promise.race([
        this.#records.claim(claim),
        delay(Math.max(0, leftMs), undefined, { signal: tooLate.signal }).then(() => {
          throw new MillraceError('deadline_exceeded');
        }),
      ]);
    } catch (cause) {
      if (cause instanceof MillraceError) throw cause;
      throw new MillraceError('queue_unavailable', undefined, { retryAfterSeconds: 1 }, { cause });
    } finally {
      tooLate.abort();
    }
  }

  async #run(
    claim: Claim,
    request: InferRequest,
    run: () => Promise<FinalOutcome>,
  ): Promise<FinalOutcome & { replayed: boolean }> {
    this.#leases.hold(claim);
    let outcome: FinalOutcome;
    try {
      outcome = await run();
    } catch (error) {
      this.#leases.release(claim);
      // Sent before the answer is: a retry finds the way free. If it is not sent, the lease runs out.
      this.#records.drop(claim).catch((err: unknown) => this.#missed(err, request));
      throw error;
    }
    this.#leases.release(claim);
    const earlier = await Promise.race([
      this.#records.finish(claim, outcome.answer).catch((err: unknown) => this.#missed(err, request)),
      delay(KEEP_PATIENCE_MS, undefined, { ref: false }),
    ]);
    return earlier ? this.#replay(earlier, request) : { ...outcome, replayed: false };
  }

  #replay(answer: Answer, { model }: InferRequest): FinalOutcome & { replayed: boolean } {
    this.#metrics.idempotentReplays.inc({ model: model.name });
    return { answer, replayed: true };
  }

  #missed(err: unknown, { requestId }: InferRequest): undefined {
    this.#logger.debug({ err, requestId }, 'the record of an idempotency key was not updated');
  }
}

/** @throws MillraceError `invalid_input`. */
export function requireIdempotencyKey(key: string): string {
  if (KEY.test(key)) return key;
  throw new MillraceError(
    'invalid_input',
    `The header ${IDEMPOTENCY_HEADER} must have 1 to 255 printable ASCII characters.`,
    { field: IDEMPOTENCY_HEADER },
  );
}

function claimOf(key: string, identity: RequestIdentity, request: InferRequest): Claim {
  requireIdempotencyKey(key);
  const { method, path, reading, body } = identity;
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([method, path, ...reading.map((value) => value ?? null)]))
    .update(body)
    .digest('hex');
  const name = createHash('sha256')
    .update(JSON.stringify([request.tenant, key]))
    .digest('base64url');
  return {
    key: idempotencyRecordKey(queueName(request.model.name, request.model.version), name),
    fingerprint,
    running: runningRecord(fingerprint, request.requestId),
  };
}
