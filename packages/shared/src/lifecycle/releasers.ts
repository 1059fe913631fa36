/**
 * Whoever acquires something pushes how to release it. `release` runs them once, last acquired first, goes
 * on past a failing one and throws the first error at the end, so that shutting down can't forget or repeat.
 */
export class Releasers {
  #stack: (() => Promise<void> | void)[] = [];
  #released: Promise<void> | undefined;

  push(release: () => Promise<void> | void): void {
    this.#stack.push(release);
  }

  release(): Promise<void> {
    this.#released ??= this.#run();
    return this.#released;
  }

  async #run(): Promise<void> {
    const errors: unknown[] = [];
    for (let next = this.#stack.pop(); next; next = this.#stack.pop()) {
      try {
        await next();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
