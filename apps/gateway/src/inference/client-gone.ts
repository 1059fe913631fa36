/**
 * Whether a client went away before its answer. What an AbortSignal would tell, at a tenth of its price for
 * each request: most clients stay.
 */
export class ClientGone {
  #gone = false;
  #listener: (() => void) | undefined;

  get gone(): boolean {
    return this.#gone;
  }

  /** Calls `listener` when the client goes, at once if it has. One listener: the request that waits. */
  listen(listener: () => void): void {
    if (this.#gone) listener();
    else this.#listener = listener;
  }

  tell(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#listener?.();
  }
}
