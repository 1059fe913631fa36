import type { JobRecord } from '../../jobs/job-record.js';
import type { JobRecords } from '../../jobs/job-records.js';
import type { JobState, JobStatus, JobStatuses } from '../../jobs/job-status.js';
import { type Html, html } from '../html.js';
import { frame, stateBadge, stateLinks, table, time } from './frame.js';
import { REQUESTS_PATH, requestPath } from './links.js';

const ON_PAGE = 50;
/** Requests that are looked at for one page, most. */
const MOST_SCANNED = 500;

interface Row {
  record: JobRecord;
  status: JobStatus;
}

interface List {
  rows: Row[];
  /** Where to go on; absent at the end. */
  next?: number;
}

/** The newest durable requests of all API keys in a state. @param from how many of the newest are left out. */
export async function listRequests(
  { records, statuses }: { records: JobRecords; statuses: JobStatuses },
  state: JobState | undefined,
  from: number,
): Promise<List> {
  const rows: Row[] = [];
  for (let at = from; at < from + MOST_SCANNED; at += ON_PAGE) {
    const ids = await records.newest.list(at, ON_PAGE);
    const found = await Promise.all(
      ids.map(async (id) => {
        const record = await records.find(id);
        return record && { record, status: await statuses.of(record) };
      }),
    );
    for (const [i, row] of found.entries()) {
      if (!row || (state !== undefined && row.status.state !== state)) continue;
      rows.push(row);
      if (rows.length === ON_PAGE) return { rows, next: at + i + 1 };
    }
    if (ids.length < ON_PAGE) return { rows };
  }
  return { rows, next: from + MOST_SCANNED };
}

export function listPage({ rows, next }: List, state: JobState | undefined): string {
  const head = html`<th>State</th><th>Request</th><th>Owner</th><th>Model</th><th class="number">Items</th><th>Priority</th><th>Received</th>`;
  const lines = rows.map(
    ({ record, status }) => html`<tr>
<td>${stateBadge(status.state)}</td>
<td><a href="${requestPath(record.id)}"><code>${record.id}</code></a></td>
<td>${record.owner}</td><td>${record.model.name}</td>
<td class="number">${status.state !== 'expired' && html`${status.itemsDone} of `}${record.itemCount}</td>
<td>${record.priority}</td><td>${time(record.receivedAt)}</td></tr>`,
  );
  const query = new URLSearchParams({ ...(state ? { state } : {}), from: String(next) });
  return frame(
    'Requests',
    html`<h1>Kept requests, the newest first</h1>
${stateLinks(state)}
${rows.length > 0 ? table('Kept requests', head, lines) : nothing(state, next)}
${next !== undefined && html`<p><a href="${REQUESTS_PATH}?${query.toString()}">Older</a></p>`}`,
  );
}

/** What stands in place of the rows. Where only a part was looked through, there may be older ones. */
function nothing(state: JobState | undefined, next: number | undefined): Html {
  if (next !== undefined) {
    return html`<p>None of the ${MOST_SCANNED} that were looked at is ${state ?? 'kept'}. There may be older ones.</p>`;
  }
  return html`<p>${state === undefined ? 'No request is kept' : `No kept request is ${state}`}. A request is kept if it is sent with <code>Prefer: respond-async</code>; any other is found by its id while its job is in a queue or kept there.</p>`;
}
