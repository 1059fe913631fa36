import { type Duration, type ModelStatistics, noStatistics } from '../../inference/model-statistics.js';

/** What Triton's statistics extension is asked of: one version of a model. */
export interface CountedVersion {
  name: string;
  version: string;
  statistics: ModelStatistics | undefined;
}

/**
 * The body of Triton's statistics extension, as far as this gateway knows. Left out: `batch_stats`, caches, and
 * what else is not measured here.
 */
export function modelStatistics(versions: readonly CountedVersion[]): object {
  return { model_stats: versions.map(statisticsOf) };
}

function statisticsOf({ name, version, statistics = noStatistics() }: CountedVersion): object {
  const { lastInference, items, runs, success, fail, spans } = statistics;
  return {
    name,
    version,
    last_inference: lastInference,
    inference_count: items,
    execution_count: runs,
    inference_stats: {
      success: inNanoseconds(success),
      fail: inNanoseconds(fail),
      // In the queue, and prepared but waiting for mates or a session.
      queue: inNanoseconds({ count: spans.queue.count, ms: spans.queue.ms + spans.window.ms }),
      compute_input: inNanoseconds(spans.preprocess),
      compute_infer: inNanoseconds(spans.infer),
      compute_output: inNanoseconds(spans.postprocess),
    },
  };
}

function inNanoseconds({ count, ms }: Duration): object {
  return { count, ns: Math.round(ms * 1e6) };
}
