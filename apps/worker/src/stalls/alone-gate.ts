/**
 * Lets one item of a process at a time run after its marker. When the process dies then, at most one item is
 * charged with it: two at once would make an innocent one share the guilt.
 */
export class AloneGate {
  #taken = false;
  readonly #listeners: (() => void)[] = [];

  get free(): boolean {
    return !this.#taken;
  }

  take(): void {
    this.#taken = true;
  }

  release(): void {
    this.#taken = false;
    for (const listener of this.#listeners) listener();
  }

  /** Told whenever it is free again. */
  onFree(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
