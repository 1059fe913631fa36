/** Addresses remembered; past this, those whose time is up are cleared, and unknown ones have to wait. */
const MAX_ADDRESSES = 10_000;

interface Attempts {
  failed: number;
  /** When counting starts anew, in ms of the monotonic clock. */
  resetAt: number;
}

/** Limits failed logins by address. */
export class LoginAttempts {
  readonly #byAddress = new Map<string, Attempts>();
  readonly #limit: number;
  readonly #windowMs: number;

  /** @param windowMs within which `limit` failures are allowed, in ms from the first. */
  constructor(limit = 10, windowMs = 60_000) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /** Seconds that an address has to wait before it may try; 0 if it may now. */
  waitSeconds(address: string): number {
    const attempts = this.#byAddress.get(address);
    const now = performance.now();
    if (!attempts) return this.#full() ? this.#windowMs / 1000 : 0;
    if (attempts.resetAt <= now || attempts.failed < this.#limit) return 0;
    return Math.ceil((attempts.resetAt - now) / 1000);
  }

  failed(address: string): void {
    const now = performance.now();
    const attempts = this.#byAddress.get(address);
    if (attempts && attempts.resetAt > now) attempts.failed += 1;
    else this.#byAddress.set(address, { failed: 1, resetAt: now + this.#windowMs });
  }

  succeeded(address: string): void {
    this.#byAddress.delete(address);
  }

  #full(): boolean {
    if (this.#byAddress.size < MAX_ADDRESSES) return false;
    for (const [address, { resetAt }] of this.#byAddress) {
      if (resetAt <= performance.now()) this.#byAddress.delete(address);
    }
    return this.#byAddress.size >= MAX_ADDRESSES;
  }
}
