import type { Answer } from '../../http/respond.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { JobStatus } from '../../jobs/job-status.js';

const JSON_TYPE = 'application/json; charset=utf-8';

export function jobPath(id: string): string {
  return `/v1/jobs/${id}`;
}

/** The 202 of a request that is kept (RFC 7240, section 4.1). */
export function acceptedAnswer(
  record: JobRecord,
  status: JobStatus = { state: isToCome(record) ? 'scheduled' : 'queued', itemsDone: 0 },
): Answer {
  return {
    status: 202,
    contentType: JSON_TYPE,
    body: JSON.stringify(jobBody(record, status)),
    headers: ['Location', jobPath(record.id), 'Preference-Applied', 'respond-async'],
  };
}

function isToCome({ notBefore, receivedAt }: JobRecord): boolean {
  return notBefore !== undefined && notBefore > receivedAt;
}

/** A job as every address of `/v1/jobs` shows it; times in ISO 8601. */
export function jobBody(record: JobRecord, status: JobStatus, predictedWaitMs?: number): object {
  const { id, model, priority, itemCount, cancelledAt, notBefore } = record;
  const { state, itemsDone, position } = status;
  return {
    object: 'job',
    id,
    state,
    model: model.name,
    version: model.version,
    priority,
    items: { total: itemCount, done: itemsDone },
    // JSON.stringify leaves out what is undefined.
    position,
    predictedWaitMs: position === undefined ? undefined : predictedWaitMs,
    receivedAt: time(record.receivedAt),
    notBefore: time(notBefore),
    deadlineAt: time(record.deadlineAt),
    keepUntil: time(record.keepUntil),
    cancelledAt: time(cancelledAt),
    callback: record.callback,
    resultUrl: state === 'done' ? `${jobPath(id)}/result` : undefined,
  };
}

function time(at: number | undefined): string | undefined {
  return at === undefined ? undefined : new Date(at).toISOString();
}
