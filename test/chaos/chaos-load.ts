import { setTimeout as sleep } from 'node:timers/promises';
import { arrivalGapMs, type Random } from '../support/random.js';
import type { Asking, RecordingClient } from './client.js';
import { oneOf } from './fault.js';
import type { Questions } from './questions.js';

/** Time for a fault to be mended, and too little for one, in ms. */
const PATIENT_MS = 10_000;
const HURRIED_MS = 3000;
/** Nobody waits at a connection: longer than all faults that can follow one another. */
export const KEPT_MS = 60_000;
/** Some get their answer at once if it is there soon. */
const PREFERENCES = ['respond-async', 'respond-async, wait=1'];

export interface LoadPlan {
  random: Random;
  /** Requests a second: they arrive whether or not earlier ones are answered, as those of many clients do. */
  rate: number;
  /** Share of requests with a deadline that a fault may outlast. */
  hurried: number;
  /** Share of requests whose answer is collected later. */
  kept: number;
}

/** An open loop of requests, drawn from a seed. */
export class ChaosLoad {
  readonly #client: RecordingClient;
  readonly #questions: Questions;
  readonly #plan: LoadPlan;
  readonly #underWay = new Set<Promise<unknown>>();
  #stopped = false;
  readonly #sending: Promise<void>;

  constructor(client: RecordingClient, questions: Questions, plan: LoadPlan) {
    this.#client = client;
    this.#questions = questions;
    this.#plan = plan;
    this.#sending = this.#send();
  }

  /** Sends no more, and resolves when every request has its outcome. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#sending;
    await Promise.all(this.#underWay);
  }

  async #send(): Promise<void> {
    const { random, rate } = this.#plan;
    let next = performance.now();
    while (!this.#stopped) {
      next += arrivalGapMs(random, rate);
      const early = next - performance.now();
      if (early > 0) await sleep(early);
      const asking = this.#client.ask(this.#questions.next(), this.#asking());
      this.#underWay.add(asking);
      void asking.finally(() => this.#underWay.delete(asking));
    }
  }

  #asking(): Asking {
    const { random, hurried, kept } = this.#plan;
    const drawn = random();
    if (drawn < hurried) return { waitMs: HURRIED_MS };
    if (drawn >= hurried + kept) return { waitMs: PATIENT_MS };
    return { waitMs: KEPT_MS, prefer: oneOf(random, PREFERENCES) };
  }
}
