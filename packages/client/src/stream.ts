import type { PredictedOutput, PredictInputs, Prediction } from './answers.js';
import { errorOfProblem, type JsonObject } from './api-error.js';
import { type MillraceApiError, MillraceProtocolError } from './errors.js';
import type { PredictStreamOptions } from './options.js';

/** What became of one line of a stream. */
export type StreamedPrediction<Output> =
  | (Prediction<Output> & { line: number; error?: undefined })
  | {
      /** 1 for the first. A stream that is ended early names the first that was not taken on. */
      line: number;
      error: MillraceApiError;
    };

/** What `predictStream` answers for inputs of a kind. */
export type StreamedOf<Inputs extends PredictInputs, Partial extends boolean> = StreamedPrediction<
  PredictedOutput<Inputs> | (Partial extends true ? null : never)
>;

/** Inputs as the lines of a request body; they are taken no faster than they can be sent. */
export class LinesBody {
  readonly stream: ReadableStream<Uint8Array>;
  /** What the inputs themselves have failed with. */
  failure: { error: unknown } | undefined;
  readonly #inputs: AsyncIterator<PredictInputs> | Iterator<PredictInputs>;
  readonly #options: Pick<PredictStreamOptions, 'partial' | 'parameters' | 'waitMs'>;
  readonly #encoder = new TextEncoder();
  #ended = false;

  constructor(
    inputs: AsyncIterable<PredictInputs> | Iterable<PredictInputs>,
    { partial, parameters, waitMs }: PredictStreamOptions,
  ) {
    this.#inputs =
      Symbol.asyncIterator in inputs ? inputs[Symbol.asyncIterator]() : inputs[Symbol.iterator]();
    this.#options = { partial, parameters, waitMs };
    this.stream = new ReadableStream({
      pull: (controller) => this.#pull(controller),
      cancel: () => this.end(),
    });
  }

  /** Takes no more inputs. There are fetches that go on reading the body of a request that was given up. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    // What its own end fails with helps nobody any more.
    (async () => this.#inputs.return?.())().catch(() => undefined);
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      const next = this.#ended ? undefined : await this.#inputs.next();
      if (!next || next.done) {
        this.#ended = true;
        controller.close();
        return;
      }
      const line = JSON.stringify({ inputs: next.value, ...this.#options });
      controller.enqueue(this.#encoder.encode(`${line}\n`));
    } catch (error) {
      this.#ended = true;
      this.failure = { error };
      throw error;
    }
  }
}

/** @throws MillraceProtocolError when a line is not one of the protocol. */
export function readLine<Output>(text: string): StreamedPrediction<Output> {
  const said = jsonOf(text);
  const { line, error } = said;
  if (typeof line !== 'number') throw new MillraceProtocolError('A line of the answer has no number.');
  if (error !== undefined) return { line, error: errorOfProblem(error as JsonObject) };
  const prediction = said as unknown as Prediction<Output>;
  return { ...prediction, line, truncated: prediction.truncated ?? [], errors: prediction.errors ?? [] };
}

function jsonOf(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch (cause) {
    throw new MillraceProtocolError('A line of the answer is not JSON.', { cause });
  }
}
