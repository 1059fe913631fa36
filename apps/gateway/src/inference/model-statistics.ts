import { type Reply, type SpanName, type Stamps, spans } from '@millrace/shared';
import type { InferRequest, InferResult } from './request.js';

/** Runs whose id is remembered, so that one that answers several requests is counted once. */
const REMEMBERED_RUNS = 4096;

/** How often something happened, and how long it took in all. */
export interface Duration {
  count: number;
  /** In ms. */
  ms: number;
}

/** What this gateway knows of one version of a model since it started. */
export interface ModelStatistics {
  /** Epoch ms of the last answer. */
  lastInference: number;
  /** Items answered. */
  items: number;
  /** Runs of the model that answered them. */
  runs: number;
  success: Duration;
  fail: Duration;
  /** Spans between the stamps of each answered request's slowest part. */
  spans: Record<SpanName, Duration>;
}

/** Counts what becomes of the requests of one gateway, by model version, whichever door they took. */
export class StatisticsBook {
  readonly #models = new Map<string, ModelStatistics>();
  readonly #runs = new Set<string>();

  answered(request: InferRequest, result: InferResult, replies: readonly Reply[], now: number): void {
    const model = this.#of(request);
    const items = result.items.filter(({ status }) => status === 'ok').length;
    // What the door will answer with an error is not a success.
    const failed = request.partial ? items === 0 : items < result.items.length;
    add(failed ? model.fail : model.success, now - request.stamps.received);
    model.items += items;
    for (const { header } of replies) for (const run of header.batches) if (this.#isNew(run)) model.runs += 1;
    if (failed) return;
    model.lastInference = Math.round(now);
    this.#addSpans(model, result.stamps);
  }

  failed(request: InferRequest, now: number): void {
    add(this.#of(request).fail, now - request.stamps.received);
  }

  /** Undefined for a version that nobody has asked here. */
  read(name: string, version: string): ModelStatistics | undefined {
    return this.#models.get(keyOf(name, version));
  }

  #addSpans(model: ModelStatistics, stamps: Stamps): void {
    for (const { name, ms } of spans(stamps)) add(model.spans[name], ms);
  }

  #of({ model: { name, version } }: InferRequest): ModelStatistics {
    const key = keyOf(name, version);
    let model = this.#models.get(key);
    if (!model) {
      model = noStatistics();
      this.#models.set(key, model);
    }
    return model;
  }

  #isNew(run: string): boolean {
    if (this.#runs.has(run)) return false;
    this.#runs.add(run);
    if (this.#runs.size > REMEMBERED_RUNS) {
      // A set keeps the order in which its entries came.
      for (const oldest of this.#runs) {
        this.#runs.delete(oldest);
        break;
      }
    }
    return true;
  }
}

export function noStatistics(): ModelStatistics {
  const none = (): Duration => ({ count: 0, ms: 0 });
  return {
    lastInference: 0,
    items: 0,
    runs: 0,
    success: none(),
    fail: none(),
    spans: {
      admit: none(),
      queue: none(),
      preprocess: none(),
      window: none(),
      infer: none(),
      postprocess: none(),
      reply: none(),
    },
  };
}

function keyOf(name: string, version: string): string {
  return `${name}@${version}`;
}

function add(duration: Duration, ms: number): void {
  duration.count += 1;
  duration.ms += Math.max(0, ms);
}
