/** What can be told of a job's data that is not validated yet. */
import { PRIORITIES } from '@millrace/shared';
import type { FetchedJob } from './job-consumer.js';

/** The requests that a job carries. */
export function requestIdsOf(data: unknown): string[] {
  return partsOf(data)
    .map((part) => part?.requestId)
    .filter((id) => typeof id === 'string');
}

/** Its items; 1 where nothing says how many. */
export function itemsOf({ job }: FetchedJob): number {
  const parts = partsOf(job.data);
  return parts.length === 0 ? 1 : parts.reduce((sum, part) => sum + (Number(part?.count) || 1), 0);
}

/** Bytes of its inputs that lie beside it. */
export function sidePayloadBytesOf({ job }: FetchedJob): number {
  return partsOf(job.data).reduce((sum, part) => {
    const payload = part?.payload as { bytes?: unknown } | null | undefined;
    return sum + (Number(payload?.bytes) || 0);
  }, 0);
}

/** Whether it is of the class that gives way to all others. */
export function isBulk({ job }: FetchedJob): boolean {
  return (job.opts.priority ?? 0) >= PRIORITIES.bulk;
}

function partsOf(data: unknown): (Record<string, unknown> | null)[] {
  const parts = (data as { parts?: unknown } | null | undefined)?.parts;
  return Array.isArray(parts) ? parts : [];
}
