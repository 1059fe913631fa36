import {
  type ErrorCode,
  MillraceError,
  type ModelDescription,
  type RedisClock,
  type Settings,
} from '@millrace/shared';
import { parseStrictJson } from '../../http/strict-json.js';
import type { InferResult } from '../../inference/request.js';
import type { LineGroups } from '../../lines/line-groups.js';
import type { ParsedInputs } from '../new-request.js';
import { parsePredict } from './parse.js';

/** Lines that are tried again within so many ms travel together again. */
const TOGETHER_MS = 50;
/** What passes: too much waits, no worker is there, Redis is away. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'queue_full',
  'overloaded',
  'no_worker',
  'queue_unavailable',
]);
/** Where a refusal does not say when to come again, in seconds. */
const DEFAULT_RETRY_SECONDS = 1;

export interface PredictorOptions {
  groups: LineGroups;
  clock: RedisClock;
  model: ModelDescription;
  settings: Pick<Settings, 'maxBodyBytes' | 'maxJsonDepth' | 'maxWaitMs'>;
  /** How long a line waits that does not say so itself, in ms. */
  waitMs: number;
  /** A line was refused for a passing reason. */
  refused(): void;
}

/** Reads and runs lines, one by one as predict would; what is refused for a passing reason is tried again while its
 * time lasts. */
export class LinePredictor {
  readonly #options: PredictorOptions;
  /** What ends the waiting of lines that are to be tried again. */
  readonly #resting = new Set<() => void>();
  #ended: MillraceError | undefined;

  constructor(options: PredictorOptions) {
    this.#options = options;
  }

  /**
   * @param bytes of the line; undefined for one that is too long.
   * @throws MillraceError as a predict call would.
   */
  read(bytes: Buffer | undefined): ParsedInputs {
    const { model, settings } = this.#options;
    if (!bytes) {
      const text = `The line is larger than ${settings.maxBodyBytes} bytes.`;
      throw new MillraceError('body_too_large', text, { field: 'body' });
    }
    return parsePredict(model, parseStrictJson(bytes, settings.maxJsonDepth));
  }

  /**
   * @param received when its line was read, in epoch ms of Redis's clock.
   * @throws MillraceError; a refusal where its time does not last for another try.
   */
  async run(parsed: ParsedInputs, received: number): Promise<InferResult> {
    const { groups, clock, model, settings, waitMs } = this.#options;
    const { inputs, itemCount, parameters, operation, priority, fieldOf } = parsed;
    const line = {
      model,
      inputs,
      itemCount,
      parameters,
      ...(operation === undefined ? {} : { operation }),
      ...(priority === undefined ? {} : { priority }),
      ...(fieldOf === undefined ? {} : { fieldOf }),
    };
    const allowedMs = Math.min(parsed.waitMs ?? waitMs, settings.maxWaitMs);
    for (let leftMs = allowedMs; ; ) {
      try {
        return await groups.run({ ...line, waitMs: leftMs });
      } catch (error) {
        if (!(error instanceof MillraceError) || !PASSING.has(error.code)) throw error;
        this.#options.refused();
        const restMs = (error.details.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS) * 1000;
        const then = received + allowedMs - clock.now() - restMs;
        if (then < TOGETHER_MS) throw error;
        await this.#rest(restMs);
        leftMs = Math.floor(then / TOGETHER_MS) * TOGETHER_MS;
      }
    }
  }

  /** Ends the lines that wait for another try, and every later such wait. */
  end(error: MillraceError): void {
    this.#ended ??= error;
    for (const wake of [...this.#resting]) wake();
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#resting.delete(wake);
        if (this.#ended) reject(this.#ended);
        else resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#resting.add(wake);
      if (this.#ended) wake();
    });
  }
}
