import { DASHBOARD_PATH } from '../pages.js';

export const REQUESTS_PATH = `${DASHBOARD_PATH}/requests`;

export function requestPath(id: string): string {
  return `${REQUESTS_PATH}/${encodeURIComponent(id)}`;
}

/** A job's page in bull-board. */
export function jobPath(queue: string, jobId: string): string {
  return `${DASHBOARD_PATH}/queue/${encodeURIComponent(queue)}/${encodeURIComponent(jobId)}`;
}

/** From a job's page in bull-board to its request, or to the list of its requests. */
export function linkOf({ id, data }: { id?: unknown; data?: unknown }): {
  displayText: string;
  href: string;
} {
  const parts = (data as { parts?: { requestId?: unknown }[] } | undefined)?.parts;
  const ids = new Set(Array.isArray(parts) ? parts.map((part) => part?.requestId) : []);
  const [only] = ids;
  const isOne = ids.size === 1 && typeof only === 'string';
  return isOne
    ? { displayText: 'Request', href: requestPath(only) }
    : { displayText: `${ids.size} requests`, href: requestPath(String(id)) };
}
