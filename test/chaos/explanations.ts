import type { Excuse, FaultRecord, Span } from './history.js';

const NO_EXCUSE: Excuse = { codes: [], outage: false, recoveryMs: 0 };

/** What the faults of a run explain. */
export class Explanations {
  readonly #faults: readonly FaultRecord[];
  readonly #excuses: Readonly<Record<string, Excuse>>;

  constructor(faults: readonly FaultRecord[], excuses: Readonly<Record<string, Excuse>>) {
    this.#faults = faults;
    this.#excuses = excuses;
  }

  of(fault: FaultRecord): Excuse {
    return this.#excuses[fault.name] ?? NO_EXCUSE;
  }

  /** The faults that something met, their recovery included. */
  met({ from, to }: Span): FaultRecord[] {
    return this.#faults.filter((f) => to >= f.from && from <= f.to + this.of(f).recoveryMs);
  }

  /** Whether a fault that was met explains an error, or a broken connection. */
  explain(span: Span, code: string): boolean {
    return this.met(span).some((f) => this.of(f).codes.includes(code));
  }

  /** Whether Redis was away from somebody meanwhile. */
  hadOutage(span: Span): boolean {
    return this.met(span).some((f) => this.of(f).outage);
  }

  /** The faults met, for who reads of a problem. */
  told(span: Span): string {
    return (
      this.met(span)
        .map(({ name, target }) => `${name} of ${target}`)
        .join(', ') || 'none'
    );
  }
}
