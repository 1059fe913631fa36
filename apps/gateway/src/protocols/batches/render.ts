import type { BatchRecord, BatchState } from '../../batches/batch-record.js';
import { hasEnded } from '../../batches/batch-record.js';
import type { BatchView } from '../../batches/batch-records.js';

/** A batch in OpenAI's shape. */
export function batchBody({ record, counts }: BatchView): object {
  const { checkpoint } = record;
  const at = (state: BatchState): number | null => seconds(record.since[state]);
  return {
    id: record.id,
    object: 'batch',
    endpoint: record.endpoint,
    errors: errorsOf(record),
    input_file_id: record.inputFileId,
    completion_window: record.completionWindow,
    // What holds it up stands in its errors; it goes on by itself.
    status: record.heldUp && record.state !== 'cancelling' ? 'paused' : record.state,
    output_file_id: hasEnded(record) && checkpoint.output.length > 0 ? record.outputFileId : null,
    error_file_id: hasEnded(record) && checkpoint.errors.length > 0 ? record.errorFileId : null,
    created_at: seconds(record.createdAt),
    in_progress_at: at('in_progress'),
    expires_at: seconds(record.expiresAt),
    finalizing_at: at('finalizing'),
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: at('cancelling'),
    cancelled_at: at('cancelled'),
    paused_at: record.state === 'paused' ? at('paused') : null,
    request_counts: { total: record.total ?? 0, ...counts },
    metadata: record.metadata ?? null,
  };
}

export function batchListBody(views: readonly BatchView[], hasMore: boolean): object {
  return {
    object: 'list',
    data: views.map(batchBody),
    first_id: views[0]?.record.id ?? null,
    last_id: views.at(-1)?.record.id ?? null,
    has_more: hasMore,
  };
}

function errorsOf({ faults, heldUp }: BatchRecord): object | null {
  const all = faults ?? (heldUp ? [heldUp] : []);
  if (all.length === 0) return null;
  return { object: 'list', data: all.map((fault) => ({ ...fault, param: null, line: null })) };
}

function seconds(at: number): number;
function seconds(at: number | undefined): number | null;
function seconds(at: number | undefined): number | null {
  return at === undefined ? null : Math.floor(at / 1000);
}
