import type { ModelDescription, Settings } from '@millrace/shared';
import { VERSION } from '../version.js';

const DTYPES = { fp32: 'float32', int8: 'int8' } as const;

/** The answer of `/info`: text-embeddings-inference's fields; null where there is no such thing to tell. */
export function modelInfo(
  model: ModelDescription,
  { maxQueuedItems }: Pick<Settings, 'maxQueuedItems'>,
): object {
  const { text, limits } = model;
  return {
    model_id: model.name,
    model_sha: null,
    model_dtype: text?.precision ? DTYPES[text.precision] : null,
    model_type: { embedding: { pooling: text?.pooling ?? null } },
    max_concurrent_requests: maxQueuedItems,
    max_input_length: limits.maxTokens ?? null,
    max_batch_tokens: text?.maxBatchTokens ?? null,
    max_batch_requests: text?.maxBatchItems ?? null,
    max_client_batch_size: limits.maxRequestItems,
    auto_truncate: text?.overflow === 'truncate',
    tokenization_workers: text?.tokenizerThreads ?? null,
    version: VERSION,
    sha: null,
    docker_label: null,
  };
}
