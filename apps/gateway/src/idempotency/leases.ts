import type { Logger } from '@millrace/shared';
import { type Claim, type IdempotencyRecords, LEASE_MS } from './records.js';

const RENEW_MS = LEASE_MS / 3;

/** The claims whose requests run in this gateway; all are renewed together, with one timer. */
export class Leases {
  readonly #records: IdempotencyRecords;
  readonly #logger: Logger;
  readonly #held = new Set<Claim>();
  #timer: NodeJS.Timeout | undefined;

  constructor(records: IdempotencyRecords, logger: Logger) {
    this.#records = records;
    this.#logger = logger;
  }

  hold(claim: Claim): void {
    this.#held.add(claim);
    this.#timer ??= setInterval(() => void this.#renew(), RENEW_MS);
  }

  release(claim: Claim): void {
    this.#held.delete(claim);
    if (this.#held.size === 0) this.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #renew(): Promise<void> {
    // Sent in one turn, they leave in one write.
    const renewed = await Promise.allSettled([...this.#held].map((claim) => this.#records.renew(claim)));
    const failed = renewed.find((outcome) => outcome.status === 'rejected');
    if (failed) this.#logger.debug({ err: failed.reason }, 'claims on idempotency keys were not renewed');
  }
}
