import type { Gateway } from '../gateway.js';
import { Harness } from './harness.js';
import { textModel } from './models.js';
import { uniqueName, until } from './redis.js';
import type { StandInWorker } from './stand-in-worker.js';

/** A model whose worker answers nothing until it is let go. */
export interface HeldModel {
  model: string;
  worker: StandInWorker;
  letGo(): void;
  /** Waits until it has a part to answer. */
  isHeld(): Promise<void>;
}

/** A gateway that takes lines of at most 4 KiB, and a model of texts, of which those that begin with `bad` fail. */
export class LinesDoor {
  readonly harness = new Harness();
  readonly texts = uniqueName('lines');
  gateway = {} as Gateway;

  async open(): Promise<void> {
    await this.harness.worker(textModel(this.texts), {
      verdict: (item) =>
        item.startsWith('bad')
          ? { status: 'failed', code: 'text_too_long', message: 'Too long.' }
          : { status: 'ok', tokens: 3 },
    });
    this.gateway = await this.harness.gateway({ maxBodyBytes: 4096 });
  }

  close(): Promise<void> {
    return this.harness.release();
  }

  readonly url = (model = this.texts, query = '', at = this.gateway): string =>
    `${at.url}/v1/models/${model}/predict${query}`;

  readonly served = (model: string): Promise<void> =>
    until(
      'the model is served',
      async () => (await fetch(`${this.gateway.url}/v2/models/${model}/ready`)).ok,
    );

  readonly hold = async (prefix: string): Promise<HeldModel> => {
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let parts = 0;
    const model = uniqueName(prefix);
    const worker = await this.harness.worker(textModel(model), {
      before: async () => {
        parts += 1;
        if (parts === 1) await gate;
      },
    });
    await this.served(model);
    return { model, worker, letGo, isHeld: () => until('a line is held', () => parts > 0) };
  };
}

/** Lines with a text each. */
export function inputs(count: number, from = 1): { inputs: string }[] {
  return Array.from({ length: count }, (_, i) => ({ inputs: `line ${from + i}` }));
}

/** 1 to `count`. */
export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}
